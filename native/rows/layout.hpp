// The rows as the solvers read them.
//
// Features are ordered by the number of rows they occur in, and fall into three groups:
//   head    frequent features; each has a dense row of weights.
//   tail    rare features, without dense weights. w_jc = sum_i x_ij coef_ic has few terms, so scores compute
//           it from the dual variables of these rows; or, where not all rows are in memory, read it from a
//           list of weights (dual/weight_lists.hpp).
//   single  features of one row. They affect no other row, so training only needs their squares.
// So memory grows with the non-zeros, not with features times classes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace manyclass {

// An allocator for arrays that are written right after they grow: new elements are not zeroed first.
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

// Which features are in the head, which in the tail, and which in neither.
struct FeaturePlaces {
  std::vector<int64_t> head_features, tail_features;  // as in Layout
  // By feature: its position p in the head, -2 - p for position p in the tail, or -1 for neither.
  std::vector<int32_t> place;

  // rows: the number of rows in which each feature occurs. Features of at most `tail_rows` rows go to the
  // tail, and features of one row to neither. If `constant`, the last feature is the constant one; every row
  // reads it, so it is always in the head.
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

// k = x.x as the solvers use it. A row so short that 1 / k would not be finite counts as a row without
// features: with penalties that fit the type (solvers/scale.py), it changes the objective by less than
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
  bool listed = false;              // the weights of the tail are in lists, and there are no columns
  std::vector<int64_t> column_ptr;  // the tail by columns: the rows that have a feature
  std::vector<int32_t> column_row;
  std::vector<T> column_value;
  std::vector<int64_t> single_ptr, single_index;  // by row, in the caller's numbering
  std::vector<T> single_value;
  std::vector<T> norm;       // k_i = x_i.x_i
  std::vector<T> tail_norm;  // the part of k_i from features without weights
  double longest = largest;  // an upper bound of all k_i

  int64_t heads() const { return std::ssize(head_features); }
  int64_t tails() const { return std::ssize(tail_features); }

  // f(feature, value) for the features of row i that other rows have too; the tail is numbered after the
  // head.
  void for_each_shared(int64_t i, auto f) const {
    for (int64_t h = head_ptr[i]; h < head_ptr[i + 1]; ++h) f(head_index[h], head_value[h]);
    for (int64_t t = tail_ptr[i]; t < tail_ptr[i + 1]; ++t) f(heads() + tail_index[t], tail_value[t]);
  }

  // f(feature, value) for all features of row i, in the caller's numbering.
  void for_each(int64_t i, auto f) const {
    for (int64_t h = head_ptr[i]; h < head_ptr[i + 1]; ++h) f(head_features[head_index[h]], head_value[h]);
    for (int64_t t = tail_ptr[i]; t < tail_ptr[i + 1]; ++t) f(tail_features[tail_index[t]], tail_value[t]);
    for (int64_t j = single_ptr[i]; j < single_ptr[i + 1]; ++j) f(single_index[j], single_value[j]);
  }

  // One more than the largest index of a feature.
  int64_t count_features() const {
    int64_t last = -1;
    for (const auto* some : {&head_features, &tail_features, &single_index})
      for (int64_t f : *some) last = std::max(last, f);
    return last + 1;
  }

  int64_t bytes() const {
    auto size = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
    return size(head_features) + size(tail_features) + size(head_ptr) + size(tail_ptr) + size(head_index) +
           size(tail_index) + size(head_value) + size(tail_value) + size(column_ptr) + size(column_row) +
           size(column_value) + size(single_ptr) + size(single_index) + size(single_value) + size(norm) +
           size(tail_norm);
  }
};

}  // namespace manyclass
