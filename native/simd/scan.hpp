// The losses of a row and the classes that violate its margin, in a single pass over its scores.
#pragma once
#include <cstdint>
#include <limits>

#include "simd/vector.hpp"

namespace manyclass {

// scan_scores returns sum_c max(0, s_c + shift), max_c (s_c + shift) and the number of classes with
// s_c > threshold, which it writes to `found` in ascending order; `found` has room for all classes.
template <class T>
struct Scan {
  double hinge_sum;
  T largest;  // of s_c + shift; may be negative
  int32_t count;
};

template <class T>
inline Scan<T> scan_scores(const T* s, int64_t classes, T shift, T threshold, int32_t* found) {
  constexpr int L = Lanes<T>::count;
  vec<T> sum = {}, top = vec<T>{} + std::numeric_limits<T>::lowest();
  int32_t count = 0;
  for (int64_t c = 0; c < classes; c += L) {
    const vec<T> v = load(s + c);
    const vec<T> h = v + shift;
    sum += larger<T>(h, vec<T>{});
    top = larger<T>(top, h);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      const __mmask16 m = _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(threshold), _CMP_GT_OQ);
      if (m) {
        const __m512i id =
            _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(c)),
                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm512_mask_compressstoreu_epi32(found + count, m, id);
        count += __builtin_popcount(m);
      }
      continue;
    }
#endif
    for (int l = 0; l < L; ++l) {
      found[count] = static_cast<int32_t>(c + l);
      count += s[c + l] > threshold;
    }
  }
  double hinge_sum = 0;
  T largest = top[0];
  for (int l = 0; l < L; ++l) {
    hinge_sum += sum[l];
    if (top[l] > largest) largest = top[l];
  }
  return {hinge_sum, largest, count};
}

}  // namespace manyclass
