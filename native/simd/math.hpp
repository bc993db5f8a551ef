// exp and log of whole vectors, accurate to the last few bits of the type. Always inlined: the
// compiler's own decision would depend on whatever else it compiles.
#pragma once
#include <cstdint>
#include <type_traits>

#include "simd/vector.hpp"

namespace manyclass {

namespace vector_math {

template <class T>
struct Bits {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Int type __attribute__((vector_size(64)));
  static constexpr int mantissa = sizeof(T) == 4 ? 23 : 52;
  static constexpr Int bias = sizeof(T) == 4 ? 127 : 1023;
};
template <class T>
using bits = typename Bits<T>::type;

}  // namespace vector_math

// exp x = 2^n exp r with n = round(x / ln 2) and |r| <= ln 2 / 2; exp r is a Taylor polynomial. x is clamped:
// far below 0 the result is about the smallest normal number instead of 0, far above it stays finite.
template <class T>
[[gnu::always_inline]] inline vec<T> exp_of(vec<T> x) {
  using namespace vector_math;
  constexpr T limit = sizeof(T) == 4 ? T(87) : T(708);
  constexpr T ln2_high = sizeof(T) == 4 ? T(0.693359375) : T(6.93147180369123816490e-01);
  constexpr T ln2_low = sizeof(T) == 4 ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  x = x < limit ? x : vec<T>{} + limit;
  x = x > -limit ? x : vec<T>{} - limit;
  // Adding and subtracting 1.5 * 2^mantissa rounds to a whole number.
  const T rounder = T(1.5) * static_cast<T>(int64_t(1) << Bits<T>::mantissa);
  const vec<T> n = (x * T(1.44269504088896340736) + rounder) - rounder;
  const vec<T> r = (x - n * ln2_high) - n * ln2_low;
  constexpr int terms = sizeof(T) == 4 ? 7 : 13;
  vec<T> sum = vec<T>{} + T(1);
  for (int j = terms; j > 0; --j) sum = sum * r * (T(1) / T(j)) + T(1);
  const bits<T> power = (__builtin_convertvector(n, bits<T>) + Bits<T>::bias) << Bits<T>::mantissa;
  return sum * (vec<T>)power;
}

// log x of positive, normal numbers: x = 2^n m with 1/sqrt 2 < m <= sqrt 2, and
// log m = 2 artanh((m - 1) / (m + 1)), by its series.
template <class T>
[[gnu::always_inline]] inline vec<T> log_of(vec<T> x) {
  using namespace vector_math;
  const bits<T> whole = (bits<T>)x;
  const bits<T> fraction_mask = bits<T>{} + ((typename Bits<T>::Int(1) << Bits<T>::mantissa) - 1);
  bits<T> n = (whole >> Bits<T>::mantissa) - Bits<T>::bias;
  const bits<T> in_one_two = (whole & fraction_mask) | (bits<T>{} + (Bits<T>::bias << Bits<T>::mantissa));
  vec<T> m = (vec<T>)in_one_two;
  const auto large = m > T(1.41421356237309504880);
  m = large ? m * T(0.5) : m;
  n = n - large;  // true is -1
  const vec<T> f = (m - T(1)) / (m + T(1)), f2 = f * f;
  constexpr int terms = sizeof(T) == 4 ? 5 : 11;
  vec<T> sum = {};
  for (int j = terms; j >= 0; --j) sum = sum * f2 + T(2) / T(2 * j + 1);
  return __builtin_convertvector(n, vec<T>) * T(0.69314718055994530942) + sum * f;
}

}  // namespace manyclass
