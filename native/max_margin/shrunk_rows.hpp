// Rows of V = sum_i x_i u_i', one per feature j, and the weights of the elastic net that follow from them:
//
//     w_jc = soft(v_jc, lambda) / tau,      soft(v, lambda) = v - clip(v, -lambda, lambda).
//
// A row has a value for each label that some row of X with this feature uses or has used. The values form a
// list, non-zero weights first, so that scores read only those, with a hash index by label. Once a dense row
// would be smaller, the list becomes one. So memory grows with the non-zeros.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace manyclass {

template <class T>
inline T soft(T v, T lambda) {
  return v - std::min(std::max(v, -lambda), lambda);
}

template <class T>
class ShrunkRow {
 public:
  struct Entry {
    int32_t label;
    T v;
  };

  void set_lambda(T lambda) { lambda_ = lambda; }

  // The number of weights that a score reads.
  int64_t reads() const { return is_dense() ? std::ssize(dense_) : nonzero_; }

  // s_c += x soft(v_c, lambda) for all labels. If the row is a list, calls touch(c) before each.
  void add_to(T x, T* s, auto touch) const {
    const T lambda = lambda_;
    const int64_t dense = std::ssize(dense_);
#pragma omp simd
    for (int64_t c = 0; c < dense; ++c) s[c] += x * soft(dense_[c], lambda);
    for (int32_t e = 0; e < nonzero_; ++e) {
      touch(list_[e].label);
      s[list_[e].label] += x * soft(list_[e].v, lambda);
    }
  }
  bool is_dense() const { return !dense_.empty(); }

  // soft(v_c, lambda)
  T shrunk(int32_t label) const {
    if (is_dense()) return soft(dense_[label], lambda_);
    const int32_t e = find(label);
    return e < nonzero_ && e >= 0 ? soft(list_[e].v, lambda_) : T(0);
  }

  // v_c += change. Returns soft(v_c, lambda) before and after.
  std::pair<T, T> add(int32_t label, T change, int64_t K) {
    T* v;
    int32_t e = -1;
    if (is_dense()) {
      v = &dense_[label];
    } else {
      e = find(label);
      if (e < 0) {
        e = append(label, K);
        if (e < 0) return add(label, change, K);
      }
      v = &list_[e].v;
    }
    const T before = soft(*v, lambda_);
    *v += change;
    const T after = soft(*v, lambda_);
    if (e >= 0 && (before != 0) != (after != 0)) {
      if (after != 0)
        exchange(e, nonzero_++);
      else
        exchange(e, --nonzero_);
    }
    return {before, after};
  }

  // Replaces all values; labels ascend.
  void assign(const std::vector<int32_t>& labels, const auto& values, int64_t K) {
    *this = ShrunkRow{lambda_};
    const int64_t many = std::ssize(labels);
    if (dense_is_smaller(many, K)) {
      dense_.assign(K, T(0));
      for (int64_t e = 0; e < many; ++e) dense_[labels[e]] = static_cast<T>(values[e]);
      return;
    }
    list_.resize(many);
    for (int64_t e = 0; e < many; ++e) list_[e] = {labels[e], static_cast<T>(values[e])};
    std::stable_partition(list_.begin(), list_.end(),
                          [&](const Entry& entry) { return soft(entry.v, lambda_) != 0; });
    while (nonzero_ < many && soft(list_[nonzero_].v, lambda_) != 0) ++nonzero_;
    if (many > most_unindexed) make_index();
  }

  // f(label, v) for all labels that have a value.
  void for_each(auto f) const {
    for (size_t c = 0; c < dense_.size(); ++c) f(static_cast<int32_t>(c), dense_[c]);
    for (const Entry& entry : list_) f(entry.label, entry.v);
  }
  int64_t size() const { return static_cast<int64_t>(is_dense() ? dense_.size() : list_.size()); }

  int64_t bytes() const {
    return static_cast<int64_t>(sizeof(*this) + dense_.capacity() * sizeof(T) +
                                list_.capacity() * sizeof(Entry) + index_.capacity() * sizeof(int32_t));
  }

  ShrunkRow() = default;

 private:
  explicit ShrunkRow(T lambda) : lambda_(lambda) {}

  static constexpr int64_t most_unindexed = 8;  // shorter lists are searched linearly

  // A listed value takes an entry, and one and a half to three slots of the index.
  static bool dense_is_smaller(int64_t many, int64_t K) {
    return many * static_cast<int64_t>(sizeof(Entry) + 2 * sizeof(int32_t)) >=
           K * static_cast<int64_t>(sizeof(T));
  }

  size_t slot(int32_t label) const {
    const uint32_t hash = static_cast<uint32_t>(label) * 2654435769u;
    return (hash ^ (hash >> 15)) & (index_.size() - 1);
  }

  int32_t find(int32_t label) const {
    if (index_.empty()) {
      for (size_t e = 0; e < list_.size(); ++e)
        if (list_[e].label == label) return static_cast<int32_t>(e);
      return -1;
    }
    for (size_t at = slot(label);; at = (at + 1) & (index_.size() - 1)) {
      const int32_t e = index_[at];
      if (e < 0 || list_[e].label == label) return e;
    }
  }

  // Returns the position of the new entry, or -1 if the row has become dense.
  int32_t append(int32_t label, int64_t K) {
    const int32_t e = static_cast<int32_t>(list_.size());
    if (dense_is_smaller(e + 1, K)) {
      dense_.assign(K, T(0));
      for (const Entry& entry : list_) dense_[entry.label] = entry.v;
      list_ = {};
      index_ = {};
      nonzero_ = 0;
      return -1;
    }
    list_.push_back({label, T(0)});
    if (e >= most_unindexed) {
      if (3 * list_.size() > 2 * index_.size())
        make_index();
      else
        put(e);
    }
    return e;
  }

  void make_index() {
    size_t size = 16;
    while (2 * size < 3 * list_.size()) size *= 2;
    index_.assign(size, -1);
    for (size_t e = 0; e < list_.size(); ++e) put(static_cast<int32_t>(e));
  }

  void put(int32_t e) {
    size_t at = slot(list_[e].label);
    while (index_[at] >= 0) at = (at + 1) & (index_.size() - 1);
    index_[at] = e;
  }

  void exchange(int32_t a, int32_t b) {
    if (a == b) return;
    if (!index_.empty()) {
      const size_t at_a = place(list_[a].label), at_b = place(list_[b].label);
      std::swap(index_[at_a], index_[at_b]);
    }
    std::swap(list_[a], list_[b]);
  }

  // The slot of a label that is in the list.
  size_t place(int32_t label) const {
    size_t at = slot(label);
    while (list_[index_[at]].label != label) at = (at + 1) & (index_.size() - 1);
    return at;
  }

  T lambda_ = 0;
  int32_t nonzero_ = 0;         // the first entries have a non-zero weight
  std::vector<Entry> list_;     // empty if the row is dense
  std::vector<int32_t> index_;  // a hash table of positions in the list, or -1; empty for a short list
  std::vector<T> dense_;
};

}  // namespace manyclass
