// Whether sparse rows can be read as they are.
#pragma once
#include <cmath>
#include <cstdint>

namespace manyclass {

// Row pointers that ascend from 0 to `stored` at the most, indices of each row that ascend strictly within
// the features, values that are finite.
template <class X, class I>
bool rows_are_clean(const I* ptr, const I* index, const X* value, int64_t rows, int64_t features,
                    int64_t stored) {
  if (ptr[0] != 0) return false;
  for (int64_t i = 0; i < rows; ++i)
    if (ptr[i] > ptr[i + 1]) return false;
  if (ptr[rows] > stored) return false;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t last = -1;
    bool clean = true;
    for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
      clean = clean && index[e] > last && std::isfinite(value[e]);
      last = index[e];
    }
    if (!clean || last >= features) return false;
  }
  return true;
}

}  // namespace manyclass
