// The row sub-problem of the losses on absolute margins with centred weights (LLW, MMR, RM, ADM, ATM, ATS).
//
//   Fix all rows but one, with label y and k = x.x. With the excess e_c of each class (coupled/loss.hpp) let
//     v_c = alpha_c + e_c / k,   z = change of (alpha_y - sum_{c != y} alpha_c),   t = z / K.
//   Centring subtracts t x from every weight vector, so the optimal new values are
//     beta_y = clip(v_y + t - tau),   beta_c = clip(v_c - t - tau),
//   where tau >= 0 is the multiplier of the simplex constraint (0 for a box, and while the sum stays below
//   C_i), and t is the root of
//     F(t) = beta_y - alpha_y - sum_{c != y} (beta_c - alpha_c) - K t.
//   F never increases: its slope is the number of free variables minus K. Where all K are free F is flat; it
//   is then either 0, and any t will do, or the root lies further on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "coupled/loss.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
struct AbsoluteRow {
  const T* v;         // of the other classes, in any order; padded with the lowest number of T
  int64_t width;      // of v, whole vectors
  double others;      // sum of their variables before the step
  double v_own, own;  // of the own class; ignored if its cap is 0
  int64_t classes;    // K
  FeasibleSet<T> set;
};

struct AbsoluteSolution {
  double own;        // beta_y
  double shift;      // beta_c = scale clip(v_c - shift, 0, cap)
  double scale = 1;  // 1 up to rounding; makes the sum over a full simplex C_i to the last digit
};

namespace absolute {

struct Clipped {
  double sum, free;
};

// sum_c clip(v_c - shift, 0, cap), and the number of terms strictly between 0 and cap.
template <class T>
Clipped clip_others(const AbsoluteRow<T>& row, double shift) {
  constexpr int L = Lanes<double>::count;
  vec<double> sums = {}, frees = {};
  const vec<double> zero = {}, one = zero + 1.0, cap = zero + double(row.set.cap);
  if (row.set.cap > 0)
    for (int64_t c = 0; c < row.width; c += L) {
      const vec<double> over = load_as<double>(row.v + c) - shift;
      const vec<double> positive = over > zero ? over : zero;
      sums += positive < cap ? positive : cap;
      frees += (over > zero) & (over < cap) ? one : zero;
    }
  Clipped out{0, 0};
  for (int l = 0; l < L; ++l) {
    out.sum += sums[l];
    out.free += frees[l];
  }
  return out;
}

struct Line {
  double F, slope;
};

// A root of a function that never increases (with falling = false: never decreases). Extends a bracket from
// `start` by doubling `step` until it contains a root, then safeguards Newton's method with bisection.
double monotone_root(auto at, double start, double step, bool falling) {
  constexpr double tiny = 8 * std::numeric_limits<double>::epsilon();
  const auto value = [&](double t) {
    Line line = at(t);
    return falling ? line : Line{-line.F, -line.slope};
  };
  double t = start;
  Line line = value(t);
  if (line.F == 0) return t;
  double lo = t, hi = t;
  for (int grow = 0; grow < 200; ++grow, step *= 2) {
    if (line.F > 0) {
      lo = t;
      hi = t + step;
      const Line next = value(hi);
      if (next.F <= 0) break;
      t = hi;
      line = next;
    } else {
      hi = t;
      lo = t - step;
      const Line next = value(lo);
      if (next.F >= 0) break;
      t = lo;
      line = next;
    }
  }
  for (int round = 0; round < 128; ++round) {
    double next = line.slope < 0 ? t - line.F / line.slope : lo;
    if (!(next > lo && next < hi)) next = lo + (hi - lo) / 2;
    if (std::abs(next - t) <= tiny * std::abs(t) || hi - lo <= tiny * (std::abs(lo) + std::abs(hi))) break;
    t = next;
    line = value(t);
    if (line.F == 0) break;
    (line.F > 0 ? lo : hi) = t;
  }
  return t;
}

}  // namespace absolute

// k = x.x sets the length of the first step.
template <class T>
AbsoluteSolution solve_absolute(const AbsoluteRow<T>& row, double k) {
  using namespace absolute;
  const double K = static_cast<double>(row.classes), own_cap = row.set.own_cap, C = row.set.total;
  const auto own_at = [&](double t) { return std::min(std::max(row.v_own + t, 0.0), own_cap); };
  double t = monotone_root(
      [&](double at) {
        const Clipped others = clip_others(row, at);
        const double own = own_cap > 0 ? own_at(at) : 0, moved = own_cap > 0 ? own - row.own : 0;
        const bool free = own_cap > 0 && own > 0 && own < own_cap;
        return Line{moved - others.sum + row.others - K * at, others.free + (free ? 1.0 : 0.0) - K};
      },
      0.0, 1 / k, true);
  AbsoluteSolution found{own_cap > 0 ? own_at(t) : 0.0, t};
  if (found.own + clip_others(row, t).sum <= C) return found;

  // The simplex is full. If the other classes have all of it: sum_c max(0, v_c - shift) = C.
  const auto all_in_others = [&](double at) {
    const Clipped others = clip_others(row, at);
    return Line{others.sum - C, -others.free};
  };
  const double top = row.width > 0 ? largest_of(row.v, row.width) : std::numeric_limits<T>::lowest();
  if (top == std::numeric_limits<T>::lowest()) return {C, t};  // no other classes
  const double full = monotone_root(all_in_others, top - C, C, true);
  const auto filled = [&](double own, double shift) {
    const double sum = clip_others(row, shift).sum;
    return AbsoluteSolution{own, shift, sum > 0 ? (C - own) / sum : 1.0};
  };
  if (own_cap == 0) return filled(0, full);
  // With the own class: beta_y = C - S, where S is the sum of the others at shift = t + tau. Eliminating
  // t = (all_own - 2 S) / K from beta_y = v_y + t - tau leaves one equation for the shift.
  const double all_own = C - row.own + row.others;  // z if the own class had all of C
  const auto balance = [&](double at) {
    const Clipped others = clip_others(row, at);
    return Line{at - row.v_own + C - others.sum - 2 / K * (all_own - 2 * others.sum),
                1 + others.free * (1 - 4 / K)};
  };
  if (balance(full).F >= 0) return filled(0, full);
  if (balance(top).F <= 0) return {C, top};
  const double shift = monotone_root(balance, (full + top) / 2, (top - full) / 2, false);
  return filled(std::min(std::max(C - clip_others(row, shift).sum, 0.0), C), shift);
}

}  // namespace manyclass
