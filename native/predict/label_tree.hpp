// Finds the best labels of a row by beam search in a tree.
//
// The leaves are the labels, in the order of LabelClusters. The weights of a node are the elementwise maximum
// of the positive parts of its labels' weights, and its intercept is the largest of theirs. So for a row
// without negative values, the score of a node is at least that of every label below it. At each level the
// children of the kept nodes are scored, and the best `beam` of them are kept. The scores of labels are
// exactly the model's, summed in the same order: the search may miss labels, but it never misstates a score.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "parallel/tasks.hpp"
#include "rows/sparse_rows.hpp"
#include "simd/memory.hpp"

namespace manyclass {

// The boundaries of the children of all nodes of a level, given the boundaries of the nodes, as positions in
// the order of the labels.
inline std::vector<int64_t> divide_nodes(const std::vector<int64_t>& bounds, int64_t branching) {
  std::vector<int64_t> found;
  for (size_t node = 0; node + 1 < bounds.size(); ++node)
    for (int64_t child = 0; child < branching; ++child)
      found.push_back(bounds[node] + (bounds[node + 1] - bounds[node]) * child / branching);
  found.push_back(bounds.back());
  return found;
}

// The positive entries.
template <class T>
SparseRows<T> positive_part(const SparseRowsView<T>& given) {
  SparseRows<T> kept;
  for (int64_t i = 0; i < given.n_rows; ++i) {
    for (int64_t e = given.ptr[i]; e < given.ptr[i + 1]; ++e)
      if (given.value[e] > 0) kept.add(given.index[e], given.value[e]);
    kept.end_row();
  }
  return kept;
}

// The transposed matrix; entries of a column are in the order of the rows.
template <class T>
SparseRows<T> transposed(const SparseRowsView<T>& given) {
  return sorted_rows<T>(given.n_features, [&](auto see) {
    for (int64_t i = 0; i < given.n_rows; ++i)
      for (int64_t e = given.ptr[i]; e < given.ptr[i + 1]; ++e) see(given.index[e], i, given.value[e]);
  });
}

// The nodes of a level, or the labels, in order; children of one parent are neighbours. Weights are stored by
// feature, so that only nodes with the feature are read.
template <class T>
class TreeLevel {
 public:
  // vectors: the weights by node. The children of parent p are first[p] .. first[p + 1].
  TreeLevel(const SparseRowsView<T>& vectors, std::vector<int64_t> first, std::vector<T> bias)
      : by_feature_(transposed(vectors)),
        first_(std::move(first)),
        bias_(std::move(bias)),
        scale_(1 / static_cast<double>(vectors.n_rows)) {}

  // The children of a kept parent: nodes begin .. end, whose scores start at `at`.
  struct Family {
    int32_t begin, end;
    int64_t at;
  };

  // The children of the given parents, which ascend.
  void families_of(const std::vector<int64_t>& parents, std::vector<Family>& found) const {
    found.clear();
    for (int64_t p : parents) {
      const int64_t at = found.empty() ? 0 : found.back().at + found.back().end - found.back().begin;
      found.push_back({static_cast<int32_t>(first_[p]), static_cast<int32_t>(first_[p + 1]), at});
    }
  }

  // The scores of all members of the families.
  //
  // The weights of a feature are in the order of the nodes. The search for those of a family starts where
  // they would be if the nodes with the feature were evenly spread. All these positions are prefetched first;
  // otherwise the search would wait for memory at each of them.
  void score(const auto& X, int64_t row, const std::vector<Family>& families, std::vector<T>& s) const {
    s.assign(families.empty() ? 0 : families.back().at + families.back().end - families.back().begin, 0);
    for (int64_t e = X.row_begin(row); e < X.row_end(row); ++e) {
      const int64_t first = by_feature_.ptr[X.index[e]], size = by_feature_.ptr[X.index[e] + 1] - first;
      if (size <= short_row)
        fetch(first);
      else
        for (const Family& f : families) fetch(first + likely(size, f));
    }
    for (int64_t e = X.row_begin(row); e < X.row_end(row); ++e)
      if (X.value[e] != 0) add(X.index[e], static_cast<T>(X.value[e]), families, s.data());
    for (const Family& f : families)
      for (int32_t node = f.begin; node < f.end; ++node) s[f.at + node - f.begin] += bias_[node];
  }

