// The row sub-problem of the max-margin loss: a projection onto non-negative vectors a (the row's own labels)
// and b (other labels) with equal sums of at most `total`:
//
//     min 1/2 |a - own|^2 + 1/2 |b - others|^2,     a, b >= 0,     sum a = sum b <= total.
//
//   The solution is a = max(0, own - cut), b = max(0, others - cut'). If the bound `total` is not active, the
//   cuts are cut = -cut' = nu with equal sums; else each side is projected onto the simplex of size `total`.
//   In both cases values join in descending order, as long as they exceed the cut of those before them. A
//   value that joins moves the cut towards itself but never past it, so no value has to leave again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace manyclass {

struct Cuts {
  double own, others;
};

class EqualSums {
 public:
  // `own` must not be empty; `others` may be. A value that was not given would become positive only if it
  // were above the cut of its side.
  Cuts solve(const double* own, int64_t many_own, const double* others, int64_t many_others, double total) {
    sort_into(own_, own, many_own);
    sort_into(others_, others, many_others);
    if (others_.empty() || own_[0] + others_[0] <= 0) return {own_[0], -own_[0]};
    size_t i = 1, j = 1;
    double own_sum = own_[0], others_sum = others_[0], nu;
    while (true) {
      nu = (own_sum - others_sum) / static_cast<double>(i + j);
      if (i < own_.size() && own_[i] > nu)
        own_sum += own_[i++];
      else if (j < others_.size() && others_[j] > -nu)
        others_sum += others_[j++];
      else
        break;
    }
    if (own_sum - static_cast<double>(i) * nu <= total) return {nu, -nu};
    return {simplex_cut(own_, total), simplex_cut(others_, total)};
  }

 private:
  static void sort_into(std::vector<double>& to, const double* v, int64_t many) {
    to.assign(v, v + many);
    std::sort(to.begin(), to.end(), std::greater<>());
  }

  static double simplex_cut(const std::vector<double>& v, double total) {
    double sum = -total, cut = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < v.size() && v[i] > cut; cut = sum / static_cast<double>(i)) sum += v[i++];
    return cut;
  }

  std::vector<double> own_, others_;  // descending
};

}  // namespace manyclass
