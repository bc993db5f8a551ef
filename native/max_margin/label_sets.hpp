// The labels of each row, any number of them, in ascending order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace manyclass {

struct LabelSets {
  std::vector<int64_t> ptr;
  std::vector<int32_t> label;

  const int32_t* begin(int64_t i) const { return label.data() + ptr[i]; }
  const int32_t* end(int64_t i) const { return label.data() + ptr[i + 1]; }
  int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  bool has(int64_t i, int32_t c) const { return std::binary_search(begin(i), end(i), c); }
};

}  // namespace manyclass
