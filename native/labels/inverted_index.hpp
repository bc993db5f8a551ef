// An inverted index: for each feature the rows that have it, by descending absolute value.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "parallel/team.hpp"
#include "rows/sparse_rows.hpp"

namespace manyclass {

// The largest number of entries and the largest norm of any row.
struct RowBounds {
  template <class T>
  explicit RowBounds(const SparseRowsView<T>& X) {
    for (int64_t i = 0; i < X.n_rows; ++i) {
      double squares = 0;
      for (int64_t e = X.ptr[i]; e < X.ptr[i + 1]; ++e) squares += double(X.value[e]) * double(X.value[e]);
      entries = std::max(entries, X.ptr[i + 1] - X.ptr[i]);
      norm = std::max(norm, std::sqrt(squares));
    }
  }
  int64_t entries = 0;
  double norm = 0;
};

template <class T>
class InvertedIndex {
 public:
  struct Entry {
    int32_t row;
    T value;
  };

  InvertedIndex(const SparseRowsView<T>& X, int threads)
      : ptr_(X.n_features + 1, 0), entries_(X.entries()), signs_(X.n_features, 0) {
    for (int64_t e = X.ptr[0]; e < X.ptr[X.n_rows]; ++e) ++ptr_[X.index[e] + 1];
    for (int64_t f = 0; f < X.n_features; ++f) ptr_[f + 1] += ptr_[f];
    std::vector<int64_t> next(ptr_.begin(), ptr_.end() - 1);
    for (int64_t i = 0; i < X.n_rows; ++i)
      for (int64_t e = X.ptr[i]; e < X.ptr[i + 1]; ++e)
        entries_[next[X.index[e]]++] = {static_cast<int32_t>(i), X.value[e]};
    constexpr int64_t at_once = 256;
    team_tasks((X.n_features + at_once - 1) / at_once, threads, [&](int64_t part) {
      for (int64_t f = part * at_once; f < std::min(X.n_features, (part + 1) * at_once); ++f) order(f);
    });
  }

  const Entry* begin(int64_t f) const { return entries_.data() + ptr_[f]; }
  const Entry* end(int64_t f) const { return entries_.data() + ptr_[f + 1]; }

  // The number of entries of a feature whose absolute value is above `least`.
  int64_t count_above(int64_t f, double least) const {
    return std::partition_point(begin(f), end(f),
                                [&](const Entry& e) { return std::abs(double(e.value)) > least; }) -
           begin(f);
  }

  // The most that weight w of feature f can add to the score of any row.
  double most(int64_t f, double w) const {
    const bool can_add = w > 0 ? signs_[f] & positive : signs_[f] & negative;
    return can_add ? std::abs(w) * std::abs(double(begin(f)->value)) : 0.0;
  }

  int64_t bytes() const {
    return static_cast<int64_t>(ptr_.size() * sizeof(int64_t) + entries_.size() * sizeof(Entry) +
                                signs_.size());
  }

 private:
  static constexpr uint8_t positive = 1, negative = 2;

  void order(int64_t f) {
    Entry* const first = entries_.data() + ptr_[f];
    Entry* const last = entries_.data() + ptr_[f + 1];
    for (const Entry* e = first; e < last; ++e)
      signs_[f] |= e->value > 0 ? positive : e->value < 0 ? negative : 0;
    // Stable, so that entries of equal value stay in the order of rows.
    std::stable_sort(first, last,
                     [](const Entry& a, const Entry& b) { return std::abs(a.value) > std::abs(b.value); });
  }

  std::vector<int64_t> ptr_;
  std::vector<Entry> entries_;
  std::vector<uint8_t> signs_;
};

}  // namespace manyclass
