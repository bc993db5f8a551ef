// Rows as callers have them.
#pragma once
#include <cstdint>

namespace manyclass {

// A sparse matrix by rows, not owned. The optional constant feature has index n_features.
template <class X, class I, class P>
struct CsrView {
  const P* ptr;
  const I* index;
  const X* value;
  int64_t n_rows, n_features;
  double constant;  // value of the constant feature; 0: none

  int64_t row_begin(int64_t i) const { return ptr[i]; }
  int64_t row_end(int64_t i) const { return ptr[i + 1]; }
};

}  // namespace manyclass
