// The rows as the solvers read them.
//
// Features are ordered by the number of rows they occur in. The frequent ones (the head) have a dense weight
// row each. A rare one (the tail) has none: its weights are sum_i x_ij coef_i over its few rows, so a score
// takes them from the dual variables of these rows; or, where these may be elsewhere, from lists of weights.
// A feature of a single row needs nothing but its square: it only ever meets its own row. Memory so follows
// the non-zeros.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "planes.hpp"
#include "vector.hpp"

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

// Of arrays that are written as soon as they have grown: what is new in them is not cleared before.
template <class T>
struct Uncleared : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Uncleared<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class Value>
  void construct(U* place, Value&& value) {
    ::new (static_cast<void*>(place)) U(std::forward<Value>(value));
  }
};

// k = x.x as the solvers use it. A row so short that 1 / k would not be finite counts as one without
// features: with penalties that a type can hold (solvers/scale.py) it moves no objective by as much as
// rounding does.
template <class T>
T usable_norm(double norm, double longest) {
  if (!(norm <= longest)) throw std::overflow_error("a row is too long for the type of the weights");
  return norm < double(std::numeric_limits<T>::min()) ? T(0) : static_cast<T>(norm);
}

template <class T>
struct Layout {
  static constexpr double largest = std::numeric_limits<T>::max();

  int64_t n = 0;
  std::vector<int64_t> head_features, tail_features;  // their indices in the caller's matrix
  std::vector<int64_t> head_ptr, tail_ptr;            // by row
  std::vector<int32_t, Uncleared<int32_t>> head_index;
  std::vector<T, Uncleared<T>> head_value;
  std::vector<int32_t> tail_index;
  std::vector<T> tail_value;
  bool listed = false;              // weights of the tail are in lists (weight_lists.hpp): no columns
  std::vector<int64_t> column_ptr;  // the tail by columns: who else has this feature
  std::vector<int32_t> column_row;
  std::vector<T> column_value;
  std::vector<int64_t> single_ptr, single_index;  // by row, the features of this row alone
  std::vector<T> single_value;
  std::vector<T> norm;       // k_i = x_i.x_i
  std::vector<T> tail_norm;  // the part of k_i that features without weights make
  double longest = largest;  // what no k_i may exceed

  int64_t heads() const { return static_cast<int64_t>(head_features.size()); }
  int64_t tails() const { return static_cast<int64_t>(tail_features.size()); }

  // f(feature among head and tail, value) for the features of row i that other rows have, too
  template <class F>
  void for_each_shared(int64_t i, F f) const {
    for (int64_t h = head_ptr[i]; h < head_ptr[i + 1]; ++h) f(head_index[h], head_value[h]);
    for (int64_t t = tail_ptr[i]; t < tail_ptr[i + 1]; ++t) f(heads() + tail_index[t], tail_value[t]);
  }

  int64_t bytes() const {
    auto size = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
    return size(head_features) + size(tail_features) + size(head_ptr) + size(tail_ptr) + size(head_index) +
           size(tail_index) + size(head_value) + size(tail_value) + size(column_ptr) + size(column_row) +
           size(column_value) + size(single_ptr) + size(single_index) + size(single_value) + size(norm) +
           size(tail_norm);
  }
};

// s = W' x_i, from the head, for up to tile_width classes.
template <class A, class T>
inline void score_row(const Layout<T>& rows, int64_t i, const T* W, int64_t stride, A* s, int64_t width) {
  const int64_t b = rows.head_ptr[i], e = rows.head_ptr[i + 1];
  score_tile(W, stride, rows.head_index.data() + b, rows.head_value.data() + b, e - b, s, width);
}

// The same for the rows [first, last) and all columns of W, tile by tile.
template <class A, class T>
void score_rows(const Layout<T>& rows, int64_t first, int64_t last, const T* W, int64_t stride, A* s) {
  for (int64_t c = 0; c < stride; c += tile_width<A>)
    for (int64_t i = first; i < last; ++i)
      score_row(rows, i, W + c, stride, s + (i - first) * stride + c, std::min(tile_width<A>, stride - c));
}

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

// Which features are in the head and which in the tail.
struct FeaturePlaces {
  std::vector<int64_t> head_features, tail_features;  // as in Layout
  std::vector<int32_t> place;  // in the head: position; in the tail: -2 - position; -1: nowhere

  // rows: in how many rows each feature occurs. `constant`: the last one is the constant feature, which
  // always has a dense row: it is read by every row. `tail_rows`: features in at most this many go to the
  // tail.
  FeaturePlaces(const int64_t* rows, int64_t features, bool constant, int64_t tail_rows)
      : place(features, -1) {
    std::vector<int64_t> order(features);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] > rows[b]; });
    for (int64_t f : order) {
      if (rows[f] > tail_rows || (constant && f == features - 1)) {
        place[f] = static_cast<int32_t>(head_features.size());
        head_features.push_back(f);
      } else if (rows[f] > 1) {
        place[f] = -2 - static_cast<int32_t>(tail_features.size());
        tail_features.push_back(f);
      }
    }
  }
};

