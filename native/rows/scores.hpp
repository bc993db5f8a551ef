// Scores s = W' x_i of rows, from the dense weights of the head, and the best classes of rows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "simd/memory.hpp"
#include "simd/tiles.hpp"

namespace manyclass {

// For up to tile_width classes.
template <class A, class T>
inline void score_row(const Layout<T>& rows, int64_t i, const T* W, int64_t stride, A* s, int64_t width) {
  const int64_t b = rows.head_ptr[i], e = rows.head_ptr[i + 1];
  score_tile(W, stride, rows.head_index.data() + b, rows.head_value.data() + b, e - b, s, width);
}

// For the rows [first, last) and all columns of W, tile by tile: a tile of weights stays in the cache.
template <class A, class T>
void score_rows(const Layout<T>& rows, int64_t first, int64_t last, const T* W, int64_t stride, A* s) {
  for (int64_t c = 0; c < stride; c += tile_width<A>)
    for (int64_t i = first; i < last; ++i)
      score_row(rows, i, W + c, stride, s + (i - first) * stride + c, std::min(tile_width<A>, stride - c));
}

// Predictions, for rows that were held out of a fit: the class with the largest score. Features of a single
// row are left out: if that row was not trained on, they have no weights.
//
// score(i, c, s) sets the scores of row i for the `width` classes from c on; padding comes after the last
// class.
template <class T, class Score>
std::vector<int32_t> best_classes(const Layout<T>& rows, Score score, int64_t width, int64_t classes,
                                  int threads) {
  constexpr int64_t at_once = 64;
  std::vector<int32_t> best(rows.n, 0);
  const int64_t chunks = (rows.n + at_once - 1) / at_once;
  const auto predict = [&](int64_t chunk, Buffer<T>& scores) {
    const int64_t first = chunk * at_once, last = std::min(rows.n, first + at_once);
    std::vector<T> top(at_once, -std::numeric_limits<T>::infinity());
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
