// Sparse matrices by rows (CSR): in arrays that belong to the caller, and owned.
#pragma once
#include <cstdint>
#include <vector>

namespace manyclass {

// The optional constant feature has index n_features.
template <class X, class I, class P>
struct CsrView {
  const P* ptr;
  const I* index;
  const X* value;
  int64_t n_rows, n_features;
  double constant = 0;  // the value of the constant feature, 0 if there is none

  int64_t row_begin(int64_t i) const { return ptr[i]; }
  int64_t row_end(int64_t i) const { return ptr[i + 1]; }
  int64_t entries() const { return ptr[n_rows]; }
};

template <class T>
using SparseRowsView = CsrView<T, int32_t, int64_t>;

template <class T>
struct SparseRows {
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> index;
  std::vector<T> value;

  int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  SparseRowsView<T> view(int64_t n_features) const {
    return {ptr.data(), index.data(), value.data(), std::ssize(ptr) - 1, n_features};
  }

  // Appends entries to the last row, and ends it.
  void add(int32_t at, T x) {
    index.push_back(at);
    value.push_back(x);
  }
  void add(const int32_t* indices, const T* values, int64_t count) {
    index.insert(index.end(), indices, indices + count);
    value.insert(value.end(), values, values + count);
  }
  void end_row() { ptr.push_back(std::ssize(index)); }
};

// Sorts entries into n rows. for_each_entry(f) calls f(row, index, value) for all of them, twice; entries of
// a row stay in this order.
template <class T, class ForEachEntry>
SparseRows<T> sorted_rows(int64_t n, ForEachEntry for_each_entry) {
  SparseRows<T> out;
  auto& ptr = out.ptr;
  ptr.assign(n + 1, 0);
  for_each_entry([&](int64_t i, int64_t, T) { ++ptr[i + 1]; });
  for (int64_t i = 0; i < n; ++i) ptr[i + 1] += ptr[i];
  out.index.resize(ptr[n]);
  out.value.resize(ptr[n]);
  for_each_entry([&](int64_t i, int64_t at, T x) {
    out.index[ptr[i]] = static_cast<int32_t>(at);
    out.value[ptr[i]++] = x;
  });
  for (int64_t i = n; i > 0; --i) ptr[i] = ptr[i - 1];
  ptr[0] = 0;
  return out;
}

}  // namespace manyclass
