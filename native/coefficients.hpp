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
// then fill, so that nothing but the result is ever held.
template <class T, class V>
class ModelWeights {
 public:
  ModelWeights(const Layout<T>& rows, const Coefficients<V>& coef, int64_t features, int threads)
      : rows_(rows), coef_(coef), features_(features), threads_(threads) {}

  // Non-zeros of each feature.
  std::vector<int64_t> count() const {
    std::vector<int64_t> total(features_, 0);
    run([&](int64_t f, int32_t, T) {
#pragma omp atomic
      ++total[f];
    });
    return total;
  }

  // out: features x stride, zeroed
  void fill_dense(T* out, int64_t stride) const {
    run([&](int64_t f, int32_t c, T w) { out[f * stride + c] = w; });
  }

  // `ptr` from the counts; classes ascend within a feature.
  void fill_sparse(const int64_t* ptr, int32_t* classes, T* values) const {
    std::vector<int64_t> next(ptr, ptr + features_);
    run([&](int64_t f, int32_t c, T w) {
      int64_t at;
#pragma omp atomic capture
      at = next[f]++;
      classes[at] = c;
      values[at] = w;
    });
#pragma omp parallel num_threads(threads_)
    {
      std::vector<std::pair<int32_t, T>> line;
#pragma omp for schedule(dynamic, 256)
      for (int64_t f = 0; f < features_; ++f) {
        line.clear();
        for (int64_t e = ptr[f]; e < ptr[f + 1]; ++e) line.emplace_back(classes[e], values[e]);
        std::sort(line.begin(), line.end());
        for (int64_t e = ptr[f]; e < ptr[f + 1]; ++e) std::tie(classes[e], values[e]) = line[e - ptr[f]];
      }
    }
  }

 private:
  // visit(feature, class, weight) for every non-zero weight, from several threads
  template <class F>
  void run(F visit) const {
#pragma omp parallel num_threads(threads_)
    {
      BlockOfClasses<T, V> block(rows_, coef_);
#pragma omp for schedule(dynamic)
      for (int64_t first = 0; first < coef_.classes(); first += block.width) {
        block.load_classes(first);
        for (int64_t f = 0; f < block.weights().shared_features(); ++f) {
          const int64_t original =
              f < rows_.heads() ? rows_.head_features[f] : rows_.tail_features[f - rows_.heads()];
          const double* w = block.weights().feature(f);
          for (int64_t c = first; c < block.last(); ++c)
            if (w[c - first] != 0) visit(original, static_cast<int32_t>(c), static_cast<T>(w[c - first]));
        }
        for (int64_t c = first; c < block.last(); ++c)
          for (int64_t e = coef_.ptr[c]; e < coef_.ptr[c + 1]; ++e)
            for (int64_t j = rows_.single_ptr[coef_.row[e]]; j < rows_.single_ptr[coef_.row[e] + 1]; ++j) {
              const T w = static_cast<T>(double(coef_.value[e]) * rows_.single_value[j]);
              if (w != 0) visit(rows_.single_index[j], static_cast<int32_t>(c), w);
            }
      }
    }
  }

  const Layout<T>& rows_;
  const Coefficients<V>& coef_;
  int64_t features_;
  int threads_;
};

}  // namespace manyclass
