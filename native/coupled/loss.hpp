// The losses that couple the classes of a row, as lines of one table.
//
//   Variables alpha_c >= 0 of a row, with a margin and its target for each class that has one:
//     relative   s_y - s_c >= 1                                c != y; coefficients sum to zero by themselves
//     absolute   s_y >= own_target,  -s_c >= other_target      weights are centred: sum_c w_c = 0
//   The excess e_c is the target minus the margin. Aggregation and feasible set belong together:
//     box       loss = sum_c (cap_c / C_i) max(0, e_c),  0 <= alpha_c <= cap_c
//     simplex   loss = max(0, max_c e_c),  sum_c alpha_c <= C_i
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace manyclass {

struct CoupledLoss {
  bool relative, simplex;
  double own, others;  // caps in units of C_i; 0: no variable. Of a simplex: whether there is one
  double own_target = 1;

  // RM weighs the own class by `gamma` and the others by 1 - gamma.
  static CoupledLoss named(const std::string& name, int64_t classes, double gamma) {
    if (name == "ww") return {true, false, 0, 1};
    if (name == "cs") return {true, true, 0, 1};
    if (name == "llw") return {false, false, 0, 1};
    if (name == "mmr") return {false, false, 1, 0};
    if (name == "rm") return {false, false, gamma, 1 - gamma, double(classes - 1)};
    if (name == "adm") return {false, true, 0, 1};
    if (name == "atm") return {false, true, 1, 1};
    if (name == "ats") return {false, false, 1, 1};
    throw std::invalid_argument("this kernel has no loss named " + name);
  }
};

// The feasible set of one row. A cap of 0: no variable.
template <class T>
struct FeasibleSet {
  T own_cap, cap;  // of one variable
  T total;         // of their sum

  FeasibleSet(const CoupledLoss& loss, T C)
      : own_cap(loss.own > 0 ? (loss.simplex ? unlimited : static_cast<T>(loss.own * C)) : T(0)),
        cap(loss.others > 0 ? (loss.simplex ? unlimited : static_cast<T>(loss.others * C)) : T(0)),
        total(loss.simplex ? C : unlimited) {}

 private:
  static constexpr T unlimited = std::numeric_limits<T>::infinity();
};

// The curvature with which variables that share a total C move. Where C k is so small that a unit of the
// margin, which moves them by 1 / k, hides C from the rounding of A, the dual is taken to curve more than it
// does: each step still raises it.
template <class A>
A workable_curvature(A k, A C) {
  return C > 0 ? std::max(k, std::sqrt(std::numeric_limits<A>::epsilon()) / C) : k;
}

// Simplex: what the variables leave of C_i is the variable of "no violation". Is it in use, but for rounding?
template <class T>
bool has_slack(double sum, double C) {
  return C - sum > 32 * std::numeric_limits<T>::epsilon() * C;
}

}  // namespace manyclass
