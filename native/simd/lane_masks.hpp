// Sets of lanes of a vector as bit masks: bit l stands for lane l.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simd/vector.hpp"

namespace manyclass {

// The lanes that are not 0.
template <class T>
inline uint32_t nonzero_lanes(vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
#endif
  uint32_t lanes = 0;
  for (int l = 0; l < Lanes<T>::count; ++l) lanes |= static_cast<uint32_t>(v[l] != T(0)) << l;
  return lanes;
}
template <class T>
inline bool any_nonzero(vec<T> v) {
  return nonzero_lanes<T>(v) != 0;
}

// 1 in the chosen lanes, -1 in the others.
template <class T>
inline vec<T> signs_of_lanes(uint32_t lanes) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Bits bits __attribute__((vector_size(64)));
  bits own = {};
  for (int l = 0; l < Lanes<T>::count; ++l) own[l] = Bits(1) << l;
  return (own & static_cast<Bits>(lanes)) != 0 ? vec<T>{} + 1 : vec<T>{} - 1;
}

// Writes the chosen lanes one after the other, at any alignment. There must be room for a whole vector: the
// bytes after the chosen lanes may be overwritten.
template <class T>
inline void compress_lanes(uint8_t* to, uint32_t lanes, vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(static_cast<__mmask16>(lanes), (__m512)v));
    return;
  }
#endif
  for (; lanes; lanes &= lanes - 1, to += sizeof(T)) {
    const T value = v[__builtin_ctz(lanes)];
    std::memcpy(to, &value, sizeof(T));
  }
}
// The inverse: reads one value for each chosen lane; the other lanes are 0.
template <class T>
inline vec<T> expand_lanes(const uint8_t* from, uint32_t lanes) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_maskz_expandloadu_ps(static_cast<__mmask16>(lanes), from);
#endif
  vec<T> v = {};
  for (; lanes; lanes &= lanes - 1, from += sizeof(T)) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    v[__builtin_ctz(lanes)] = value;
  }
  return v;
}

}  // namespace manyclass
