// Finds the rows that labels score above -1, in one pass over all rows for up to four vectors of labels at
// once. Scores are computed in T, with a bound on their rounding errors; rows within that bound are scored
// again in float64. So the result is exact.
//
// Weights are sparse, and most features are used by few of the labels. A feature that at least one label in
// eight uses has a dense row of weights, one per label; in text these are few enough for the caches. The
// others have lists of labels and weights.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "labels/inverted_index.hpp"
#include "labels/search.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
class BlockedSearch {
 public:
  static constexpr int lanes = Lanes<T>::count, most_vectors = 4;
  static constexpr int64_t at_once = most_vectors * lanes;  // the most labels of one pass

  BlockedSearch(const SparseRowsView<T>& X, const RowBounds& bounds)
      : X_(X), bounds_(bounds), place_(X.n_features, 0), rare_(bounds.entries) {}

  // For each label, all rows above -1, in ascending order.
  std::vector<std::vector<ScoredRow>> rows_above(const std::vector<const LabelWeights*>& labels,
                                                 LabelSearch<T>& exact) {
    std::vector<std::vector<ScoredRow>> found(labels.size());
    if (labels.size() > 2 * lanes)
      pass<4>(labels, found);
    else if (labels.size() > lanes)
      pass<2>(labels, found);
    else
      pass<1>(labels, found);
    for (size_t l = 0; l < labels.size(); ++l) {
      exact.score_rows(*labels[l], found[l]);
      std::erase_if(found[l], [](const ScoredRow& one) { return !(one.score > -1); });
    }
    return found;
  }

  int64_t bytes() const {
    auto size = [](const auto& v) { return static_cast<int64_t>(v.capacity() * sizeof(v[0])); };
    return W_.bytes() + size(place_) + size(rare_) + size(feature_) + size(list_) + size(listed_);
  }

 private:
  struct Listed {
    int32_t label;
    T weight;
  };
  struct RareEntry {
    int32_t list;
    T value;
  };

  // Assigns places to features: p > 0 for row p of W, p < 0 for list -p. Row 0 of W is all 0, for features
  // that no label uses.
  void lay_out(const std::vector<const LabelWeights*>& labels, int64_t width) {
    for (const LabelWeights* label : labels)
      for (int32_t f : label->feature)
        if (place_[f]++ == 0) feature_.push_back(f);
    int32_t dense = 0;
    list_.assign(1, 0);
    for (int32_t f : feature_) {
      const int32_t users = place_[f];
      if (8 * static_cast<size_t>(users) >= labels.size()) {
        place_[f] = ++dense;
      } else {
        place_[f] = -static_cast<int32_t>(list_.size());
        list_.push_back(list_.back() + users);
      }
    }
    const int64_t size = (dense + int64_t(1)) * width;
    W_.reserve(size);
    std::fill_n(W_.data(), size, T(0));
    listed_.resize(list_.back());
    list_.push_back(list_.back());
    for (size_t l = 0; l < labels.size(); ++l)
      for (size_t k = 0; k < labels[l]->feature.size(); ++k) {
        const int32_t place = place_[labels[l]->feature[k]];
        const T weight = static_cast<T>(labels[l]->weight[k]);
        if (place > 0)
          W_.data()[place * width + l] = weight;
        else  // filled from the end, so list_ ends up at the beginnings
          listed_[--list_[-place]] = {static_cast<int32_t>(l), weight};
      }
  }

  void clear() {
    for (int32_t f : feature_) place_[f] = 0;
    feature_.clear();
  }

  template <int vectors>
  void pass(const std::vector<const LabelWeights*>& labels, std::vector<std::vector<ScoredRow>>& found) {
    constexpr int64_t width = vectors * lanes;
    lay_out(labels, width);
    // The bounds that scores in T have to exceed; infinity for lanes without a label.
    alignas(64) T least[width];
    std::fill_n(least, width, std::numeric_limits<T>::infinity());
    for (size_t l = 0; l < labels.size(); ++l) {
      const LabelWeights& w = *labels[l];
      double norm = 0;
      for (double weight : w.weight) norm += weight * weight;
      // Each of n additions and products has a rounding error of at most half an ulp of |w||x|.
      const double unit = std::numeric_limits<T>::epsilon();
      const double error =
          unit * (double(bounds_.entries + 4) * std::sqrt(norm) * bounds_.norm + 2 + 2 * std::abs(w.bias));
      least[l] = static_cast<T>(-1 - w.bias - error);
    }
    const T* const W = W_.data();
    alignas(64) T from_lists[width];
    for (int64_t i = 0; i < X_.n_rows; ++i) {
      vec<T> s[vectors] = {};
      int64_t rare = 0;
      for (int64_t e = X_.ptr[i]; e < X_.ptr[i + 1]; ++e) {
        const int32_t place = place_[X_.index[e]];
        const T* w = W + std::max(place, 0) * width;
        for (int v = 0; v < vectors; ++v) s[v] += X_.value[e] * load(w + v * lanes);
        rare_[rare] = {-place, X_.value[e]};
        rare += place < 0;
      }
      std::fill_n(from_lists, width, T(0));
      for (int64_t r = 0; r < rare; ++r)
        for (int64_t k = list_[rare_[r].list]; k < list_[rare_[r].list + 1]; ++k)
          from_lists[listed_[k].label] += rare_[r].value * listed_[k].weight;
      for (int v = 0; v < vectors; ++v) {
        const vec<T> bound = load(least + v * lanes), one = vec<T>{} + 1;
        s[v] += load(from_lists + v * lanes);
        for (uint32_t above = nonzero_lanes<T>(s[v] > bound ? one : vec<T>{}); above != 0; above &= above - 1)
          found[v * lanes + __builtin_ctz(above)].push_back({static_cast<int32_t>(i), 0.0});
      }
    }
    clear();
  }

  const SparseRowsView<T>& X_;
  const RowBounds bounds_;
  std::vector<int32_t> place_;  // by feature; all 0 between passes
  std::vector<int32_t> feature_;
  Buffer<T> W_;                // dense features x labels of a pass
  std::vector<int64_t> list_;  // the beginnings of the lists
  std::vector<Listed> listed_;
  std::vector<RareEntry> rare_;  // of the current row
};

}  // namespace manyclass
