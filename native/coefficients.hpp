// The coefficients of w_c = sum_i coef_ic x_i by classes, whatever loss they come from, and the model made of them.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "layout.hpp"
#include "weight_block.hpp"

namespace manyclass {

template <class V>
struct Coefficients {
  std::vector<int64_t> ptr;  // by class
  std::vector<int32_t> row;  // ascending within a class
  std::vector<V> value;

  int64_t classes() const { return static_cast<int64_t>(ptr.size()) - 1; }
};

// The classes [first, last) of a weight block, with the coefficient of each row at hand.
template <class T, class V>
class BlockOfClasses {
 public:
  static constexpr int width = WeightBlock<T>::width;

  BlockOfClasses(const Layout<T>& rows, const Coefficients<V>& coef) : rows_(rows), coef_(coef), weights_(rows) {}

  typename WeightBlock<T>::Norms load_classes(int64_t first) {
    first_ = first;
    last_ = std::min<int64_t>(coef_.classes(), first + width);
    weights_.clear();
    for (int64_t c = first_; c < last_; ++c)
      for (int64_t e = coef_.ptr[c]; e < coef_.ptr[c + 1]; ++e)
        weights_.add(coef_.row[e], static_cast<int>(c - first_), coef_.value[e]);
    return weights_.finish();
  }

  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  const WeightBlock<T>& weights() const { return weights_; }

  // The score of one row for one class of the block.
  double score(int64_t i, int64_t c) const {
    double s[width];
    weights_.score(i, s);
    const auto begin = coef_.row.begin() + coef_.ptr[c], end = coef_.row.begin() + coef_.ptr[c + 1];
    const auto at = std::lower_bound(begin, end, static_cast<int32_t>(i));
    const bool has = at != end && *at == i;
    return s[c - first_] + (has ? weights_.single_score(i, coef_.value[at - coef_.row.begin()]) : 0.0);
  }

  // visit(i, s, coef): scores and coefficients of row i for the classes of the block, rows in order
  template <class F>
  void for_each_row(F visit) const {
    const int64_t many = last_ - first_;
    int64_t next[width];
    for (int64_t l = 0; l < many; ++l) next[l] = coef_.ptr[first_ + l];
    alignas(64) double s[width], coef[width] = {};
    for (int64_t i = 0; i < rows_.n; ++i) {
      weights_.score(i, s);
      for (int64_t l = 0; l < many; ++l) {
        coef[l] = 0;
        if (next[l] < coef_.ptr[first_ + l + 1] && coef_.row[next[l]] == i) {
          coef[l] = coef_.value[next[l]++];
          s[l] += weights_.single_score(i, coef[l]);
        }
      }
      visit(i, s, coef);
    }
  }

 private:
  const Layout<T>& rows_;
  const Coefficients<V>& coef_;
  WeightBlock<T> weights_;
  int64_t first_ = 0, last_ = 0;
};

// The model's weights, feature-major, rounded to T. Twice over the classes: count the non-zeros of each feature,
// then fill, so that nothing but the result is ever held. Each thread has a range of classes of its own, hence
// its own place within a feature: classes ascend without sorting.
template <class T, class V>
class ModelWeights {
 public:
  ModelWeights(const Layout<T>& rows, const Coefficients<V>& coef, int64_t features, int threads)
      : rows_(rows), coef_(coef), features_(features), bounds_(threads + 1, coef.classes()) {
    bounds_[0] = 0;
    for (int t = 1; t < threads; ++t) {
      const int64_t share = coef.ptr.back() / threads * t;
      const int64_t c = std::lower_bound(coef.ptr.begin(), coef.ptr.end(), share) - coef.ptr.begin();
      bounds_[t] = std::min(coef.classes(), (c + width - 1) / width * width);
    }
  }

  // Non-zeros by feature, of each thread's classes.
  std::vector<std::vector<int64_t>> count() const {
    std::vector<std::vector<int64_t>> counts(bounds_.size() - 1, std::vector<int64_t>(features_, 0));
    run([&](int t, int64_t f, int64_t, T) { ++counts[t][f]; });
    return counts;
  }

  // out: features x stride, zeroed
  void fill_dense(T* out, int64_t stride) const {
    run([&](int, int64_t f, int64_t c, T w) { out[f * stride + c] = w; });
  }

  // `counts` as above; `ptr` from their sums
  void fill_sparse(std::vector<std::vector<int64_t>> counts, const int64_t* ptr, int32_t* classes, T* values) const {
    for (int64_t f = 0; f < features_; ++f) {
      int64_t at = ptr[f];
      for (auto& part : counts) at += std::exchange(part[f], at);
    }
    run([&](int t, int64_t f, int64_t c, T w) {
      const int64_t at = counts[t][f]++;
      classes[at] = static_cast<int32_t>(c);
      values[at] = w;
    });
  }

 private:
  static constexpr int width = WeightBlock<T>::width;

  // visit(thread, feature, class, weight) for every non-zero weight
  template <class F>
  void run(F visit) const {
    const int threads = static_cast<int>(bounds_.size()) - 1;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
      BlockOfClasses<T, V> block(rows_, coef_);
      for (int64_t first = bounds_[t]; first < bounds_[t + 1]; first += width) {
        block.load_classes(first);
        for (int64_t f = 0; f < block.weights().shared_features(); ++f) {
          const int64_t original =
              f < rows_.heads() ? rows_.head_features[f] : rows_.tail_features[f - rows_.heads()];
          const double* w = block.weights().feature(f);
          for (int64_t c = first; c < block.last(); ++c)
            if (w[c - first] != 0) visit(t, original, c, static_cast<T>(w[c - first]));
        }
        for (int64_t c = first; c < block.last(); ++c)
          for (int64_t e = coef_.ptr[c]; e < coef_.ptr[c + 1]; ++e)
            for (int64_t j = rows_.single_ptr[coef_.row[e]]; j < rows_.single_ptr[coef_.row[e] + 1]; ++j) {
              const T w = static_cast<T>(double(coef_.value[e]) * rows_.single_value[j]);
              if (w != 0) visit(t, rows_.single_index[j], c, w);
            }
      }
    }
  }

  const Layout<T>& rows_;
  const Coefficients<V>& coef_;
  int64_t features_;
  std::vector<int64_t> bounds_;  // of the threads' classes
};

}  // namespace manyclass
