// Makes a Layout from rows that arrive in parts. (rows/lay_out.hpp makes one from a whole matrix.)
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "formats/planes.hpp"
#include "rows/layout.hpp"

namespace manyclass {

// Empties `out` for new rows but keeps its memory. `longest`: an upper bound of their squared lengths.
template <class T>
void begin_rows(Layout<T>& out, const FeaturePlaces& places, int64_t rows, int64_t entries, double longest) {
  out.n = 0;
  out.listed = true;  // other rows with the same feature may be in other blocks
  out.longest = std::min(longest, Layout<T>::largest);
  if (out.head_features != places.head_features) out.head_features = places.head_features;
  if (out.tail_features != places.tail_features) out.tail_features = places.tail_features;
  for (auto* ptr : {&out.head_ptr, &out.tail_ptr, &out.single_ptr}) {
    ptr->reserve(rows + 1);
    ptr->assign(1, 0);
  }
  out.column_ptr.assign(1, 0);
  const auto empty = [](int64_t room, auto&... arrays) {
    (arrays.clear(), ...);
    (arrays.reserve(room), ...);
  };
  empty(rows, out.norm, out.tail_norm);
  empty(entries, out.head_index, out.head_value);
  empty(0, out.tail_index, out.tail_value, out.single_index, out.single_value);
}

// Appends one part, row after row.
template <class T>
class RowAdder {
 public:
  // rows, entries: the size of the part.
  RowAdder(Layout<T>& out, const FeaturePlaces& places, int64_t n_features, double constant, int64_t rows,
           int64_t entries)
      : out_(out), places_(places), constant_(constant), h_(std::ssize(out.head_index)) {
    if (out.n + rows >= INT32_MAX) throw std::length_error("more than 2^31 - 2 rows at once");
    if (n_features + (constant != 0) > std::ssize(places.place))
      throw std::logic_error("the places are for a different set of features");
    out.head_index.resize(h_ + entries + (constant != 0) * rows + 1);
    out.head_value.resize(out.head_index.size());
  }
  RowAdder(const RowAdder&) = delete;

  // Entries of the current row; may be called several times per row.
  template <class Index, class X>
  void add(const Index* index, const X* value, int64_t count) {
    const int32_t* place = places_.place.data();
    int32_t* to_index = out_.head_index.data();
    T* to_value = out_.head_value.data();
    int64_t h = h_;
    double norm = 0;
#pragma omp simd reduction(+ : norm)
    for (int64_t e = 0; e < count; ++e) norm += squared(static_cast<T>(value[e]));
    norm_ += norm;
    for (int64_t e = 0; e < count; ++e) {
      const int32_t p = place[index[e]];
      const T x = static_cast<T>(value[e]);
      // Always written, to avoid a branch; overwritten by the next entry if it is not one of the head.
      to_index[h] = p;
      to_value[h] = x;
      h += (p >= 0) & (x != 0);
      if (p >= 0 || x == 0) continue;
      if (p < -1) {
        out_.tail_index.push_back(-2 - p);
        out_.tail_value.push_back(x);
      } else {
        single_norm_ += squared(x);
        out_.single_index.push_back(static_cast<int64_t>(index[e]));
        out_.single_value.push_back(x);
      }
    }
    h_ = h;
  }

  void end_row() {
    if (constant_ != 0) {
      out_.head_index[h_] = places_.place.back();
      out_.head_value[h_++] = static_cast<T>(constant_);
    }
    out_.head_ptr.push_back(h_);
    out_.tail_ptr.push_back(std::ssize(out_.tail_index));
    out_.single_ptr.push_back(std::ssize(out_.single_index));
    out_.norm.push_back(usable_norm<T>(norm_ + constant_ * constant_, out_.longest));
    out_.tail_norm.push_back(out_.norm.back() == 0 ? T(0) : static_cast<T>(single_norm_));
    norm_ = single_norm_ = 0;
    ++out_.n;
  }

  // To be called after the last row.
  void end() {
    out_.head_index.resize(h_);
    out_.head_value.resize(h_);
  }

 private:
  static double squared(T x) { return double(x) * double(x); }

  Layout<T>& out_;
  const FeaturePlaces& places_;
  const double constant_;
  int64_t h_;  // one past the last entry of the head
  double norm_ = 0, single_norm_ = 0;
};

template <class T, class View>
void add_rows(Layout<T>& out, const View& X, const FeaturePlaces& places) {
  RowAdder<T> adder(out, places, X.n_features, X.constant, X.n_rows, X.row_begin(X.n_rows) - X.row_begin(0));
  for (int64_t i = 0; i < X.n_rows; ++i) {
    adder.add(X.index + X.row_begin(i), X.value + X.row_begin(i), X.row_end(i) - X.row_begin(i));
    adder.end_row();
  }
  adder.end();
}

// Appends rows stored as byte planes (formats/planes.hpp). They are decoded a few thousand entries at a time,
// and used while they are in the cache. Index and X are the types of indices and values.
template <class Index, class X, class T>
void add_planes(Layout<T>& out, const int64_t* ptr, int64_t rows, const std::vector<Plane>& index_planes,
                const std::vector<Plane>& value_planes, int64_t n_features, double constant,
                const FeaturePlaces& places) {
  using IndexWord = std::make_unsigned_t<Index>;
  using ValueWord = std::conditional_t<sizeof(X) == 4, uint32_t, uint64_t>;
  RowAdder<T> adder(out, places, n_features, constant, rows, ptr[rows]);
  Joiner<IndexWord> join_indices(index_planes);
  Joiner<ValueWord> join_values(value_planes);
  RowIndices<Index, IndexWord> indices(ptr, static_cast<uint64_t>(n_features));
  std::vector<IndexWord> index(Plane::at_once);
  std::vector<ValueWord> words(Plane::at_once);
  std::vector<X> value(Plane::at_once);
  int64_t row = 0;
  for_each_part(ptr[rows], [&](int64_t first, int64_t count) {
    join_indices.part(first, count, index.data());
    indices.part(index.data(), first, count);
    join_values.part(first, count, words.data());
    std::memcpy(value.data(), words.data(), sizeof(X) * count);
    for (int64_t begin = first; begin < first + count;) {
      for (; ptr[row + 1] == begin; ++row) adder.end_row();
      const int64_t end = std::min(ptr[row + 1], first + count);
      adder.add(index.data() + (begin - first), value.data() + (begin - first), end - begin);
      begin = end;
    }
  });
  for (; row < rows; ++row) adder.end_row();
  adder.end();
}

}  // namespace manyclass
