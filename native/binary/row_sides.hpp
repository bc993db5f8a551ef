// The sides of rows in the problems of a block, one bit per lane. In one-vs-rest, rows that are not on the
// positive side are on the negative one. In one-vs-one, rows on neither side take no part.
#pragma once
#include <cstdint>
#include <vector>

#include "simd/lane_masks.hpp"
#include "simd/vector.hpp"

namespace manyclass {

struct RowSides {
  std::vector<uint16_t> positive, negative;

  template <class T>
  vec<T> signs(int64_t i) const {
    return negative.empty() ? signs_of_lanes<T>(positive[i])
                            : (signs_of_lanes<T>(positive[i]) - signs_of_lanes<T>(negative[i])) / 2;
  }
};

}  // namespace manyclass
