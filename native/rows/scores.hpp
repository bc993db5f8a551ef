// Scores s = W' x_i of rows, from the dense weights of the head.
#pragma once
#include <algorithm>
#include <cstdint>

#include "rows/layout.hpp"
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

}  // namespace manyclass
