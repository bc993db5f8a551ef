// Sparse vectors in CSR form, those of labels or of the nodes of a tree: as a view, and owned.
#pragma once
#include <cstdint>
#include <vector>

namespace manyclass {

template <class T>
struct SparseRowsView {
  const int64_t* ptr;
  const int32_t* index;
  const T* value;
  int64_t rows, columns;
};

template <class T>
struct SparseRows {
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> index;
  std::vector<T> value;
  int64_t columns = 0;

  SparseRowsView<T> view() const {
    return {ptr.data(), index.data(), value.data(), std::ssize(ptr) - 1, columns};
  }
};

// The positive entries.
template <class T>
SparseRows<T> positive_part(const SparseRowsView<T>& given) {
  SparseRows<T> kept;
  kept.columns = given.columns;
  for (int64_t i = 0; i < given.rows; ++i) {
    for (int64_t e = given.ptr[i]; e < given.ptr[i + 1]; ++e)
      if (given.value[e] > 0) {
        kept.index.push_back(given.index[e]);
        kept.value.push_back(given.value[e]);
      }
    kept.ptr.push_back(std::ssize(kept.index));
  }
  return kept;
}

// The transposed matrix; entries of a column are in the order of the rows.
template <class T>
SparseRows<T> transposed(const SparseRowsView<T>& given) {
  SparseRows<T> found;
  found.columns = given.rows;
  found.ptr.assign(given.columns + 1, 0);
  for (int64_t e = 0; e < given.ptr[given.rows]; ++e) ++found.ptr[given.index[e] + 1];
  for (int64_t c = 0; c < given.columns; ++c) found.ptr[c + 1] += found.ptr[c];
  found.index.resize(found.ptr.back());
  found.value.resize(found.ptr.back());
  std::vector<int64_t> next(found.ptr.begin(), found.ptr.end() - 1);
  for (int64_t i = 0; i < given.rows; ++i)
    for (int64_t e = given.ptr[i]; e < given.ptr[i + 1]; ++e) {
      const int64_t at = next[given.index[e]]++;
      found.index[at] = static_cast<int32_t>(i);
      found.value[at] = given.value[e];
    }
  return found;
}

}  // namespace manyclass
