// Predictions for the rows of a Layout, such as those held out of a fit: the class with the largest score.
// Features of a single row are left out: if that row was not trained on, they have no weights.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "simd/memory.hpp"

namespace manyclass {

inline constexpr int64_t predicted_at_once = 64;

// score(i, c, s) sets the scores of row i for the `width` classes from c on; padding comes after the last
// class.
template <class T, class Score>
std::vector<int32_t> best_classes(const Layout<T>& rows, Score score, int64_t width, int64_t classes,
                                  int threads) {
  std::vector<int32_t> best(rows.n, 0);
  const int64_t chunks = (rows.n + predicted_at_once - 1) / predicted_at_once;
  const auto predict = [&](int64_t chunk, Buffer<T>& scores) {
    const int64_t first = chunk * predicted_at_once, last = std::min(rows.n, first + predicted_at_once);
    std::vector<T> top(predicted_at_once, -std::numeric_limits<T>::infinity());
    for (int64_t c = 0; c < classes; c += width)
      for (int64_t i = first; i < last; ++i) {
        score(i, c, scores.data());
        for (int64_t l = 0; l < std::min(width, classes - c); ++l) {
          if (!(scores[l] > top[i - first])) continue;
          top[i - first] = scores[l];
          best[i] = static_cast<int32_t>(c + l);
        }
      }
  };
  team_tasks(chunks, threads, [&] { return Buffer<T>(width); }, predict);
  return best;
}

}  // namespace manyclass
