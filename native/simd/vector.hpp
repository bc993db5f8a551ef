// Vectors of 64 bytes, one lane per class, are the unit of all kernels; the compiler splits them where the
// processor is narrower. Arrays start on 64-byte boundaries and are padded to whole vectors, so that loops
// over classes have no remainder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace manyclass {

template <class T>
struct Lanes {
  static constexpr int count = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using vec = typename Lanes<T>::type;

template <class T>
inline vec<T> load(const T* p) {
  return *reinterpret_cast<const vec<T>*>(p);
}
template <class T>
inline void store(T* p, vec<T> v) {
  *reinterpret_cast<vec<T>*>(p) = v;
}
// A store that bypasses the caches, for memory that is not read again soon. Call `streamed` before other
// threads read it.
template <class T>
inline void stream(T* p, vec<T> v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#else
  store(p, v);
#endif
}
inline void streamed() {
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}
template <class T>
inline vec<T> larger(vec<T> a, vec<T> b) {
  return a > b ? a : b;
}

// The number of classes, rounded up to whole vectors.
template <class T>
constexpr int64_t padded(int64_t classes) {
  constexpr int64_t lanes = Lanes<T>::count;
  return (classes + lanes - 1) / lanes * lanes;
}

// Loads as many numbers as a vector of A has lanes, converted to A, which may be wider than T.
template <class A, class T>
inline vec<A> load_as(const T* p) {
  if constexpr (sizeof(A) == sizeof(T)) {
    return load(p);
  } else {
#if defined(__AVX512F__)
    return (vec<A>)_mm512_cvtps_pd(_mm256_load_ps(p));
#else
    typedef T Narrow __attribute__((vector_size(Lanes<A>::count * sizeof(T))));
    return __builtin_convertvector(*reinterpret_cast<const Narrow*>(p), vec<A>);
#endif
  }
}

template <class T>
inline T largest_lane(vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_max_ps((__m512)v);
#endif
  T most = v[0];
  for (int l = 1; l < Lanes<T>::count; ++l) most = std::max(most, v[l]);
  return most;
}

// Of a whole number of vectors, at least one.
template <class T>
inline T largest_of(const T* s, int64_t width) {
  vec<T> most = load(s);
  for (int64_t c = Lanes<T>::count; c < width; c += Lanes<T>::count) most = larger<T>(most, load(s + c));
  return largest_lane<T>(most);
}

// 8-bit integers at any alignment, one per lane.
template <class T>
inline vec<T> widened(const int8_t* p) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  else
    return (vec<T>)_mm512_cvtepi32_pd(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  typedef int8_t Narrow __attribute__((vector_size(Lanes<T>::count)));
  Narrow small;
  std::memcpy(&small, p, sizeof(small));
  return __builtin_convertvector(small, vec<T>);
#endif
}

// The inverse of `load_as`: rounds to T.
template <class A, class T>
inline void store_as(T* p, vec<A> v) {
  if constexpr (sizeof(A) == sizeof(T)) {
    store(p, v);
  } else {
#if defined(__AVX512F__)
    _mm256_store_ps(p, _mm512_cvtpd_ps((__m512d)v));
#else
    typedef T Narrow __attribute__((vector_size(Lanes<A>::count * sizeof(T))));
    *reinterpret_cast<Narrow*>(p) = __builtin_convertvector(v, Narrow);
#endif
  }
}

template <class T>
inline double sum_lanes(vec<T> v, int64_t lanes = Lanes<T>::count) {
  double sum = 0;
  for (int64_t l = 0; l < lanes; ++l) sum += v[l];
  return sum;
}

}  // namespace manyclass
