// The certificate of the coupled losses, from the dual variables alone and in float64. With
// u_c = 1 + s_c - s_y for the classes c != y of a row,
//
//     P = 1/2 |W|^2 + sum_i C_i loss_i,    D = sum_ic alpha_ic - 1/2 |W|^2,
//     WW: loss = sum_c max(0, u_c),    CS: loss = max(0, max_c u_c).
//
// P is taken at the weights as the model will store them, D at the float64 weights of the dual variables.
// What threads add up is put together in a fixed order: the result does not depend on their number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "certificate.hpp"
#include "dual_rows.hpp"
#include "feature_weights.hpp"
#include "layout.hpp"
#include "relative_margin.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace manyclass {

// The dual variables as coefficients of the weights: -alpha_ic, and their sum for the row's own class. What
// rounding has put above C_i comes back to the feasible set here.
template <class T>
class CoupledCoefficients {
 public:
  CoupledCoefficients(const DualRows<T>& alpha, const std::vector<int32_t>& labels, const std::vector<T>& C,
                      Relative loss)
      : alpha_(alpha), y_(labels), scale_(alpha.n(), 1.0), own_(alpha.n(), 0.0) {
    for (int64_t i = 0; i < alpha.n(); ++i) {
      const auto a = alpha_[i];
      double sum = 0;
      for (int32_t e = 0; e < a.size; ++e) sum += a.values[e];
      if (loss == Relative::cs && sum > C[i]) scale_[i] = C[i] / sum;
      own_[i] = scale_[i] * sum;
    }
  }

  int64_t size(int64_t i) const { return alpha_[i].size + (alpha_[i].size > 0); }
  double own(int64_t i) const { return own_[i]; }

  template <class F>
  void for_each(int64_t i, F f) const {
    const auto a = alpha_[i];
    if (a.size == 0) return;
    const double scale = -scale_[i];
    for (int32_t e = 0; e < a.size; ++e) f(a.classes[e], scale * a.values[e]);
    f(y_[i], own_[i]);
  }

 private:
  const DualRows<T>& alpha_;
  const std::vector<int32_t>& y_;
  std::vector<double> scale_, own_;
};

template <class T>
class CoupledCertificate {
 public:
  CoupledCertificate(const Layout<T>& rows, const std::vector<int32_t>& labels, const std::vector<T>& C,
                     const DualRows<T>& alpha, int64_t classes, Relative loss)
      : rows_(rows), y_(labels), C_(C), K_(classes), loss_(loss), coef_(alpha, labels, C, loss) {}

  // Primal, dual and largest violation over all variables. W (heads x stride) is set to the weights of the
  // dual variables, rounded.
  Certificate certify(Buffer<T>& W, int64_t stride, int threads) const {
    Certificate total = set_weights(W, stride, threads);
    std::vector<Certificate> parts((rows_.n + rows_at_once - 1) / rows_at_once);
    Team team(threads);
    team.run([&](int me) {
      Scratch mine(stride);
      team.share_out(static_cast<int64_t>(parts.size()), me,
                     [&](int64_t p) { parts[p] = certify_rows(p * rows_at_once, W, stride, mine); });
    });
    for (const auto& part : parts) total.add(part);
    return total;
  }

 private:
  static constexpr int64_t rows_at_once = 16;
  static constexpr double nothing = -std::numeric_limits<double>::infinity();

  struct Scratch {
    explicit Scratch(int64_t stride) : scores(rows_at_once * stride), sums(stride) {}
    Buffer<double> scores, sums;
  };

  // 1/2 |W|^2, as it enters primal and dual.
  Certificate set_weights(Buffer<T>& W, int64_t stride, int threads) const {
    int64_t features = 0;
    for (int64_t f : rows_.head_features) features = std::max(features, f + 1);
    for (int64_t f : rows_.tail_features) features = std::max(features, f + 1);
    for (int64_t f : rows_.single_index) features = std::max(features, f + 1);
    std::vector<int32_t> head(features, -1);
    for (int64_t h = 0; h < rows_.heads(); ++h) head[rows_.head_features[h]] = static_cast<int32_t>(h);
    const Columns<T> columns(rows_, features);
    std::vector<Certificate> parts((features + features_a_chunk - 1) / features_a_chunk);
    for_each_feature(columns, coef_, K_, threads, [&](int64_t f, const auto& weights) {
      Certificate& part = parts[f / features_a_chunk];
      weights.add_squares(part.dual, part.primal);
      if (head[f] >= 0) weights.copy_dense(W.data() + head[f] * stride, stride);
    });
    Certificate total;
    for (const auto& part : parts) total.add(part);
    return {total.primal / 2, -total.dual / 2, 0};
  }

