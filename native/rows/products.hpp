// Products of rows with each other.
#pragma once
#include <cstdint>
#include <vector>

#include "rows/layout.hpp"

namespace manyclass {

// Products of row i with others, over the features they share. `mark` has a place for each feature of head
// and tail, and is 0 before and after.
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
