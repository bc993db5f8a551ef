// The certificate of the coupled losses, computed in float64 from the dual variables alone:
//
//     P = 1/2 |W|^2 + sum_i C_i loss_i,    D = sum_ic target_c alpha_ic - 1/2 |W|^2.
//
// P is evaluated at the weights as the model will store them, D at the float64 weights of the dual variables.
// The model may have these weights times a factor: while most margins are still too small, larger weights are
// a much better primal point. Partial sums are added up in a fixed order, so the result does not depend on
// the number of threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "coupled/loss.hpp"
#include "dual/certificate.hpp"
#include "dual/feature_weights.hpp"
#include "dual/rows.hpp"
#include "dual/weight_lists.hpp"
#include "parallel/processes.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/scores.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The coefficients of the weights that follow from the dual variables: -alpha_ic for the other classes, and
// for the row's own class their sum (relative margins) or its own variable (absolute margins, to be centred).
// Variables whose sum rounding has put above C_i are scaled back into the feasible set here. All of this may
// be multiplied by a factor, for a model with larger weights.
template <class T>
class CoupledCoefficients {
 public:
  CoupledCoefficients(const DualRows<T>& alpha, const std::vector<int32_t>& labels, const std::vector<T>& C,
                      const CoupledLoss& loss, bool reduced)
      : alpha_(alpha),
        y_(labels),
        loss_(loss),
        reduced_(reduced),
        scale_(alpha.n(), 1.0),
        sum_(alpha.n(), 0.0) {
    for (int64_t i = 0; i < alpha.n(); ++i) {
      const auto a = alpha_[i];
      double sum = 0;
      for (int32_t e = 0; e < a.size; ++e) sum += a.values[e];
      if (loss.simplex && sum + a.own > C[i]) scale_[i] = C[i] / (sum + a.own);
      sum_[i] = scale_[i] * sum;
    }
  }

  CoupledCoefficients times(double factor) const {
    CoupledCoefficients out = *this;
    out.factor_ = factor;
    return out;
  }

  const CoupledLoss& loss() const { return loss_; }
  int32_t label(int64_t i) const { return y_[i]; }
  bool centred() const { return !loss_.relative; }
  bool reduced() const { return reduced_; }
  std::span<const int32_t> labels(int64_t i) const { return {&y_[i], 1}; }
  int64_t size(int64_t i) const { return alpha_[i].size + (alpha_[i].size > 0 || alpha_[i].own > 0); }
  // The sum of the other classes' variables, and the variable of the own class.
  double others(int64_t i) const { return factor_ * sum_[i]; }
  double own(int64_t i) const { return factor_ * (scale_[i] * alpha_[i].own); }

  void for_each(int64_t i, auto f) const {
    const auto a = alpha_[i];
    if (a.size == 0 && a.own == 0) return;
    const double scale = -scale_[i];
    for (int32_t e = 0; e < a.size; ++e) f(a.classes[e], factor_ * (scale * a.values[e]));
    f(y_[i], loss_.relative ? others(i) : own(i));
  }

 private:
  const DualRows<T>& alpha_;
  const std::vector<int32_t>& y_;
  const CoupledLoss loss_;
  const bool reduced_;
  std::vector<double> scale_, sum_;
  double factor_ = 1;
};

template <class T>
class CoupledCertificate {
 public:
  // scale: the factor of the model's weights. further: more factors, relative to `scale`, at which to
  // evaluate the primal.
  CoupledCertificate(const Layout<T>& rows, const std::vector<T>& C, int64_t classes,
                     const CoupledCoefficients<T>& coefficients, double scale, std::vector<double> further,
                     const WeightLists<T>& lists)
      : rows_(rows),
        C_(C),
        K_(classes),
        loss_(coefficients.loss()),
        coef_(coefficients),
        scale_(scale),
        scaled_(coef_.times(scale)),
        further_(std::move(further)),
        lists_(lists) {}

  // The certificate, and the primal at the further factors. Sets W (heads x stride) to the weights of the
  // dual variables times `scale`, rounded. Processes share the rows.
  std::pair<Certificate, std::vector<double>> certify(Buffer<T>& W, int64_t stride,
                                                      const Processes& processes, int threads) const {
    Certificate total = set_weights(W, stride, threads);
    std::vector<double> primals;
    for (double factor : further_) primals.push_back(factor * factor * total.primal);
    add_rows(W, stride, processes, threads, total, primals);
    return {total, primals};
  }