  Certificate certify_rows(int64_t first, const Buffer<T>& W, int64_t stride, Scratch& mine) const {
    const int64_t last = std::min(rows_.n, first + rows_at_once);
    for (int64_t c = 0; c < stride; c += tile_width<double>)
      for (int64_t i = first; i < last; ++i) {
        const int64_t b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
        score_tile(W.data() + c, stride, rows_.head_index.data() + b, rows_.head_value.data() + b, e - b,
                   mine.scores.data() + (i - first) * stride + c, std::min(tile_width<double>, stride - c));
      }
    Certificate part;
    for (int64_t i = first; i < last; ++i)
      part.add(certify_row(i, mine.scores.data() + (i - first) * stride, stride, mine));
    return part;
  }

  // s: the scores from the head; all classes are here, with room behind them to a whole vector.
  Certificate certify_row(int64_t i, double* s, int64_t stride, Scratch& mine) const {
    const double Ci = C_[i];
    if (rows_.norm[i] == 0) {
      // Every margin is 0 whatever the weights, and all variables stand at the bound.
      const double bound = Ci * (loss_ == Relative::ww ? double(K_ - 1) : 1.0);
      return {bound, bound, 0};
    }
    score_rest(i, s, mine);
    std::fill(s + K_, s + stride, nothing);
    const int32_t y = y_[i];
    const double shift = 1 - s[y];
    s[y] = nothing;
    double loss = 0, worst = 0, most = 0, least = has_slack<T>(coef_.own(i), Ci) ? 0 : -nothing;
    coef_.for_each(i, [&](int32_t c, double coef) {
      if (c == y) return;
      const double u = s[c] + shift, a = -coef;
      s[c] = nothing;
      loss += std::max(0.0, u);
      worst = std::max(worst, u > 0 ? (a < Ci ? u : 0.0) : -u);
      most = std::max(most, u);
      least = std::min(least, u);
    });
    // A class without a variable in use adds max(0, u_c), and violates by as much.
    vec<double> sums = {}, tops = {};
    for (int64_t c = 0; c < stride; c += Lanes<double>::count) {
      const vec<double> u = larger<double>(load(s + c) + shift, vec<double>{});
      sums += u;
      tops = larger<double>(tops, u);
    }
    for (int l = 0; l < Lanes<double>::count; ++l) {
      loss += sums[l];
      worst = std::max(worst, tops[l]);
      most = std::max(most, tops[l]);
    }
    if (loss_ == Relative::ww) return {Ci * loss, coef_.own(i), worst};
    return {Ci * most, coef_.own(i), most - std::min(least, most)};
  }

  // s += the part of the features without dense weights, each weight rounded as the model will have it.
  void score_rest(int64_t i, double* s, Scratch& mine) const {
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t) {
      const double x = rows_.tail_value[t];
      const int64_t begin = rows_.column_ptr[rows_.tail_index[t]],
                    end = rows_.column_ptr[rows_.tail_index[t] + 1];
      for (int64_t e = begin; e < end; ++e) {
        const double other = rows_.column_value[e];
        coef_.for_each(rows_.column_row[e], [&](int32_t c, double v) { mine.sums[c] += other * v; });
      }
      for (int64_t e = begin; e < end; ++e)
        coef_.for_each(rows_.column_row[e], [&](int32_t c, double) {
          s[c] += x * static_cast<T>(mine.sums[c]);
          mine.sums[c] = 0;  // a class that comes again adds nothing more
        });
    }
    coef_.for_each(i, [&](int32_t c, double v) {
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        s[c] += double(rows_.single_value[j]) * static_cast<T>(rows_.single_value[j] * v);
    });
  }

  const Layout<T>& rows_;
  const std::vector<int32_t>& y_;
  const std::vector<T>& C_;
  const int64_t K_;
  const Relative loss_;
  const CoupledCoefficients<T> coef_;
};

}  // namespace manyclass
