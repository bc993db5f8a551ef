// The sums V = sum_i x_i u_i' by features, and the weights that an elastic net makes of them:
//
//     w_jc = soft(v_jc, lambda) / tau,      soft(v, lambda) = v - clip(v, -lambda, lambda).
//
// A feature has a value for the labels that some row with the feature uses, or has used. They are a list,
// with those of weight 0 behind the others, so that a score reads nothing else; and an index by label. Where
// as many labels have a value that a dense row is smaller, there is one. Memory so follows the non-zeros.
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

  // How many weights a score reads.
  int64_t reads() const { return is_dense() ? static_cast<int64_t>(dense_.size()) : nonzero_; }

  // s_c += x w_c tau for all labels; touch(c) before each where the row is a list.
  template <class Touch>
  void add_to(T x, T* s, Touch touch) const {
    const T lambda = lambda_;
    const int64_t dense = static_cast<int64_t>(dense_.size());
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

  // v_c += change. Gives soft(v_c, lambda) before and after.
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

  // All values anew: `many` labels that ascend.
  template <class Values>
  void assign(const std::vector<int32_t>& labels, const Values& values, int64_t K) {
    *this = ShrunkRow{lambda_};
    const int64_t many = static_cast<int64_t>(labels.size());
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

  // f(label, v) for all that have a value.
  template <class F>
  void for_each(F f) const {
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

  static constexpr int64_t most_unindexed = 8;  // a short list is searched from its beginning

  // A listed value takes its entry and one and a half to three places of the index.
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

  // Its place in the list, or -1 where the row has become dense.
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

  // Where the index has a label that is listed.
  size_t place(int32_t label) const {
    size_t at = slot(label);
    while (list_[index_[at]].label != label) at = (at + 1) & (index_.size() - 1);
    return at;
  }

  T lambda_ = 0;
  int32_t nonzero_ = 0;         // entries with a weight: the first ones
  std::vector<Entry> list_;     // empty where the row is dense
  std::vector<int32_t> index_;  // hashed labels: places in the list, or -1; empty for a short list
  std::vector<T> dense_;
};

}  // namespace manyclass
