// The certificate of the max-margin loss with an elastic net, computed in float64 from the dual variables
// alone; max_margin/solver.hpp states the problem. P is evaluated at the weights as the model stores them, D
// at the float64 weights of the dual variables. Partial sums are added up in a fixed order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "dual/certificate.hpp"
#include "dual/feature_weights.hpp"
#include "dual/rows.hpp"
#include "max_margin/shrunk_rows.hpp"
#include "max_margin/touched_scores.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/row_labels.hpp"

namespace manyclass {

// lambda |W|_1 + tau/2 |W|^2.
struct MaxMarginPenalty {
  double lambda, tau;
  int64_t constant;  // the feature without an l1 term, or -1

  double lambda_of(int64_t feature) const { return feature == constant ? 0 : lambda; }
};

// Computes the loss, gap and violation of a row from its scores and variables, given one after the other. T
// is the type of the variables.
template <class T>
class RowView {
 public:
  explicit RowView(double C) : C_(C) {}

  void see_own(double s, double alpha) {
    lowest_ = std::min(lowest_, s);
    if (alpha > 0) highest_used_ = std::max(highest_used_, s);
    sum_ += alpha;
    product_ += alpha * s;
  }
  void see_other(double s, double alpha) {
    top_ = std::max(top_, s);
    if (alpha > 0) lowest_used_ = std::min(lowest_used_, s);
    product_ -= alpha * s;
  }

  double loss() const { return std::max(0.0, 1 + top_ - lowest_); }
  double sum() const { return sum_; }  // of the variables of its own labels
  // C_i loss_i - sum_p alpha_p + u.s; the duality gap is the sum over all rows.
  double gap() const { return C_ * loss() - sum_ + product_; }
  // The largest excess of any pair of labels minus the smallest excess of a pair with positive variables. If
  // the variables do not use all of C_i, the rest is the variable of "no violation", whose excess is 0.
  double violation() const {
    double least = sum_ > 0 ? 1 + lowest_used_ - highest_used_ : infinity;
    if (sum_ < C_ * (1 - 8 * double(std::numeric_limits<T>::epsilon()))) least = std::min(least, 0.0);
    return loss() - std::min(least, loss());
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  const double C_;
  double lowest_ = infinity, highest_used_ = -infinity;  // of its own labels
  double top_ = -infinity, lowest_used_ = infinity;      // of the others
  double sum_ = 0, product_ = 0;
};

// The weights of the model. squares: |tau W|^2 before rounding.
template <class T>
struct SparseModel : SparseRows<T> {  // by feature
  double squares = 0;
};

// The model's weights for scoring. A feature with weights for many labels becomes a dense row, which is read
// sequentially.
template <class T>
class ModelRows {
 public:
  ModelRows(const SparseModel<T>& model, int64_t K) : model_(model), K_(K), dense_(model.ptr.size() - 1, -1) {
    for (size_t f = 0; f < dense_.size(); ++f) {
      if (4 * model_.size(f) < K) continue;
      dense_[f] = std::ssize(values_);
      values_.resize(values_.size() + K, T(0));
      for (int64_t e = model.ptr[f]; e < model.ptr[f + 1]; ++e)
        values_[dense_[f] + model.index[e]] = model.value[e];
    }
  }

  int64_t reads(int64_t f) const { return dense_[f] < 0 ? model_.size(f) : K_; }

  // s_c += x w_fc
  void add_to(int64_t f, double x, TouchedScores<double>& s) const {
    double* to = s.data();
    if (dense_[f] >= 0) {
      const T* w = values_.data() + dense_[f];
#pragma omp simd
      for (int64_t c = 0; c < K_; ++c) to[c] += x * w[c];
      return;
    }
    for (int64_t e = model_.ptr[f]; e < model_.ptr[f + 1]; ++e) {
      s.touch(model_.index[e]);
      to[model_.index[e]] += x * model_.value[e];
    }
  }

 private:
  const SparseModel<T>& model_;
  const int64_t K_;
  std::vector<int64_t> dense_;  // by feature, where its dense row begins, or -1
  std::vector<T> values_;
};

// The coefficients u of V that follow from the dual variables. Rounding may have made the two sums of a row's
// variables unequal or larger than C_i; both sides are scaled back to equal sums of at most C_i.
template <class T>
class MaxMarginCoefficients {
 public:
  MaxMarginCoefficients(const DualRows<T>& alpha, const RowLabels& labels, const std::vector<T>& C)
      : alpha_(alpha), labels_(labels), own_(alpha.n(), 0.0), others_(alpha.n(), 0.0), sum_(alpha.n(), 0.0) {
    for (int64_t i = 0; i < alpha.n(); ++i) {
      const auto a = alpha_[i];
      double own = 0, others = 0;
      for (int32_t e = 0; e < a.size; ++e) (labels.has(i, a.classes[e]) ? own : others) += a.values[e];
      sum_[i] = std::min({own, others, double(C[i])});
      if (sum_[i] > 0) {
        own_[i] = sum_[i] / own;
        others_[i] = sum_[i] / others;
      }
    }
  }

  bool centred() const { return false; }
  bool reduced() const { return false; }
  std::span<const int32_t> labels(int64_t) const { return {}; }
  int64_t size(int64_t i) const { return sum_[i] > 0 ? alpha_[i].size : 0; }

  // f(label, u)
  void for_each(int64_t i, auto f) const {
    const auto a = alpha_[i];
    for (int32_t e = 0; e < size(i); ++e) {
      const int32_t c = a.classes[e];
      f(c, labels_.has(i, c) ? own_[i] * a.values[e] : -others_[i] * a.values[e]);
    }
  }