  int64_t nbytes() const {
    return static_cast<int64_t>((first_.size() + by_feature_.ptr.size()) * sizeof(int64_t) +
                                by_feature_.index.size() * (sizeof(int32_t) + sizeof(T)) +
                                bias_.size() * sizeof(T));
  }

 private:
  static constexpr int64_t short_row = 32;

  void fetch(int64_t place) const {
    __builtin_prefetch(by_feature_.index.data() + place);
    __builtin_prefetch(by_feature_.value.data() + place);
  }

  // The position of a family among `size` evenly spread nodes.
  int64_t likely(int64_t size, const Family& f) const {
    return static_cast<int64_t>(static_cast<double>(size) * static_cast<double>(f.begin) * scale_);
  }

  void add(int64_t feature, T x, const std::vector<Family>& families, T* s) const {
    const int64_t first = by_feature_.ptr[feature], size = by_feature_.ptr[feature + 1] - first;
    const int32_t *nodes = by_feature_.index.data() + first, *last = nodes + size, *now = nodes;
    const T* value = by_feature_.value.data() + first;
    for (size_t j = 0; j < families.size();) {
      const Family& f = families[j];
      now = at_least(now, size <= short_row ? now : nodes + likely(size, f), last, f.begin);
      if (now == last) return;
      T* scores = s + f.at - f.begin;
      for (; now != last && *now < f.end; ++now) scores[*now] += x * value[now - nodes];
      if (now == last) return;
      while (j < families.size() && families[j].end <= *now) ++j;  // families without the feature
    }
  }

  // The first of ascending numbers that is at least `wanted`: exponential search from a guess, then binary
  // search.
  static const int32_t* at_least(const int32_t* first, const int32_t* guess, const int32_t* last,
                                 int32_t wanted) {
    guess = std::max(guess, first);
    int64_t step = 1;
    if (guess < last && *guess < wanted) {
      while (step < last - guess && guess[step] < wanted) {
        guess += step;
        step *= 2;
      }
      return std::lower_bound(guess + 1, std::min(guess + step, last), wanted);
    }
    while (step < guess - first && guess[-step] >= wanted) {
      guess -= step;
      step *= 2;
    }
    return std::lower_bound(std::max(guess - step, first), guess, wanted);
  }

  SparseRows<T> by_feature_;
  std::vector<int64_t> first_;
  std::vector<T> bias_;
  double scale_;  // one over the number of nodes
};

template <class T>
class LabelTree {
 public:
  // weights: by label, features ascending. order: the labels in the order of the leaves. Copies everything.
  LabelTree(const SparseRowsView<T>& weights, const int32_t* order, const T* intercept, int64_t branching,
            int threads)
      : order_(order, order + weights.n_rows), features_(weights.n_features) {
    // The boundaries of the nodes of each level, from the root down.
    std::vector<std::vector<int64_t>> bounds{{0, weights.n_rows}};
    for (int64_t widest = weights.n_rows; widest > branching; widest = (widest + branching - 1) / branching)
      bounds.push_back(divide_nodes(bounds.back(), branching));
    SparseRows<T> vectors = in_order(weights);
    std::vector<T> bias(weights.n_rows);
    for (int64_t i = 0; i < weights.n_rows; ++i) bias[i] = intercept[order_[i]];
    std::vector<int64_t> first = bounds.back();
    for (int64_t depth = std::ssize(bounds) - 1;; --depth) {
      levels_.emplace_back(vectors.view(features_), first, bias);
      if (depth == 0) break;
      vectors = maxima(depth + 1 == std::ssize(bounds) ? positive_part(vectors.view(features_)) : vectors,
                       first, threads);
      std::vector<T> largest;
      for (size_t p = 0; p + 1 < first.size(); ++p)
        largest.push_back(*std::max_element(&bias[first[p]], &bias[first[p]] + (first[p + 1] - first[p])));
      bias = std::move(largest);
      first.assign(1, 0);
      for (size_t p = 1; p < bounds[depth - 1].size(); ++p)
        first.push_back(static_cast<int64_t>(p) * branching);
    }
    std::reverse(levels_.begin(), levels_.end());
    fewest_ = weights.n_rows;
    for (size_t p = 0; p + 1 < bounds.back().size(); ++p)
      fewest_ = std::min(fewest_, bounds.back()[p + 1] - bounds.back()[p]);
  }

