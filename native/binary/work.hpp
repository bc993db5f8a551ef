// The memory with which a thread trains one block after another.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "binary/data.hpp"
#include "binary/newton.hpp"
#include "binary/row_sides.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
struct BlockWork {
  static constexpr int width = Lanes<T>::count;

  explicit BlockWork(const BinaryData<T>& data)
      : W(data.rows.heads() * width),
        state(data.rows.n * width),
        exact(data.rows.heads() * width),
        sides(data.no_sides()) {}

  Buffer<T> W, state;             // state: see binary/loss.hpp
  Buffer<double> exact;           // W in float64, for the certificate
  RowSides sides;                 // in the block's problems; all 0 between blocks
  std::vector<int32_t> rows;      // the block's rows that have features
  std::vector<int32_t> features;  // the head features of these rows
  std::vector<char> seen;         // one-vs-one: whether a head feature is among them
  std::vector<int32_t> active;
  std::optional<Newton<T>> newton;
};

}  // namespace manyclass
