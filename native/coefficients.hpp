// The coefficients of w_c = sum_i coef_ic x_i by classes, whatever loss they come from, and the model made of
// them.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "layout.hpp"
#include "weight_block.hpp"

namespace manyclass {

// Those of one class; rows ascend.
template <class V>
struct ClassCoefficients {
  const int32_t* row;
  const V* value;
  int64_t size;
};

template <class V>
struct Coefficients {
  std::vector<int64_t> ptr;  // by class
  std::vector<int32_t> row;
  std::vector<V> value;

  int64_t classes() const { return static_cast<int64_t>(ptr.size()) - 1; }
  ClassCoefficients<V> of(int64_t c) const {
    return {row.data() + ptr[c], value.data() + ptr[c], ptr[c + 1] - ptr[c]};
  }
};

// Some neighbouring classes as a weight block, with the coefficient of each row at hand. Coefs: has classes()
// and of(c).
template <class T, class Coefs>
class BlockOfClasses {
 public:
  static constexpr int width = WeightBlock<T>::width;

  BlockOfClasses(const Layout<T>& rows, const Coefs& coef) : rows_(rows), coef_(coef), weights_(rows) {}

  // Takes the classes from `first` on, at most up to `last`.
  typename WeightBlock<T>::Norms load_classes(int64_t first, int64_t last) {
    first_ = first;
    last_ = std::min<int64_t>(last, first + width);
    chain_by_row();
    weights_.clear();
    for (int64_t i = 0; i < rows_.n; ++i)
      if (latest_[i] >= 0) weights_.add(i, coefficients_of(i));
    return weights_.finish();
  }

  int64_t first() const { return first_; }
  int64_t last() const { return last_; }
  const WeightBlock<T>& weights() const { return weights_; }

  // The score of one row for one class of the block.
  double score(int64_t i, int64_t c) const {
    const auto part = coef_.of(c);
    const int32_t* at = std::lower_bound(part.row, part.row + part.size, static_cast<int32_t>(i));
    const bool has = at != part.row + part.size && *at == i;
    return weights_.score(i)[c - first_] + (has ? weights_.single_score(i, part.value[at - part.row]) : 0.0);
  }

  // For all rows in order: plain(i, s) where no class of the block has a coefficient in row i and the row's
  // label is none of them, which is nearly everywhere; else full(i, s, coef). Scores beyond the last class
  // are minus infinity.
  template <class Plain, class Full>
  void for_each_row(const std::vector<int32_t>& labels, Plain plain, Full full) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < rows_.n; ++i) {
      Scores s = weights_.score(i);
      for (int64_t l = last_ - first_; l < width; ++l) s[l] = nothing;
      const bool own = labels[i] >= first_ && labels[i] < last_;
      if (latest_[i] < 0 && !own) {
        plain(i, s);
        continue;
      }
      const Scores coef = coefficients_of(i);
      for (int32_t e = latest_[i]; e >= 0; e = chained_[e].before)
        s[chained_[e].lane] += weights_.single_score(i, chained_[e].value);
      full(i, s, coef);
    }
  }

 private:
  // The coefficients come by classes and are needed by rows.
  void chain_by_row() {
    latest_.assign(rows_.n, -1);
    chained_.clear();
    for (int64_t c = first_; c < last_; ++c) {
      const auto part = coef_.of(c);
      for (int64_t e = 0; e < part.size; ++e) {
        const int32_t before = std::exchange(latest_[part.row[e]], static_cast<int32_t>(chained_.size()));
        chained_.push_back({static_cast<int32_t>(c - first_), before, double(part.value[e])});
      }
    }
  }

  Scores coefficients_of(int64_t i) const {
    Scores coef = {};
    for (int32_t e = latest_[i]; e >= 0; e = chained_[e].before) coef[chained_[e].lane] = chained_[e].value;
    return coef;
  }

  struct Chained {
    int32_t lane, before;  // `before`: the row's coefficient before this one in the block
    double value;
  };

  const Layout<T>& rows_;
  const Coefs& coef_;
  WeightBlock<T> weights_;
  int64_t first_ = 0, last_ = 0;
  std::vector<int32_t> latest_;  // by row: its last coefficient in the block
  std::vector<Chained> chained_;
};

// The model's weights, feature-major, rounded to T. Twice over the classes: count the non-zeros of each
// feature, then fill, so that nothing but the result is ever held. Each thread has a range of classes of its
// own, hence its own place within a feature: classes ascend without sorting.
template <class T, class Coefs>
class ModelWeights {
 public:
  ModelWeights(const Layout<T>& rows, const Coefs& coef, int64_t features, int threads)
      : rows_(rows), coef_(coef), features_(features), bounds_(threads + 1, coef.classes()) {
    bounds_[0] = 0;
    int64_t total = 0, seen = 0;
    for (int64_t c = 0; c < coef.classes(); ++c) total += coef.of(c).size;
    int t = 1;
    for (int64_t c = 0; c < coef.classes() && t < threads; ++c) {
      if (c % width == 0)
        while (t < threads && seen >= total / threads * t) bounds_[t++] = c;
      seen += coef.of(c).size;
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
  void fill_sparse(std::vector<std::vector<int64_t>> counts, const int64_t* ptr, int32_t* classes,
                   T* values) const {
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

  static uint32_t nonzero_lanes(const T* w) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return _mm512_cmp_ps_mask(_mm512_load_ps(w), _mm512_setzero_ps(), _CMP_NEQ_UQ);
#endif
    uint32_t lanes = 0;
    for (int l = 0; l < width; ++l) lanes |= static_cast<uint32_t>(w[l] != 0) << l;
    return lanes;
  }

  // visit(thread, feature, class, weight) for every non-zero weight
  template <class F>
  void run(F visit) const {
    const int threads = static_cast<int>(bounds_.size()) - 1;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
      BlockOfClasses<T, Coefs> block(rows_, coef_);
      for (int64_t first = bounds_[t]; first < bounds_[t + 1]; first += width) {
        block.load_classes(first, coef_.classes());
        for (int64_t f = 0; f < block.weights().shared_features(); ++f) {
          const int64_t original =
              f < rows_.heads() ? rows_.head_features[f] : rows_.tail_features[f - rows_.heads()];
          const T* w = block.weights().feature(f);
          for (uint32_t lanes = nonzero_lanes(w); lanes != 0; lanes &= lanes - 1) {
            const int l = __builtin_ctz(lanes);
            visit(t, original, first + l, w[l]);
          }
        }
        for (int64_t c = first; c < block.last(); ++c) {
          const auto part = coef_.of(c);
          for (int64_t e = 0; e < part.size; ++e)
            for (int64_t j = rows_.single_ptr[part.row[e]]; j < rows_.single_ptr[part.row[e] + 1]; ++j) {
              const T w = static_cast<T>(double(part.value[e]) * rows_.single_value[j]);
              if (w != 0) visit(t, rows_.single_index[j], c, w);
            }
        }
      }
    }
  }

  const Layout<T>& rows_;
  const Coefs& coef_;
  int64_t features_;
  std::vector<int64_t> bounds_;  // of the threads' classes
};

}  // namespace manyclass