 private:
  const DualRows<T>& alpha_;
  const RowLabels& labels_;
  std::vector<double> own_, others_, sum_;
};

template <class T>
class MaxMarginCertificate {
 public:
  MaxMarginCertificate(const Layout<T>& rows, const RowLabels& labels, const std::vector<T>& C,
                       const DualRows<T>& alpha, int64_t classes, const MaxMarginPenalty& net)
      : rows_(rows), labels_(labels), C_(C), K_(classes), net_(net), coef_(alpha, labels, C) {}

  // Calls set(h, labels, values) with row h of V for each head feature, from any thread.
  void sums(int threads, auto set) const {
    const int64_t features = rows_.count_features();
    std::vector<int64_t> head(features, -1);
    for (int64_t h = 0; h < rows_.heads(); ++h) head[rows_.head_features[h]] = h;
    for_each_feature(columns_of(rows_, features), coef_, K_, threads, [&](int64_t f, auto& sums) {
      if (head[f] < 0) return;
      sums.load(f);
      std::vector<int32_t> labels;
      std::vector<double> values;
      sums.for_each([&](int32_t c, double v) {
        labels.push_back(c);
        values.push_back(v);
      });
      set(head[f], labels, values);
    });
  }

  SparseModel<T> model(int threads) const {
    const int64_t features = rows_.count_features();
    const SparseRows<T> columns = columns_of(rows_, features);
    SparseModel<T> out;
    out.ptr.assign(features + 1, 0);
    std::vector<double> squares((features + features_a_chunk - 1) / features_a_chunk, 0.0);
    // Two passes: count, so that the arrays are allocated once, then fill.
    for_each_feature(columns, coef_, K_, threads, [&](int64_t f, auto& sums) {
      sums.load(f);
      sums.for_each([&](int32_t, double v) {
        const double shrunk = soft(v, net_.lambda_of(f));
        squares[f / features_a_chunk] += shrunk * shrunk;
        out.ptr[f + 1] += static_cast<T>(shrunk / net_.tau) != 0;
      });
    });
    for (double part : squares) out.squares += part;
    for (int64_t f = 0; f < features; ++f) out.ptr[f + 1] += out.ptr[f];
    out.index.resize(out.ptr[features]);
    out.value.resize(out.ptr[features]);
    for_each_feature(columns, coef_, K_, threads, [&](int64_t f, auto& sums) {
      sums.load(f);
      int64_t at = out.ptr[f];
      sums.for_each([&](int32_t c, double v) {
        const T w = static_cast<T>(soft(v, net_.lambda_of(f)) / net_.tau);
        if (w == 0) return;
        out.index[at] = c;
        out.value[at++] = w;
      });
    });
    return out;
  }

  Certificate certify(const SparseModel<T>& model, int threads) const {
    Certificate total{elastic_net(model), -model.squares / (2 * net_.tau), 0};
    const ModelRows<T> weights(model, K_);
    std::vector<Certificate> parts((rows_.n + rows_at_once - 1) / rows_at_once);
    team_tasks(
        std::ssize(parts), threads, [&] { return TouchedScores<double>(K_); },
        [&](int64_t p, auto& s) {
          const int64_t last = std::min(rows_.n, (p + 1) * rows_at_once);
          for (int64_t i = p * rows_at_once; i < last; ++i) parts[p].add(certify_row(i, weights, s));
        });
    for (const auto& part : parts) total.add(part);
    return total;
  }

 private:
  static constexpr int64_t rows_at_once = 64;

  double elastic_net(const SparseModel<T>& model) const {
    double value = 0;
    for (size_t f = 0; f + 1 < model.ptr.size(); ++f)
      for (int64_t e = model.ptr[f]; e < model.ptr[f + 1]; ++e) {
        const double w = model.value[e];
        value += net_.lambda_of(static_cast<int64_t>(f)) * std::abs(w) + net_.tau / 2 * w * w;
      }
    return value;
  }

  Certificate certify_row(int64_t i, const ModelRows<T>& weights, TouchedScores<double>& s) const {
    if (labels_.size(i) == 0 || labels_.size(i) == K_) return {};
    const double C = C_[i];
    // Every score is 0 for any weights, so at the optimum the variables sum to C_i.
    if (rows_.norm[i] == 0) return {C, C, 0};
    int64_t reads = 0;
    rows_.for_each(i, [&](int64_t f, double) { reads += weights.reads(f); });
    s.begin(reads);
    rows_.for_each(i, [&](int64_t f, double x) { weights.add_to(f, x, s); });
    RowView<T> view(C);
    constexpr double seen = -std::numeric_limits<double>::infinity();
    coef_.for_each(i, [&](int32_t c, double u) {
      if (labels_.has(i, c)) {
        view.see_own(s[c], u);
      } else {
        view.see_other(s[c], -u);
        s.set(c, seen);
      }
    });
    for (int32_t p : labels_(i)) {
      view.see_own(s[p], 0);
      s.set(p, seen);
    }
    view.see_other(s.largest(), 0);
    if (s.untouched() > 0) view.see_other(0, 0);
    return {C * view.loss(), view.sum(), view.violation()};
  }

  const Layout<T>& rows_;
  const RowLabels& labels_;
  const std::vector<T>& C_;
  const int64_t K_;
  const MaxMarginPenalty net_;
  const MaxMarginCoefficients<T> coef_;
};

}  // namespace manyclass
