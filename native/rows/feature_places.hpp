// Which features are in the head, which in the tail, and which in neither (rows/layout.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace manyclass {

struct FeaturePlaces {
  std::vector<int64_t> head_features, tail_features;  // as in Layout
  // By feature: its position p in the head, -2 - p for position p in the tail, or -1 for neither.
  std::vector<int32_t> place;

  // rows: the number of rows in which each feature occurs. Features of at most `tail_rows` rows go to the
  // tail, and features of one row to neither. If `constant`, the last feature is the constant one; every row
  // reads it, so it is always in the head.
  FeaturePlaces(const int64_t* rows, int64_t features, bool constant, int64_t tail_rows)
      : place(features, -1) {
    std::vector<int64_t> order(features);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] > rows[b]; });
    for (int64_t f : order) {
      if (rows[f] > tail_rows || (constant && f == features - 1)) {
        place[f] = static_cast<int32_t>(head_features.size());
        head_features.push_back(f);
      } else if (rows[f] > 1) {
        place[f] = -2 - static_cast<int32_t>(tail_features.size());
        tail_features.push_back(f);
      }
    }
  }
};

}  // namespace manyclass
