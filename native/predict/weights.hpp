// The weights of a model as stored in memory or in a mapped file, by feature: dense rows, or lists of classes
// and values. Stored values may be narrower than scores: half precision, or 8-bit integers with one scale per
// class. With v the stored values and T the type of the scores,
//
//   s_c = sum_j x_j v_jc,     score_c = scale_c s_c + b_c,
//
// summed in T over the features of a row in ascending order. All code that computes scores uses this order,
// so all ways to predict agree to the last bit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace manyclass {

typedef _Float16 half;

// Turns a sum into a score.
template <class T>
struct Finish {
  const T* intercept;
  const T* scale;  // null if all scales are 1

  T operator()(int64_t c, T s) const { return scale ? s * scale[c] + intercept[c] : s + intercept[c]; }
};

template <class T>
struct DenseWeights {
  const T* W;  // features x classes
  int64_t classes;

  void add(int64_t feature, T x, T* s, int64_t begin, int64_t end) const {
    const T* w = W + feature * classes;
#pragma omp simd
    for (int64_t c = begin; c < end; ++c) s[c] += x * w[c];
  }
};

template <class T, class V, class I>
struct SparseWeights {
  const int64_t* ptr;  // by feature
  const I* index;      // ascending
  const V* value;
  int64_t features, classes;

  int64_t count(int64_t feature) const { return ptr[feature + 1] - ptr[feature]; }
  void add(int64_t feature, T x, T* s) const {
    for (int64_t e = ptr[feature]; e < ptr[feature + 1]; ++e) s[index[e]] += x * static_cast<T>(value[e]);
  }
  T largest(int64_t begin, int64_t end) const {
    T most = 0;
    for (int64_t e = begin; e < end; ++e) most = std::max(most, std::abs(static_cast<T>(value[e])));
    return most;
  }
  // The weight of class c, which is between these positions if it is not 0.
  T find(int64_t begin, int64_t end, int32_t c) const {
    // The last 64 are all compared: binary search would mispredict every other branch.
    while (end - begin > 64) {
      const int64_t middle = begin + (end - begin) / 2;
      const bool behind = index[middle] <= c;
      begin = behind ? middle : begin;
      end = behind ? end : middle;
    }
    int64_t place = begin;
    for (int64_t e = begin; e < end; ++e) place += index[e] < c;
    return place < end && index[place] == c ? static_cast<T>(value[place]) : T(0);
  }
  void prefetch(int64_t feature) const {
    __builtin_prefetch(index + ptr[feature]);
    __builtin_prefetch(value + ptr[feature]);
  }
};

}  // namespace manyclass
