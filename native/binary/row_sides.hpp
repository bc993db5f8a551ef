// On which side of the problems of a block rows are, a bit a lane. One-vs-rest: all that are not on the
// positive side are on the negative one; one-vs-one: those on neither take no part.
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
