// The classes of rows, any number per row: those of row i are at ptr[i] to ptr[i + 1], each at most once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace manyclass {

struct RowLabels {
  std::vector<int64_t> ptr;
  std::vector<int32_t> labels;

  std::span<const int32_t> operator()(int64_t i) const {
    return {labels.data() + ptr[i], static_cast<size_t>(ptr[i + 1] - ptr[i])};
  }
};

}  // namespace manyclass
