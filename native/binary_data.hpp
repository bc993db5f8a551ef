// What all blocks of binary problems read, and what the training of one of them needs.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "binary_problems.hpp"
#include "kept_weights.hpp"
#include "layout.hpp"
#include "newton.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
struct BinaryData {
  BinaryData(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> penalties, int64_t classes,
             bool pairs, bool reduced)
      : rows(std::move(layout)),
        y(std::move(labels)),
        C(std::move(penalties)),
        problems(classes, pairs),
        empty_C(classes, 0.0),
        members(pairs ? classes : 0) {
    if (rows.tails() != 0) throw std::logic_error("this solver wants every shared feature in the head");
    if (reduced) kept = KeptWeights(rows, y, classes);
    for (int64_t i = 0; i < rows.n; ++i) {
      if (rows.norm[i] == 0) {
        empty_C[y[i]] += C[i];
        continue;
      }
      filled.push_back(static_cast<int32_t>(i));
      if (pairs) members[y[i]].push_back(static_cast<int32_t>(i));
    }
  }

  Layout<T> rows;
  std::vector<int32_t> y;
  std::vector<T> C;
  BinaryProblems<T> problems;
  KeptWeights kept;
  std::vector<double> empty_C;                // by class, sum of C_i over its rows without features
  std::vector<int32_t> filled;                // the rows that have features
  std::vector<std::vector<int32_t>> members;  // one-vs-one: these by class
};

// One of these a thread.
template <class T>
struct BlockWork {
  static constexpr int width = Lanes<T>::count;

  explicit BlockWork(const Layout<T>& rows)
      : W(rows.heads() * width), state(rows.n * width), exact(rows.heads() * width) {}

  Buffer<T> W, state;             // state: see binary_loss.hpp
  Buffer<double> exact;           // W as the certificate makes it
  std::vector<int32_t> rows;      // of the block, those that have features
  std::vector<int32_t> features;  // of these rows, in the head
  std::vector<char> seen;         // one-vs-one: whether a feature of the head is among them
  std::vector<int32_t> active;
  std::optional<Newton<T>> newton;
};

}  // namespace manyclass
