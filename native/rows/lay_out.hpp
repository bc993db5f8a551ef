// Makes a Layout from a whole matrix in memory. (rows/row_adder.hpp makes one from parts.)
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "rows/layout.hpp"

namespace manyclass {

template <class T, class View>
Layout<T> lay_out(const View& X, const FeaturePlaces& places) {
  Layout<T> out;
  const int64_t n = X.n_rows, d = X.n_features + (X.constant != 0);
  if (n >= INT32_MAX) throw std::length_error("more than 2^31 - 2 rows in one block");
  const std::vector<int32_t>& place = places.place;
  if (std::ssize(place) != d) throw std::logic_error("the places are for a different set of features");
  out.n = n;
  out.head_features = places.head_features;
  out.tail_features = places.tail_features;
  out.norm.assign(n, 0);
  out.tail_norm.assign(n, 0);
  out.head_ptr.assign(n + 1, 0);
  out.tail_ptr.assign(n + 1, 0);
  out.single_ptr.assign(n + 1, 0);
  out.column_ptr.assign(out.tail_features.size() + 1, 0);
  // Two passes over the rows: count, so that the arrays are allocated once, then fill.
  for (int64_t i = 0; i < n; ++i) {
    int64_t in_head = X.constant != 0, in_tail = 0, single = 0;
    for (int64_t e = X.row_begin(i); e < X.row_end(i); ++e) {
      if (X.value[e] == 0) continue;
      const int32_t p = place[X.index[e]];
      in_head += p >= 0;
      in_tail += p < -1;
      single += p == -1;
      if (p < -1) ++out.column_ptr[-1 - p];
    }
    out.head_ptr[i + 1] = out.head_ptr[i] + in_head;
    out.tail_ptr[i + 1] = out.tail_ptr[i] + in_tail;
    out.single_ptr[i + 1] = out.single_ptr[i] + single;
  }
  for (size_t t = 0; t < out.tail_features.size(); ++t) out.column_ptr[t + 1] += out.column_ptr[t];
  out.head_index.resize(out.head_ptr[n]);
  out.head_value.resize(out.head_ptr[n]);
  out.tail_index.resize(out.tail_ptr[n]);
  out.tail_value.resize(out.tail_ptr[n]);
  out.single_index.resize(out.single_ptr[n]);
  out.single_value.resize(out.single_ptr[n]);
  out.column_row.resize(out.tail_ptr[n]);
  out.column_value.resize(out.tail_ptr[n]);
  std::vector<int64_t> fill(out.column_ptr.begin(), out.column_ptr.end());
  for (int64_t i = 0; i < n; ++i) {
    int64_t h = out.head_ptr[i], t = out.tail_ptr[i], single = out.single_ptr[i];
    double norm = X.constant * X.constant, tail_norm = 0;
    for (int64_t e = X.row_begin(i); e < X.row_end(i); ++e) {
      if (X.value[e] == 0) continue;
      const int32_t p = place[X.index[e]];
      const T x = static_cast<T>(X.value[e]);
      norm += double(x) * double(x);
      if (p >= 0) {
        out.head_index[h] = p;
        out.head_value[h++] = x;
        continue;
      }
      tail_norm += double(x) * double(x);
      if (p < -1) {
        const int32_t column = -2 - p;
        out.tail_index[t] = column;
        out.tail_value[t++] = x;
        out.column_row[fill[column]] = static_cast<int32_t>(i);
        out.column_value[fill[column]++] = x;
      } else {
        out.single_index[single] = X.index[e];
        out.single_value[single++] = x;
      }
    }
    if (X.constant != 0) {
      out.head_index[h] = place[d - 1];
      out.head_value[h] = static_cast<T>(X.constant);
    }
    out.norm[i] = usable_norm<T>(norm, out.longest);
    out.tail_norm[i] = out.norm[i] == 0 ? T(0) : static_cast<T>(tail_norm);
  }
  return out;
}

// Counts the rows of each feature first; `tail_rows` as in FeaturePlaces.
template <class T, class View>
Layout<T> make_layout(const View& X, int64_t tail_rows) {
  const int64_t n = X.n_rows, d = X.n_features + (X.constant != 0);
  std::vector<int64_t> rows(d, 0);
  for (int64_t e = X.row_begin(0); e < X.row_end(n - 1); ++e) rows[X.index[e]] += X.value[e] != 0;
  if (X.constant != 0) rows[d - 1] = n;
  return lay_out<T>(X, FeaturePlaces(rows.data(), d, X.constant != 0, tail_rows));
}

}  // namespace manyclass
