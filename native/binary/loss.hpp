// The binary losses, for a vector of problems at once. With t_i = 1 or -1 the side of row i:
//
//   P(w) = 1/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//   D(a) = sum_i gain(a_i) - 1/2 |w|^2,       w = sum_i t_i a_i x_i
//     hinge           loss = max(0, 1 - m)      gain = a                      0 <= a <= C_i
//     squared hinge   loss = max(0, 1 - m)^2    gain = a - a^2 / (4 C_i)      a >= 0
//     logistic        loss = log(1 + exp(-m))   gain = C_i H(a / C_i)         0 < a < C_i
//   with H(p) = -p log p - (1 - p) log(1 - p). Solvers store a `state` for each variable: a itself, except
//   for the logistic loss u = log(a / (C_i - a)), which resolves a to the last digit near both 0 and C_i.
#pragma once
#include <cmath>
#include <stdexcept>
#include <string>

#include "simd/math.hpp"
#include "simd/vector.hpp"

namespace manyclass {

enum class Binary { hinge, squared_hinge, logistic };

inline Binary binary_named(const std::string& name) {
  if (name == "hinge") return Binary::hinge;
  if (name == "squared_hinge") return Binary::squared_hinge;
  if (name == "logistic") return Binary::logistic;
  throw std::invalid_argument("this kernel has no loss named " + name);
}

// C_i loss, gain, and violation of the optimality condition.
template <class A>
struct Measured {
  vec<A> loss, gain, violation;
};

// A loss declares whether
//   smooth            it has a curvature, so Newton's method can train it
//   bounded           a_i <= C_i
//   sparse            most variables are 0
//   stores_variables  the states are the variables
template <Binary>
struct BinaryLoss;

template <bool squared>
struct HingeLoss {
  static constexpr double start = 0;
  static constexpr double at_zero = 1;
  static constexpr bool smooth = squared, bounded = !squared, sparse = true, stores_variables = true;

  static double variable(double state, double) { return state; }
  template <class A>
  static vec<A> variable(vec<A> state, A) {
    return state;
  }
  template <class A>
  static vec<A> state(vec<A> a, A) {
    return a;
  }

  // The optimal state with all other rows fixed; m is the margin at the current one.
  template <class A>
  static vec<A> best(vec<A> a, vec<A> m, A k, A C) {
    const A D = squared ? 1 / (2 * C) : A(0);
    const vec<A> zero = {};
    const vec<A> next = larger<A>(a - gradient(a, m, D) * (1 / (k + D)), zero);
    return squared ? next : (next < C ? next : zero + C);
  }

  // The state for which margin m is optimal (for the hinge at margin 1, one of them), and C loss''.
  template <class A>
  static vec<A> at_margin(vec<A> m, A C) {
    if constexpr (squared)
      return 2 * C * larger<A>(1 - m, vec<A>{});
    else
      return m < A(1) ? vec<A>{} + C : vec<A>{};
  }
  template <class A>
  static vec<A> curvature(vec<A> m, A C) {
    static_assert(squared);
    return m < A(1) ? vec<A>{} + 2 * C : vec<A>{};
  }

  template <class A>
  static Measured<A> measure(vec<A> a, vec<A> m, A C) {
    const A D = squared ? 1 / (2 * C) : A(0);
    const vec<A> zero = {}, over = larger<A>(1 - m, zero), g = gradient(a, m, D);
    const vec<A> up = squared ? -g : (a < C ? -g : zero), down = a > zero ? g : zero;
    return {squared ? C * over * over : C * over, squared ? a - D / 2 * a * a : a, larger<A>(up, down)};
  }

 private:
  template <class A>
  static vec<A> gradient(vec<A> a, vec<A> m, A D) {
    return squared ? m - 1 + D * a : m - 1;
  }
};

template <>
struct BinaryLoss<Binary::hinge> : HingeLoss<false> {};
template <>
struct BinaryLoss<Binary::squared_hinge> : HingeLoss<true> {};

template <>
struct BinaryLoss<Binary::logistic> {
  static constexpr double start = -20;
  static inline const double at_zero = std::log(2.0);  // the loss at margin 0, for C_i = 1
  static constexpr bool smooth = true, bounded = true, sparse = false, stores_variables = false;

  static double variable(double u, double C) { return C / (1 + std::exp(-u)); }
  template <class A>
  static vec<A> variable(vec<A> u, A C) {
    return C / (1 + exp_of<A>(-u));
  }
  template <class A>
  static vec<A> state(vec<A> a, A C) {
    const vec<A> least = vec<A>{} + C * A(2e-9), most = C - a;
    a = larger<A>(a, least);
    return log_of<A>(a / larger<A>(most, least));
  }

  // The root of u + m + k (a(u) - a), which increases with a slope of at least 1: Newton's method, with
  // bisection as a safeguard.
  template <class A>
  static vec<A> best(vec<A> u, vec<A> m, A k, A C) {
    constexpr A precise = sizeof(A) == 4 ? A(1e-5) : A(1e-12);
    const vec<A> a = variable(u, C);
    vec<A> low = -m - k * (C - a), high = -m + k * a;
    u = u > low ? u : low;
    u = u < high ? u : high;
    for (int round = 0; round < 30; ++round) {
      const vec<A> p = 1 / (1 + exp_of<A>(-u));
      const vec<A> at = u + m + k * (C * p - a);
      low = at < A(0) ? u : low;
      high = at > A(0) ? u : high;
      vec<A> next = u - at / (1 + k * C * p * (1 - p));
      next = (next > low) & (next < high) ? next : low + (high - low) / 2;
      const vec<A> moved = next - u;
      u = next;
      if (largest_lane<A>(larger<A>(moved, -moved)) <= precise) break;
    }
    return u;
  }

  template <class A>
  static vec<A> at_margin(vec<A> m, A) {
    return -m;
  }
  template <class A>
  static vec<A> curvature(vec<A> m, A C) {
    const vec<A> e = exp_of<A>(-larger<A>(m, -m));
    return C * e / ((1 + e) * (1 + e));
  }

  template <class A>
  static Measured<A> measure(vec<A> u, vec<A> m, A C) {
    const vec<A> zero = {}, size = larger<A>(u, -u), e = exp_of<A>(-size);
    const vec<A> difference = u + m;
    // C H(p) = C log(1 + exp(-|u|)) + C |u| / (1 + exp(|u|)), without cancellation
    return {C * (larger<A>(-m, zero) + log_of<A>(1 + exp_of<A>(-larger<A>(m, -m)))),
            C * (log_of<A>(1 + e) + size * e / (1 + e)), larger<A>(difference, -difference)};
  }
};

// Calls f<loss>().
decltype(auto) with_loss(Binary loss, auto f) {
  switch (loss) {
    case Binary::hinge:
      return f.template operator()<Binary::hinge>();
    case Binary::squared_hinge:
      return f.template operator()<Binary::squared_hinge>();
    case Binary::logistic:
      return f.template operator()<Binary::logistic>();
  }
  throw std::logic_error("unknown binary loss");
}

}  // namespace manyclass