  // The k best labels that the beam finds, best first; ties go to the lower label.
  void best_labels(const auto& X, int64_t k, int64_t beam, int32_t* labels, T* scores, int threads) const {
    beam = std::max(beam, (k + fewest_ - 1) / fewest_);  // ensures at least k labels
    struct Scratch {
      std::vector<Found> found;
      std::vector<int64_t> kept;
      std::vector<typename TreeLevel<T>::Family> families;
      std::vector<T> s;
    };
    const auto search = [&](int64_t i, Scratch& scratch) {
      auto& [found, kept, families, s] = scratch;
      kept.assign(1, 0);
      for (size_t depth = 0; depth < levels_.size(); ++depth) {
        if (depth > 0) keep_best(found, beam, kept);
        score_children(X, i, levels_[depth], kept, families, s, found);
      }
      for (auto& [score, place] : found) place = order_[place];
      std::partial_sort(found.begin(), found.begin() + k, found.end(), before);
      for (int64_t r = 0; r < k; ++r) {
        labels[i * k + r] = static_cast<int32_t>(found[r].second);
        scores[i * k + r] = found[r].first;
      }
    };
    parallel_tasks(X.n_rows, 16, threads, [] { return Scratch(); }, search);
  }

  int64_t labels() const { return std::ssize(order_); }
  int64_t features() const { return features_; }
  int64_t levels() const { return std::ssize(levels_); }

  int64_t nbytes() const {
    return static_cast<int64_t>(order_.size() * sizeof(int32_t)) +
           total_of(levels_, [](const auto& level) { return level.nbytes(); });
  }

 private:
  using Found = std::pair<T, int64_t>;  // score, and position in the level

  static bool before(const Found& a, const Found& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  }

  static void keep_best(std::vector<Found>& found, int64_t beam, std::vector<int64_t>& kept) {
    if (std::ssize(found) > beam) {
      std::nth_element(found.begin(), found.begin() + beam, found.end(), before);
      found.resize(beam);
    }
    kept.clear();
    for (const auto& [score, place] : found) kept.push_back(place);
    std::sort(kept.begin(), kept.end());
  }

  static void score_children(const auto& X, int64_t i, const TreeLevel<T>& level,
                             const std::vector<int64_t>& nodes,
                             std::vector<typename TreeLevel<T>::Family>& families, std::vector<T>& s,
                             std::vector<Found>& found) {
    level.families_of(nodes, families);
    level.score(X, i, families, s);
    found.clear();
    const T* score = s.data();
    for (const auto& f : families)
      for (int64_t c = f.begin; c < f.end; ++c) found.emplace_back(*score++, c);
  }

  SparseRows<T> in_order(const SparseRowsView<T>& weights) const {
    SparseRows<T> found;
    found.index.reserve(weights.ptr[weights.n_rows]);
    found.value.reserve(weights.ptr[weights.n_rows]);
    for (int32_t l : order_) {
      const int64_t first = weights.ptr[l];
      found.add(weights.index + first, weights.value + first, weights.ptr[l + 1] - first);
      found.end_row();
    }
    return found;
  }

  // The elementwise maximum of the vectors first[p] .. first[p + 1] for each p.
  SparseRows<T> maxima(const SparseRows<T>& vectors, const std::vector<int64_t>& first, int threads) const {
    const int64_t nodes = std::ssize(first) - 1;
    std::vector<std::vector<std::pair<int32_t, T>>> parts(nodes);
    const auto find = [&](int64_t p, std::vector<T>& largest) {
      std::vector<int32_t> used;
      for (int64_t e = vectors.ptr[first[p]]; e < vectors.ptr[first[p + 1]]; ++e) {
        T& now = largest[vectors.index[e]];
        if (now == 0) used.push_back(vectors.index[e]);
        now = std::max(now, vectors.value[e]);
      }
      std::sort(used.begin(), used.end());
      for (int32_t f : used) parts[p].emplace_back(f, std::exchange(largest[f], 0));
    };
    parallel_tasks(nodes, 16, threads, [&] { return std::vector<T>(features_, 0); }, find);
    SparseRows<T> found;
    for (const auto& part : parts) {
      for (const auto& [f, value] : part) found.add(f, value);
      found.end_row();
    }
    return found;
  }

  std::vector<int32_t> order_;
  int64_t features_;
  std::vector<TreeLevel<T>> levels_;  // from the children of the root to the labels
  int64_t fewest_ = 1;                // the least number of labels of a node just above the labels
};

}  // namespace manyclass
