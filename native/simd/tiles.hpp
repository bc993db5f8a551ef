// Scores of a row for a tile of neighbouring classes: s = sum_j x_j W[f_j, :].
#pragma once
#include <cstdint>

#include "simd/vector.hpp"

namespace manyclass {

// For V vectors of classes. The sums, of type A, stay in registers; weights about a kilobyte ahead are
// prefetched while those of the current feature are added.
template <int V, class A, class T>
inline void score_vectors(const T* W, int64_t stride, const int32_t* f, const T* x, int64_t nnz, A* s) {
  constexpr int L = Lanes<A>::count, ahead = V < 16 ? 16 / V : 1;
  vec<A> sum[V] = {};
  for (int64_t j = 0; j < nnz; ++j) {
    const T* w = W + f[j] * stride;
    const T* later = W + f[j + ahead < nnz ? j + ahead : j] * stride;
    for (int v = 0; v < V; ++v) {
      __builtin_prefetch(later + v * L);
      sum[v] += A(x[j]) * load_as<A>(w + v * L);
    }
  }
  for (int v = 0; v < V; ++v) store(s + v * L, sum[v]);
}

// The most classes that `score_tile` takes at once: as many vectors as the registers hold.
template <class A>
constexpr int64_t tile_width = 16 * Lanes<A>::count;

// For up to tile_width classes, a whole number of vectors.
template <class A, class T>
inline void score_tile(const T* W, int64_t stride, const int32_t* f, const T* x, int64_t nnz, A* s,
                       int64_t width) {
  constexpr int L = Lanes<A>::count;
  switch (width / L) {
    case 16:
      return score_vectors<16>(W, stride, f, x, nnz, s);
    case 1:
      return score_vectors<1>(W, stride, f, x, nnz, s);
    case 2:
      return score_vectors<2>(W, stride, f, x, nnz, s);
    case 3:
      return score_vectors<3>(W, stride, f, x, nnz, s);
  }
  for (int64_t c = 0; c < width; c += 4 * L) {
    if (width - c >= 4 * L)
      score_vectors<4>(W + c, stride, f, x, nnz, s + c);
    else
      score_tile(W + c, stride, f, x, nnz, s + c, width - c);
  }
}

}  // namespace manyclass
