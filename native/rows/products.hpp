// Inner products x_i.x_j of rows, over the features they share.
#pragma once
#include <cstdint>
#include <vector>

#include "rows/layout.hpp"

namespace manyclass {

// Products of row i with other rows. `mark` has an entry for each feature of head and tail; it holds x_i
// during the lifetime of this object, and is all 0 before and after.
template <class T>
class RowProducts {
 public:
  RowProducts(const Layout<T>& rows, int64_t i, std::vector<T>& mark) : rows_(rows), i_(i), mark_(mark) {
    rows_.for_each_shared(i_, [&](int64_t f, T x) { mark_[f] = x; });
  }
  RowProducts(const RowProducts&) = delete;
  ~RowProducts() {
    rows_.for_each_shared(i_, [&](int64_t f, T) { mark_[f] = 0; });
  }

  double with(int64_t other) const {
    double product = 0;
    rows_.for_each_shared(other, [&](int64_t f, T x) { product += double(mark_[f]) * x; });
    return product;
  }

 private:
  const Layout<T>& rows_;
  const int64_t i_;
  std::vector<T>& mark_;
};

}  // namespace manyclass
