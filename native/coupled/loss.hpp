// The losses that couple the classes of a row, as lines of one table.
//
//   A row has a dual variable alpha_c >= 0 for each class with a margin. Margins and their targets are
//     relative   s_y - s_c >= 1  for c != y       the coefficients of a row sum to zero by construction
//     absolute   s_y >= own_target,  -s_c >= 1    the weights are centred: sum_c w_c = 0
//   The excess e_c is the target minus the margin. The aggregation of excesses determines the feasible set:
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
  double own, others;  // caps in units of C_i, 0 for no variable; for a simplex, whether there is a variable
  double own_target = 1;

  // RM weights the row's own class by `gamma` and the others by 1 - gamma.
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

// The feasible set of one row. A cap of 0 means that there is no variable.
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

// The curvature for the step of variables that share a total C. A unit of margin moves them by 1 / k; if C k
// is so small that C would vanish in the rounding of such a step, a larger curvature is assumed. Shorter
// steps still raise the dual.
template <class A>
A workable_curvature(A k, A C) {
  return C > 0 ? std::max(k, std::sqrt(std::numeric_limits<A>::epsilon()) / C) : k;
}

// For a simplex, C_i minus the sum of the variables is the variable of "no violation". Whether it is
// positive, beyond rounding.
template <class T>
bool has_slack(double sum, double C) {
  return C - sum > 32 * std::numeric_limits<T>::epsilon() * C;
}

}  // namespace manyclass
