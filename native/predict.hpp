// Scores and the k best classes of rows, from feature-major weights, dense or sparse.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layout.hpp"

namespace manyclass {

// The model's weights as they lie in memory or in a mapped file.
template <class T>
struct DenseWeights {
  const T* W;  // features x classes
  int64_t classes;

  void add(int64_t feature, T x, T* s) const {
    const T* w = W + feature * classes;
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) s[c] += x * w[c];
  }
};

template <class T>
struct SparseWeights {
  const int64_t* ptr;  // by feature
  const int32_t* index;
  const T* value;
  int64_t classes;

  void add(int64_t feature, T x, T* s) const {
    for (int64_t e = ptr[feature]; e < ptr[feature + 1]; ++e) s[index[e]] += x * value[e];
  }
};

template <class T, class View, class Weights>
void score_row(const View& X, int64_t i, const Weights& weights, const T* intercept, T* s) {
  std::copy(intercept, intercept + weights.classes, s);
  for (int64_t e = X.row_begin(i); e < X.row_end(i); ++e)
    if (X.value[e] != 0) weights.add(X.index[e], static_cast<T>(X.value[e]), s);
}

// out: rows x classes
template <class T, class View, class Weights>
void score_rows(const View& X, const Weights& weights, const T* intercept, T* out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
  for (int64_t i = 0; i < X.n_rows; ++i) score_row(X, i, weights, intercept, out + i * weights.classes);
}

// The k best of each row, best first; of equal scores the lower class first.
template <class T, class View, class Weights>
void best_classes(const View& X, const Weights& weights, const T* intercept, int64_t k, int32_t* classes,
                  T* scores, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<T> s(weights.classes);
    std::vector<int32_t> best(k + 1);
    const auto before = [&](int32_t a, int32_t b) { return s[a] > s[b] || (s[a] == s[b] && a < b); };
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = 0; i < X.n_rows; ++i) {
      score_row(X, i, weights, intercept, s.data());
      int64_t found = 0;
      for (int32_t c = 0; c < weights.classes; ++c) {
        if (found == k && !(s[c] > s[best[k - 1]])) continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && before(c, best[at - 1]); --at) best[at] = best[at - 1];
        best[at] = c;
      }
      for (int64_t r = 0; r < k; ++r) {
        classes[i * k + r] = best[r];
        scores[i * k + r] = s[best[r]];
      }
    }
  }
}

}  // namespace manyclass
