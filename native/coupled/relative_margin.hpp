// The row sub-problem of the losses on relative margins (WW, CS).
//
//   Fix all rows but one, with label y and k = x.x. For the classes c != y let
//     g_c = s_y - s_c - 1      the gradient,      v_c = alpha_c - g_c / k,      A = sum_c alpha_c.
//   The optimal new values are beta_c = clip(v_c - tau, 0, cap), where tau is the root of
//     F(tau) = sum_c clip(v_c - tau, 0, cap) - min(total, A + tau),
//   a decreasing, piecewise linear function, found by Newton's method with bisection as a safeguard.
//     WW: cap = C_i, total = infinity  (each variable in a box)
//     CS: cap = infinity, total = C_i  (all variables in a capped simplex)
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "coupled/loss.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The values v_c = s_c * scale + shift of the classes whose variable is 0. The row's own class, and classes
// whose v_c is listed separately (`v` below), have the lowest score of T here.
template <class T>
struct DenseValues {
  const T* s = nullptr;
  int64_t width = 0;
  T scale = 0, shift = 0;
};

// The value of F and its negated slope.
template <class T>
struct Line {
  T F, slope, scale;  // scale: the magnitude of the two terms of F
};

template <class T>
Line<T> evaluate(const T* v, int64_t m, const DenseValues<T>& dense, const FeasibleSet<T>& set, T A, T tau) {
  T sum = 0, free = 0;
#pragma omp simd reduction(+ : sum, free)
  for (int64_t e = 0; e < m; ++e) {
    const T over = v[e] - tau;
    const T positive = over > T(0) ? over : T(0);
    sum += positive < set.cap ? positive : set.cap;
    free += (over > T(0)) & (over < set.cap) ? T(1) : T(0);
  }
  if (dense.width > 0) {
    constexpr int L = Lanes<T>::count;
    const T shift = dense.shift - tau;
    vec<T> sums = {}, frees = {};
    const vec<T> zero = {}, one = zero + T(1), cap = zero + set.cap;
    for (int64_t c = 0; c < dense.width; c += L) {
      const vec<T> over = load(dense.s + c) * dense.scale + shift;
      const vec<T> positive = over > zero ? over : zero;
      sums += positive < cap ? positive : cap;
      frees += (over > zero) & (over < cap) ? one : zero;
    }
    for (int l = 0; l < L; ++l) {
      sum += sums[l];
      free += frees[l];
    }
  }
  const bool rising = A + tau < set.total;
  const T target = rising ? A + tau : set.total;
  return {sum - target, free + (rising ? T(1) : T(0)), sum + std::abs(target)};
}

// The root of F in [lo, hi]; no v_c may exceed `hi`. Further classes can only raise F and its root, so the
// root for some of the classes is a lower bound of the root for all.
template <class T>
T solve_threshold(const T* v, int64_t m, const DenseValues<T>& dense, const FeasibleSet<T>& set, T A, T lo,
                  T hi) {
  constexpr T tiny = 4 * std::numeric_limits<T>::epsilon();
  T tau = lo;
  for (int step = 0; step < 64; ++step) {
    const Line<T> at = evaluate(v, m, dense, set, A, tau);
    (at.F >= 0 ? lo : hi) = tau;
    if (std::abs(at.F) <= tiny * at.scale) break;
    T next = tau + at.F / at.slope;
    if (!(next > lo && next < hi)) next = lo + (hi - lo) / 2;
    if (std::abs(next - tau) <= tiny * std::abs(tau)) break;
    tau = next;
  }
  return tau;
}

}  // namespace manyclass
