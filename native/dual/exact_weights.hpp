// The weights that follow from the dual variables, in float64, when the rows arrive block by block:
//     w_fc = sum_i x_if coef_ic, blocks and rows in order,
// for as many neighbouring classes as memory allows. Certificates and models of fits on disk come from here.
// (dual/feature_weights.hpp is the counterpart for rows in memory.)
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dual/weight_lists.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/sparse_rows.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
class ExactWeights {
 public:
  // For the classes [low, high) out of `classes`; low must be a multiple of the vector length. tails: the
  // number of features with lists.
  ExactWeights(int64_t heads, int64_t low, int64_t high, int64_t classes, int64_t tails)
      : heads_(heads),
        low_(low),
        high_(high),
        classes_(classes),
        wide_(padded<T>(high - low)),
        sums_(heads * wide_),
        lists_(tails),
        exact_(wide_, 0.0),
        rounded_(wide_, 0.0) {
    if (low < 0 || low > high || high > classes || low % Lanes<T>::count != 0)
      throw std::invalid_argument("classes [low, high) out of range, or low is not the start of a vector");
  }

  int64_t low() const { return low_; }
  int64_t high() const { return high_; }
  int64_t classes() const { return classes_; }
  int64_t heads() const { return heads_; }
  int64_t tails() const { return lists_.features(); }

  // The sum for a head feature and a class of the range.
  double* at(int64_t head, int64_t c) { return sums_.data() + head * wide_ + (c - low_); }

  // Adds a weight to the squares only.
  void add_square(int64_t c, double w) {
    const double stored = static_cast<T>(w);
    exact_[c - low_] += w * w;
    rounded_[c - low_] += stored * stored;
  }