  // Adds the contributions of the rows at the given weights.
  void add_rows(const Buffer<T>& W, int64_t stride, const Processes& processes, int threads,
                Certificate& total, std::vector<double>& primals) const {
    const int64_t factors = std::ssize(further_);
    // One sum per group of neighbouring rows, so that the order of summation is fixed.
    std::vector<Certificate> parts((rows_.n + rows_at_once - 1) / rows_at_once);
    const int64_t count = std::ssize(parts);
    std::vector<double> losses(count * factors, 0.0);
    const auto [first, last] = processes.share(count);
    team_tasks(
        last - first, threads, [&] { return Scratch(stride); },
        [&](int64_t k, Scratch& mine) {
          const int64_t p = first + k;
          parts[p] = certify_rows(p * rows_at_once, W, stride, mine, losses.data() + p * factors);
        });
    if (!processes.alone())
      processes.exchange([&](int of, auto piece) {
        const auto [from, to] = processes.share(count, of);
        piece(parts.data() + from, to - from);
        piece(losses.data() + from * factors, (to - from) * factors);
      });
    for (const auto& part : parts) total.add(part);
    for (size_t e = 0; e < losses.size(); ++e) primals[e % further_.size()] += losses[e];
  }

  // Sets W, and returns 1/2 |W|^2 as it enters the primal and the dual.
  Certificate set_weights(Buffer<T>& W, int64_t stride, int threads) const {
    const int64_t features = rows_.count_features();
    std::vector<int32_t> head(features, -1);
    for (int64_t h = 0; h < rows_.heads(); ++h) head[rows_.head_features[h]] = static_cast<int32_t>(h);
    const SparseRows<T> columns = columns_of(rows_, features);
    std::vector<Certificate> parts((features + features_a_chunk - 1) / features_a_chunk);
    for_each_feature(columns, scaled_, K_, threads, [&](int64_t f, auto& weights) {
      weights.load(f);
      Certificate& part = parts[f / features_a_chunk];
      weights.add_squares(part.dual, part.primal);
      if (head[f] < 0) return;
      T* w = W.data() + head[f] * stride;
      weights.copy_dense(w);
      std::fill(w + K_, w + stride, T(0));  // the weights are centred: their mean is 0
    });
    Certificate total;
    for (const auto& part : parts) total.add(part);
    return {total.primal / 2, -total.dual / (2 * scale_ * scale_), 0};
  }

 private:
  static constexpr int64_t rows_at_once = 16;
  static constexpr double nothing = -std::numeric_limits<double>::infinity();

  struct Scratch {
    explicit Scratch(int64_t stride) : scores(rows_at_once * stride), sums(stride) {}
    Buffer<double> scores, sums;
  };

  Certificate certify_rows(int64_t first, const Buffer<T>& W, int64_t stride, Scratch& mine,
                           double* losses) const {
    const int64_t last = std::min(rows_.n, first + rows_at_once);
    score_rows(rows_, first, last, W.data(), stride, mine.scores.data());
    Certificate part;
    for (int64_t i = first; i < last; ++i)
      part.add(certify_row(i, mine.scores.data() + (i - first) * stride, stride, mine, losses));
    return part;
  }

  // s: the scores from the head, of all classes, padded to whole vectors.
  Certificate certify_row(int64_t i, double* s, int64_t stride, Scratch& mine, double* losses) const {
    const double Ci = C_[i];
    if (Ci == 0) return {};
    const FeasibleSet<T> set(loss_, C_[i]);
    if (rows_.norm[i] == 0) {
      // Every margin is 0 for any weights, so at the optimum all variables are at their bounds.
      const double own = set.own_cap > 0 ? loss_.own_target : 0, other = set.cap > 0 ? 1 : 0;
      const double value =
          loss_.simplex ? Ci * std::max(own, other) : set.own_cap * own + set.cap * other * double(K_ - 1);
      for (size_t f = 0; f < further_.size(); ++f) losses[f] += value;
      return {value, value, 0};
    }
    score_rest(i, s, mine);
    std::fill(s + K_, s + stride, nothing);
    const int32_t y = coef_.label(i);
    const double own_score = std::exchange(s[y], nothing);
    const double base = loss_.relative ? own_score : 0;
    for (size_t f = 0; f < further_.size(); ++f)
      losses[f] += loss_at(further_[f], set, Ci, s, stride, own_score, base);
    const double primal = loss_at(1, set, Ci, s, stride, own_score, base);
    // Violations are those of the dual variables, at their own weights: without the factor.
    const double by = 1 / scale_;
    const double held = coef_.own(i) + coef_.others(i);
    double worst = 0, most = 0, least = has_slack<T>(held, Ci) ? 0 : -nothing;
    const auto see = [&](double excess, double value, double cap) {
      if (cap == 0) return;
      worst = std::max(worst, excess > 0 ? (value < cap ? excess : 0.0) : (value > 0 ? -excess : 0.0));
      most = std::max(most, excess);
      if (value > 0) least = std::min(least, excess);
    };
    see(loss_.own_target - by * own_score, coef_.own(i), set.own_cap);
    coef_.for_each(i, [&](int32_t c, double coef) {
      if (c == y) return;
      see(1 + by * (s[c] - base), -coef, set.cap);
      s[c] = nothing;
    });
    // A class whose variable is 0 violates by its positive excess.
    if (set.cap > 0) {
      const double top = std::max(0.0, 1 + by * (largest_of(s, stride) - base));
      worst = std::max(worst, top);
      most = std::max(most, top);
    }
    const double dual = loss_.own_target * coef_.own(i) + coef_.others(i);
    return {primal, dual, loss_.simplex ? most - std::min(least, most) : worst};
  }