template <class T, class View>
Layout<T> lay_out(const View& X, const FeaturePlaces& places) {
  Layout<T> out;
  const int64_t n = X.n_rows, d = X.n_features + (X.constant != 0);
  if (n >= INT32_MAX) throw std::length_error("more than 2^31 - 2 rows in one block");
  const std::vector<int32_t>& place = places.place;
  if (static_cast<int64_t>(place.size()) != d) throw std::logic_error("places of other features");
  out.n = n;
  out.head_features = places.head_features;
  out.tail_features = places.tail_features;
  out.norm.assign(n, 0);
  out.tail_norm.assign(n, 0);
  out.head_ptr.assign(n + 1, 0);
  out.tail_ptr.assign(n + 1, 0);
  out.single_ptr.assign(n + 1, 0);
  out.column_ptr.assign(out.tail_features.size() + 1, 0);
  // Twice over the rows: count, so that the arrays are allocated once at their size, then fill.
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

// Rows that come in parts, in place of those that were there before, whose memory they take. `longest`: the
// squared length that none of them may exceed.
template <class T>
void begin_rows(Layout<T>& out, const FeaturePlaces& places, int64_t rows, int64_t entries, double longest) {
  out.n = 0;
  out.listed = true;  // the other rows of a feature may be elsewhere
  out.longest = std::min(longest, Layout<T>::largest);
  if (out.head_features != places.head_features) out.head_features = places.head_features;
  if (out.tail_features != places.tail_features) out.tail_features = places.tail_features;
  for (auto* ptr : {&out.head_ptr, &out.tail_ptr, &out.single_ptr}) {
    ptr->reserve(rows + 1);
    ptr->assign(1, 0);
  }
  out.column_ptr.assign(1, 0);
  out.norm.clear();
  out.norm.reserve(rows);
  out.tail_norm.clear();
  out.tail_norm.reserve(rows);
  out.head_index.clear();
  out.head_index.reserve(entries);
  out.head_value.clear();
  out.head_value.reserve(entries);
  out.tail_index.clear();
  out.tail_value.clear();
  out.single_index.clear();
  out.single_value.clear();
}

// Adds the next part, row after row.
template <class T>
class RowAdder {
 public:
  // rows, entries: how many there will be.
  RowAdder(Layout<T>& out, const FeaturePlaces& places, int64_t n_features, double constant, int64_t rows,
           int64_t entries)
      : out_(out), places_(places), constant_(constant), h_(static_cast<int64_t>(out.head_index.size())) {
    if (out.n + rows >= INT32_MAX) throw std::length_error("more than 2^31 - 2 rows at once");
    if (n_features + (constant != 0) > static_cast<int64_t>(places.place.size()))
      throw std::logic_error("places of other features");
    out.head_index.resize(h_ + entries + (constant != 0) * rows + 1);
    out.head_value.resize(out.head_index.size());
  }
  RowAdder(const RowAdder&) = delete;

  // Entries of the row under way.
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
      // Written in any case, and kept if it is one of the head.
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
    out_.tail_ptr.push_back(static_cast<int64_t>(out_.tail_index.size()));
    out_.single_ptr.push_back(static_cast<int64_t>(out_.single_index.size()));
    out_.norm.push_back(usable_norm<T>(norm_ + constant_ * constant_, out_.longest));
    out_.tail_norm.push_back(out_.norm.back() == 0 ? T(0) : static_cast<T>(single_norm_));
    norm_ = single_norm_ = 0;
    ++out_.n;
  }

  // After the last row.
  void end() {
    out_.head_index.resize(h_);
    out_.head_value.resize(h_);
  }

 private:
  static double squared(T x) { return double(x) * double(x); }

  Layout<T>& out_;
  const FeaturePlaces& places_;
  const double constant_;
  int64_t h_;  // behind the last entry of the head
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

// The same of rows in planes (planes.hpp), which are decoded on the way, a few thousand entries at a time:
// what is decoded is used while it is in the cache. Index and X: types of indices and values.
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

// All rows are here: `tail_rows` as FeaturePlaces has it.
template <class T, class View>
Layout<T> make_layout(const View& X, int64_t tail_rows) {
  const int64_t n = X.n_rows, d = X.n_features + (X.constant != 0);
  std::vector<int64_t> rows(d, 0);
  for (int64_t e = X.row_begin(0); e < X.row_end(n - 1); ++e) rows[X.index[e]] += X.value[e] != 0;
  if (X.constant != 0) rows[d - 1] = n;
  return lay_out<T>(X, FeaturePlaces(rows.data(), d, X.constant != 0, tail_rows));
}

}  // namespace manyclass
