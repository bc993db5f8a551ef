// Finds the rows that a label scores above -1, by an inverted index. Rows of other labels at -1 or below have
// no loss, so only the rows found here, and the label's own, matter to its loss and dual variables.
//
// If the bias is at most -1, a row must gain theta = -1 - bias from the features that it shares with the
// label. The search skips index entries that add at most `cut`, where `cut` is such that all skipped entries
// together add at most theta / 8 to any row. Rows that gain 7/8 theta from the other entries are scored in
// full. So the result is exact. The search reads few entries, because features of many rows have small
// weights and, in text, small values.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "labels/inverted_index.hpp"

namespace manyclass {

struct ScoredRow {
  int32_t row;
  double score;
};

// By descending score, then by ascending row.
inline constexpr auto scored_before = [](const ScoredRow& a, const ScoredRow& b) {
  return a.score > b.score || (a.score == b.score && a.row < b.row);
};

// The weights of one label as the model will store them. bias: the contribution of the constant feature.
struct LabelWeights {
  std::vector<int32_t> feature;
  std::vector<double> weight;
  double bias = 0;
};

template <class T>
class LabelSearch {
 public:
  LabelSearch(const SparseRowsView<T>& X, const InvertedIndex<T>& index)
      : X_(X), index_(index), gained_(X.n_rows, 0.0), weight_(X.n_features, 0.0) {}

  // Finds all rows above -1, in ascending order. Returns false, and finds nothing, if the bias is above -1 or
  // more than `most` entries would have to be read.
  bool rows_above(const LabelWeights& w, int64_t most, std::vector<ScoredRow>& found) {
    found.clear();
    const double theta = -1 - w.bias;
    if (theta < 0) return false;
    choose_features(w);
    const double left_out = theta / 8, cut = cut_for(left_out);
    if (entries_above(cut, most) > most) return false;
    gather(cut);
    Expanded expanded(*this, w);
    // Sums are rounded differently from scores, so rows slightly below the bound are scored too.
    const double enough = theta - left_out - 1e-9;
    for (int32_t i : touched_) {
      if (gained_[i] > enough) {
        const double s = score(w.bias, i);
        if (s > -1) found.push_back({i, s});
      }
      gained_[i] = 0;
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
    return true;
  }

  // About the `count` rows with the highest scores, best first, from about `most` entries of the index: skips
  // the entries that add least to a score. The scores returned are exact.
  void best_rows(const LabelWeights& w, int64_t count, int64_t most, std::vector<ScoredRow>& found) {
    found.clear();
    choose_features(w);
    double cut = 0;
    for (const Used& u : used_) cut = std::max(cut, u.most);
    for (double factor : {3.0, 1.5})
      for (int round = 0; round < 10 && entries_above(cut / factor, most) <= most; ++round) cut /= factor;
    gather(cut);
    for (int32_t i : touched_) {
      found.push_back({i, gained_[i]});
      gained_[i] = 0;
    }
    if (std::ssize(found) > count) {
      std::nth_element(found.begin(), found.begin() + count, found.end(), scored_before);
      found.resize(count);
    }
    score_rows(w, found);
    std::sort(found.begin(), found.end(), scored_before);
  }

  void score_rows(const LabelWeights& w, std::vector<ScoredRow>& rows) {
    Expanded expanded(*this, w);
    for (ScoredRow& one : rows) one.score = score(w.bias, one.row);
  }

  int64_t bytes() const { return static_cast<int64_t>((gained_.size() + weight_.size()) * sizeof(double)); }

 private:
  struct Used {
    int32_t feature;
    double weight, most;
  };

  // Expands the weights of a label to an array for the lifetime of this object.
  struct Expanded {
    Expanded(LabelSearch& search, const LabelWeights& w) : search(search), w(w) {
      for (size_t f = 0; f < w.feature.size(); ++f) search.weight_[w.feature[f]] = w.weight[f];
    }
    Expanded(const Expanded&) = delete;
    ~Expanded() {
      for (int32_t f : w.feature) search.weight_[f] = 0;
    }
    LabelSearch& search;
    const LabelWeights& w;
  };

  void choose_features(const LabelWeights& w) {
    used_.clear();
    for (size_t f = 0; f < w.feature.size(); ++f) {
      const double most = index_.most(w.feature[f], w.weight[f]);
      if (most > 0) used_.push_back({w.feature[f], w.weight[f], most});
    }
  }

  // Nearly the largest cut at which no row loses more than `left_out`.
  double cut_for(double left_out) const {
    double cut = 0;
    for (int round = 0; round < 4; ++round) {
      double small = 0;
      int64_t large = 0;
      for (const Used& u : used_) {
        if (u.most <= cut)
          small += u.most;
        else
          ++large;
      }
      if (large == 0) break;
      cut = std::max(cut, (left_out - small) / static_cast<double>(large));
    }
    return cut;
  }

  int64_t entries_above(double cut, int64_t most) const {
    int64_t total = 0;
    for (const Used& u : used_) {
      if (u.most > cut) total += index_.count_above(u.feature, cut / std::abs(u.weight));
      if (total > most) break;
    }
    return total;
  }

  void gather(double cut) {
    touched_.clear();
    for (const Used& u : used_) {
      if (u.most <= cut) continue;
      const double least = cut / std::abs(u.weight);
      for (auto* e = index_.begin(u.feature); e < index_.end(u.feature); ++e) {
        if (!(std::abs(double(e->value)) > least)) break;
        const double gain = u.weight * double(e->value);
        if (gain <= 0) continue;
        if (gained_[e->row] == 0) touched_.push_back(e->row);
        gained_[e->row] += gain;
      }
    }
  }

  double score(double bias, int32_t i) const {
    double s = bias;
    for (int64_t e = X_.ptr[i]; e < X_.ptr[i + 1]; ++e) s += weight_[X_.index[e]] * double(X_.value[e]);
    return s;
  }

  const SparseRowsView<T>& X_;
  const InvertedIndex<T>& index_;
  std::vector<double> gained_;  // by row; all 0 between calls
  std::vector<double> weight_;  // by feature; all 0 between calls
  std::vector<Used> used_;
  std::vector<int32_t> touched_;
};

}  // namespace manyclass
