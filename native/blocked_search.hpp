// Which rows do some labels score above -1? One pass over all rows for up to four vectors of labels at once:
// in the type of the weights, with a bound on its rounding errors; rows that are near enough are scored again
// in float64, one by one. So the answer is exact.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "inverted_index.hpp"
#include "label_search.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
class BlockedSearch {
 public:
  static constexpr int lanes = Lanes<T>::count, most_vectors = 4;

  // room: bytes for the weights of the labels of a pass, if one vector of them fits.
  BlockedSearch(const RowsInPlace<T>& X, int64_t room) : X_(X), used_(X.d, 0) {
    const int64_t vector = X.d * lanes * static_cast<int64_t>(sizeof(T));
    vectors_ = static_cast<int>(std::clamp<int64_t>(room / std::max<int64_t>(1, vector), 1, most_vectors));
    if (vectors_ == 3) vectors_ = 2;  // passes are for one, two or four
    for (int64_t i = 0; i < X.n; ++i) {
      double norm = 0;
      for (int64_t e = X.ptr[i]; e < X.ptr[i + 1]; ++e) norm += double(X.value[e]) * double(X.value[e]);
      longest_ = std::max(longest_, X.ptr[i + 1] - X.ptr[i]);
      largest_ = std::max(largest_, norm);
    }
    largest_ = std::sqrt(largest_);
  }

  // Labels of one pass.
  int64_t at_once() const { return vectors_ * lanes; }

  // Of each label, all rows above -1 in the order of rows.
  std::vector<std::vector<ScoredRow>> rows_above(const std::vector<const LabelWeights*>& labels,
                                                 LabelSearch<T>& exact) {
    std::vector<std::vector<ScoredRow>> found(labels.size());
    const int vectors = labels.size() > 2 * lanes ? vectors_
                        : labels.size() > lanes   ? std::min(2, vectors_)
                                                  : 1;
    if (W_.size() == 0) W_ = Buffer<T>(X_.d * at_once());
    if (vectors == 4)
      pass<4>(labels, found);
    else if (vectors == 2)
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
    return W_.size() * static_cast<int64_t>(sizeof(T)) + static_cast<int64_t>(used_.size());
  }

 private:
  template <int vectors>
  void pass(const std::vector<const LabelWeights*>& labels, std::vector<std::vector<ScoredRow>>& found) {
    constexpr int64_t width = vectors * lanes;
    T* const W = W_.data();
    // What a score has to exceed in T; lanes without a label never do.
    alignas(64) T least[width];
    std::fill_n(least, width, std::numeric_limits<T>::infinity());
    for (size_t l = 0; l < labels.size(); ++l) {
      const LabelWeights& w = *labels[l];
      double norm = 0;
      for (size_t f = 0; f < w.feature.size(); ++f) {
        W[int64_t(w.feature[f]) * width + l] = static_cast<T>(w.weight[f]);
        used_[w.feature[f]] = 1;
        norm += w.weight[f] * w.weight[f];
      }
      // Each of n additions and products rounds by half an ulp of at most |w||x|.
      const double unit = std::numeric_limits<T>::epsilon();
      const double error =
          unit * (double(longest_ + 4) * std::sqrt(norm) * largest_ + 2 + 2 * std::abs(w.bias));
      least[l] = static_cast<T>(-1 - w.bias - error);
    }
    for (int64_t i = 0; i < X_.n; ++i) {
      vec<T> s[vectors] = {};
      for (int64_t e = X_.ptr[i]; e < X_.ptr[i + 1]; ++e) {
        if (!used_[X_.index[e]]) continue;
        const T* w = W + int64_t(X_.index[e]) * width;
        for (int v = 0; v < vectors; ++v) s[v] += X_.value[e] * load(w + v * lanes);
      }
      for (int v = 0; v < vectors; ++v) {
        const vec<T> bound = load(least + v * lanes), one = vec<T>{} + 1;
        for (uint32_t above = nonzero_lanes<T>(s[v] > bound ? one : vec<T>{}); above != 0; above &= above - 1)
          found[v * lanes + __builtin_ctz(above)].push_back({static_cast<int32_t>(i), 0.0});
      }
    }
    for (const LabelWeights* label : labels)
      for (int32_t f : label->feature) {
        std::fill_n(W + int64_t(f) * width, width, T(0));
        used_[f] = 0;
      }
  }

  const RowsInPlace<T>& X_;
  int vectors_;
  int64_t longest_ = 0;  // entries of a row
  double largest_ = 0;   // norm of a row
  Buffer<T> W_;          // features x labels of a pass; all 0 between passes
  std::vector<uint8_t> used_;
};

}  // namespace manyclass
