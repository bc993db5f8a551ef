// Where the weights of a feature are.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace manyclass {

// Which features are in the head and which in the tail.
struct FeaturePlaces {
  std::vector<int64_t> head_features, tail_features;  // as in Layout
  std::vector<int32_t> place;  // in the head: position; in the tail: -2 - position; -1: nowhere

  // rows: in how many rows each feature occurs. `constant`: the last one is the constant feature, which
  // always has a dense row: it is read by every row. `tail_rows`: features in at most this many go to the
  // tail.
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