  // Coefs as in dual/feature_weights.hpp.
  void add(const Layout<T>& rows, const auto& coef, int threads) {
    if (coef.centred()) mean_.resize(heads_, 0.0);
    const int64_t vectors = wide_ / Lanes<T>::count;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, vectors)));
    Team team(threads);
    team.run([&](int me) {
      const int64_t from = low_ + me * vectors / threads * Lanes<T>::count;
      const int64_t to = std::min(high_, low_ + (me + 1) * vectors / threads * Lanes<T>::count);
      Slice slice(from, to), all(low_, high_);
      for (int64_t i = 0; i < rows.n; ++i) {
        slice.load(i, coef);
        if (me == 0 && coef.centred() && slice.sum != 0)
          for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h)
            mean_[rows.head_index[h]] += rows.head_value[h] * slice.sum / double(classes_);
        for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h)
          slice.add_to(at(rows.head_index[h], from), rows.head_value[h]);
        add_to_lists(rows, i, coef, all, me, threads);
        for (int64_t j = rows.single_ptr[i]; j < rows.single_ptr[i + 1]; ++j)
          slice.for_each_single(coef.centred(), double(classes_),
                                [&](int64_t c, double v) { add_square(c, v * rows.single_value[j]); });
      }
    });
  }

  // To be called after all rows have been added: sets *weight(head, class) to the rounded sum. For each tail
  // feature, list(feature, size) must return a function that takes its classes and weights one by one. Frees
  // the lists of sums as it goes.
  void round(auto weight, auto list) {
    for (int64_t t = 0; t < tails(); ++t) {
      const auto sums = lists_[t];
      if (sums.size == 0) continue;
      auto put = list(t, sums.size);
      for (int32_t e = 0; e < sums.size; ++e) {
        add_square(sums.classes[e], sums.values[e]);
        if (static_cast<T>(sums.values[e]) != 0) put(sums.classes[e], static_cast<T>(sums.values[e]));
      }
      lists_.clear(t);
    }
    for (int64_t h = 0; h < (wide_ == 0 ? 0 : heads_); ++h) {
      const double mean = mean_.empty() ? 0 : mean_[h];
      for (int64_t c = low_; c < high_; ++c) {
        const double w = *at(h, c) - mean;
        *weight(h, c) = static_cast<T>(w);
        add_square(c, w);
      }
    }
  }

  // Sums of squared weights by class: exact, and rounded as the model stores them.
  const std::vector<double>& exact_squares() const { return exact_; }
  const std::vector<double>& rounded_squares() const { return rounded_; }

 private:
  // The coefficients of one row for a slice of the classes.
  struct Slice {
    Slice(int64_t from, int64_t to) : from(from), to(to), dense(std::max<int64_t>(0, to - from), 0.0) {}

    void load(int64_t i, const auto& coef) {
      if (is_dense) std::fill(dense.begin(), dense.end(), 0.0);
      cls.clear();
      value.clear();
      sum = 0;
      coef.for_each(i, [&](int32_t c, double v) {
        sum += v;
        if (c < from || c >= to || v == 0) return;
        cls.push_back(static_cast<int32_t>(c - from));
        value.push_back(v);
      });
      is_dense = cls.size() * 8 > dense.size();
      if (!is_dense) return;
      for (size_t e = 0; e < cls.size(); ++e) dense[cls[e]] += value[e];
    }

    void add_to(double* w, double x) const {
      if (is_dense) {
        for (size_t c = 0; c < dense.size(); ++c) w[c] += x * dense[c];
        return;
      }
      for (size_t e = 0; e < cls.size(); ++e) w[cls[e]] += x * value[e];
    }

    void for_each_single(bool centred, double classes, auto f) {
      if (!centred) {
        for (size_t e = 0; e < cls.size(); ++e) f(from + cls[e], value[e]);
        return;
      }
      const double mean = sum / classes;
      if (!is_dense)
        for (size_t e = 0; e < cls.size(); ++e) dense[cls[e]] = value[e];
      for (size_t c = 0; c < dense.size(); ++c) f(from + static_cast<int64_t>(c), dense[c] - mean);
      if (!is_dense) std::fill(dense.begin(), dense.end(), 0.0);
    }

    const int64_t from, to;
    std::vector<int32_t> cls;
    std::vector<double> value, dense;
    double sum = 0;  // over all classes
    bool is_dense = false;
  };

  // Each list is written by one thread only.
  void add_to_lists(const Layout<T>& rows, int64_t i, const auto& coef, Slice& row, int me, int threads) {
    bool loaded = false;
    for (int64_t t = rows.tail_ptr[i]; t < rows.tail_ptr[i + 1]; ++t) {
      const int32_t tail = rows.tail_index[t];
      if (tail % threads != me) continue;
      if (!std::exchange(loaded, true)) row.load(i, coef);
      for (size_t e = 0; e < row.cls.size(); ++e)
        lists_.add(tail, static_cast<int32_t>(row.cls[e] + low_), rows.tail_value[t] * row.value[e]);
    }
  }

  const int64_t heads_, low_, high_, classes_, wide_;
  Buffer<double> sums_;
  WeightLists<double> lists_;            // the sums of tail features
  std::vector<double> mean_;             // over all classes, of centred weights, by head feature
  std::vector<double> exact_, rounded_;  // by class
};

// The weights of features that occur in one row only, as the model stores them: by feature, classes
// ascending.
template <class T>
struct SingleWeights : SparseRows<T> {
  std::vector<int64_t> feature;

  SingleWeights(const Layout<T>& rows, const auto& coef, int64_t classes) {
    std::vector<std::pair<int32_t, double>> found;
    for (int64_t i = 0; i < rows.n; ++i) {
      if (rows.single_ptr[i] == rows.single_ptr[i + 1]) continue;
      found.clear();
      double sum = 0;
      coef.for_each(i, [&](int32_t c, double v) {
        found.emplace_back(c, v);
        sum += v;
      });
      if (coef.centred()) {
        std::vector<double> all(classes, -sum / double(classes));
        for (const auto& [c, v] : found) all[c] += v;
        found.clear();
        for (int64_t c = 0; c < classes; ++c) found.emplace_back(static_cast<int32_t>(c), all[c]);
      }
      std::sort(found.begin(), found.end());
      for (int64_t j = rows.single_ptr[i]; j < rows.single_ptr[i + 1]; ++j) {
        feature.push_back(rows.single_index[j]);
        for (const auto& [c, v] : found) {
          const T w = static_cast<T>(v * rows.single_value[j]);
          if (w != 0) this->add(c, w);
        }
        this->end_row();
      }
    }
  }
};

}  // namespace manyclass