  // C_i times the loss at `factor` times the scores. For relative margins `base` is the score of the own
  // class, else 0.
  double loss_at(double factor, const FeasibleSet<T>& set, double Ci, const double* s, int64_t stride,
                 double own_score, double base) const {
    const double own = set.own_cap > 0 ? std::max(0.0, loss_.own_target - factor * own_score) : 0;
    if (loss_.simplex) return Ci * std::max(own, std::max(0.0, 1 + factor * (largest_of(s, stride) - base)));
    vec<double> sums = {};
    const double shift = 1 - factor * base;
    for (int64_t c = 0; c < stride && set.cap > 0; c += Lanes<double>::count)
      sums += larger<double>(factor * load(s + c) + shift, vec<double>{});
    const double sum = sum_lanes<double>(sums);
    return (set.own_cap > 0 ? set.own_cap * own : 0) + (set.cap > 0 ? set.cap * sum : 0);
  }

  // Adds the scores of features without dense weights, each weight rounded as the model will store it.
  void score_rest(int64_t i, double* s, Scratch& mine) const {
    if (rows_.listed) lists_.score(rows_, i, s);
    const int64_t behind = rows_.listed ? rows_.tail_ptr[i] : rows_.tail_ptr[i + 1];
    for (int64_t t = rows_.tail_ptr[i]; t < behind; ++t) {
      const double x = rows_.tail_value[t];
      const int64_t begin = rows_.column_ptr[rows_.tail_index[t]],
                    end = rows_.column_ptr[rows_.tail_index[t] + 1];
      for (int64_t e = begin; e < end; ++e) {
        const double other = rows_.column_value[e];
        scaled_.for_each(rows_.column_row[e], [&](int32_t c, double v) { mine.sums[c] += other * v; });
      }
      for (int64_t e = begin; e < end; ++e)
        scaled_.for_each(rows_.column_row[e], [&](int32_t c, double) {
          s[c] += x * static_cast<T>(mine.sums[c]);
          mine.sums[c] = 0;  // so that further rows with this class add nothing
        });
    }
    const int64_t first = rows_.single_ptr[i], last = rows_.single_ptr[i + 1];
    if (first == last) return;
    const auto add = [&](int64_t c, double v) {
      for (int64_t j = first; j < last; ++j)
        s[c] += double(rows_.single_value[j]) * static_cast<T>(rows_.single_value[j] * v);
    };
    if (scaled_.reduced()) {
      add(coef_.label(i), scaled_.others(i));
      return;
    }
    if (!scaled_.centred()) {
      scaled_.for_each(i, add);
      return;
    }
    const double mean = (scaled_.own(i) - scaled_.others(i)) / double(K_);
    std::fill(mine.sums.data(), mine.sums.data() + K_, -mean);
    scaled_.for_each(i, [&](int32_t c, double v) { mine.sums[c] += v; });
    for (int64_t c = 0; c < K_; ++c) add(c, std::exchange(mine.sums[c], 0.0));
  }

  const Layout<T>& rows_;
  const std::vector<T>& C_;
  const int64_t K_;
  const CoupledLoss loss_;
  const CoupledCoefficients<T> coef_;
  const double scale_;
  const CoupledCoefficients<T> scaled_;  // of the model's weights
  const std::vector<double> further_;
  const WeightLists<T>& lists_;  // empty unless rows_.listed
};

}  // namespace manyclass
