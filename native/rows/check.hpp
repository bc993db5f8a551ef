// Checks whether rows can be used as they are: well-formed, finite, and short enough for the arithmetic.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace manyclass {

// row: the first row that is not finite or too long, or one of the constants below. longest: the largest
// squared length among the rows that passed.
struct RowCheck {
  static constexpr int64_t clean = -1, malformed = -2;
  int64_t row = clean;
  double longest = 0;
};

// Whether all values of one row are finite and |x|^2 <= most; if so, updates `longest`. Without a limit
// (most = infinity), |x|^2 may overflow as long as the values are finite.
template <class X>
bool check_row(const X* value, int64_t count, double most, double& longest) {
  double square = 0;
#pragma omp simd reduction(+ : square)
  for (int64_t e = 0; e < count; ++e) square += double(value[e]) * double(value[e]);
  if (std::isfinite(square)
          ? square > most
          : std::isfinite(most) || !std::all_of(value, value + count, [](X x) { return std::isfinite(x); }))
    return false;
  longest = std::max(longest, square);
  return true;
}

// Sparse rows: row pointers must ascend from 0 to at most `stored`, and the indices of each row must ascend
// strictly and be below `features`.
template <class X, class I>
RowCheck check_rows(const I* ptr, const I* index, const X* value, int64_t rows, int64_t features,
                    int64_t stored, double most) {
  RowCheck found{RowCheck::malformed};
  if (rows < 0 || ptr[0] != 0) return found;
  for (int64_t i = 0; i < rows; ++i)
    if (ptr[i] > ptr[i + 1]) return found;
  if (ptr[rows] > stored) return found;
  int64_t unfit = RowCheck::clean;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t last = -1;
    bool ascending = true;
    for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
      ascending = ascending && index[e] > last;
      last = index[e];
    }
    if (!ascending || last >= features) return found;
    if (unfit < 0 && !check_row(value + ptr[i], ptr[i + 1] - ptr[i], most, found.longest)) unfit = i;
  }
  found.row = unfit;
  return found;
}

template <class X>
RowCheck check_dense_rows(const X* value, int64_t rows, int64_t features, double most) {
  RowCheck found;
  for (int64_t i = 0; i < rows; ++i)
    if (!check_row(value + i * features, features, most, found.longest)) {
      found.row = i;
      break;
    }
  return found;
}

}  // namespace manyclass
