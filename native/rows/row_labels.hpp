// The labels of rows, any number per row: those of row i are at ptr[i] to ptr[i + 1], each at most once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace manyclass {

struct RowLabels {
  std::vector<int64_t> ptr;
  std::vector<int32_t> labels;

  int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  std::span<const int32_t> operator()(int64_t i) const {
    return {labels.data() + ptr[i], static_cast<size_t>(size(i))};
  }
  // For labels that ascend in each row.
  bool has(int64_t i, int32_t c) const {
    const auto all = (*this)(i);
    return std::binary_search(all.begin(), all.end(), c);
  }
};

}  // namespace manyclass
