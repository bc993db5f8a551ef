// A caller's sparse matrix.
#pragma once
#include <cstdint>

namespace manyclass {

// CSR arrays that belong to the caller. The optional constant feature has index n_features.
template <class X, class I, class P>
struct CsrView {
  const P* ptr;
  const I* index;
  const X* value;
  int64_t n_rows, n_features;
  double constant;  // the value of the constant feature, 0 if there is none

  int64_t row_begin(int64_t i) const { return ptr[i]; }
  int64_t row_end(int64_t i) const { return ptr[i + 1]; }
};

}  // namespace manyclass
