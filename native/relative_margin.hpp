// The row sub-problem of the relative-margin losses (WW, CS).
//
//   Fix all rows but one, with label y and k = x.x. For the classes c != y let
//     g_c = s_y - s_c - 1      the gradient,      v_c = alpha_c - g_c / k,      A = sum_c alpha_c.
//   The best new values are beta_c = clip(v_c - tau, 0, cap), tau being the root of
//     F(tau) = sum_c clip(v_c - tau, 0, cap) - min(total, A + tau),
//   strictly decreasing and piecewise linear.
//     WW: cap = C_i, total = infinity  (each variable in a box)
//     CS: cap = infinity, total = C_i  (all variables in a capped simplex)
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "vector.hpp"

namespace manyclass {

template <class T>
struct FeasibleSet {
  T cap;    // of one variable
  T total;  // of their sum
};

// The root of F over the m given classes. Classes left out can only raise F, hence the root: the result on a
// subset is a lower bound `lo` for a larger set, from which Newton's method goes on.
template <class T>
T solve_threshold(const T* v, int64_t m, FeasibleSet<T> set, T A, T lo) {
  T hi = lo;
#pragma omp simd reduction(max : hi)
  for (int64_t e = 0; e < m; ++e) hi = v[e] > hi ? v[e] : hi;
  constexpr T tiny = 4 * std::numeric_limits<T>::epsilon();
  T tau = lo;
  for (int step = 0; step < 64; ++step) {
    T sum = 0, active = 0;
#pragma omp simd reduction(+ : sum, active)
    for (int64_t e = 0; e < m; ++e) {
      const T over = v[e] - tau;
      const T positive = over > T(0) ? over : T(0);
      sum += positive < set.cap ? positive : set.cap;
      active += (over > T(0)) & (over < set.cap) ? T(1) : T(0);
    }
    const bool rising = A + tau < set.total;
    const T target = rising ? A + tau : set.total;
    const T F = sum - target, slope = active + (rising ? T(1) : T(0));
    (F >= 0 ? lo : hi) = tau;
    if (std::abs(F) <= tiny * (sum + std::abs(target))) break;
    T next = tau + F / slope;
    if (!(next > lo && next < hi)) next = lo + (hi - lo) / 2;
    if (std::abs(next - tau) <= tiny * std::abs(tau)) break;
    tau = next;
  }
  return tau;
}

}  // namespace manyclass
