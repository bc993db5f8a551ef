// The certificate of Weston-Watkins, league by league:
//
//     P = 1/2 |W|^2 + sum_i C_i sum_{c != y_i} max(0, 1 - (w_y - w_c).x_i)
//     D = sum_ic alpha_ic - 1/2 |W|^2
//
// The contribution of a league's classes needs the weights of this league and the scores of all rows for
// their own classes, so leagues can be certified wherever they are. P is evaluated at the weights as the
// model will store them, D at the float64 weights of the dual variables.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "dual/certificate.hpp"
#include "dual/rows.hpp"
#include "leagues/league.hpp"
#include "leagues/tail_lists.hpp"
#include "rows/layout.hpp"
#include "rows/scores.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
class LeagueCertificate {
 public:
  // league, place: the league of each class, and its place there. alpha: all dual variables.
  LeagueCertificate(const Layout<T>& rows, const std::vector<int32_t>& labels, const std::vector<T>& C,
                    const std::vector<int32_t>& league, const std::vector<int32_t>& place,
                    const DualRows<T>& alpha)
      : rows_(rows), y_(labels), C_(C), league_(league), place_(place), alpha_(alpha), sum_(rows.n, 0.0) {
    for (int64_t i = 0; i < rows_.n; ++i) {
      const auto held = alpha_[i];
      for (int32_t e = 0; e < held.size; ++e) sum_[i] += held.values[e];
    }
  }

  // Sets the weights of league l to those of the dual variables, rounded. Returns 1/2 |w|^2 as it enters the
  // primal and the dual.
  Certificate set_weights(int32_t l, League<T>& to) const {
    to.start(rows_);
    Buffer<double> W(rows_.heads() * to.stride);
    TailLists<double> tail(rows_.tails());
    double rounded = 0, exact = 0;
    const auto square = [&](double w) {
      const double stored = static_cast<T>(w);
      rounded += stored * stored;
      exact += w * w;
    };
    for (int64_t i = 0; i < rows_.n; ++i)
      for_each(i, l, [&](int32_t c, double coef) {
        for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
          W[rows_.head_index[h] * to.stride + c] += rows_.head_value[h] * coef;
        for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t)
          tail.add(rows_.tail_index[t], c, rows_.tail_value[t] * coef);
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          square(rows_.single_value[j] * coef);
      });
    for (size_t m = 0; m < to.members.size(); ++m) to.sums[m] = static_cast<T>(sum_[to.members[m]]);
    for (int64_t w = 0; w < W.size(); ++w) {
      square(W[w]);
      to.W[w] = static_cast<T>(W[w]);
    }
    to.tail.reserve(tail.entries());
    for (int64_t t = 0; t < rows_.tails(); ++t) {
      const auto list = tail[t];
      const auto [classes, values] = to.tail.assign(t, list.size);
      std::copy_n(list.classes, list.size, classes);
      for (int32_t e = 0; e < list.size; ++e) {
        square(list.values[e]);
        values[e] = static_cast<T>(list.values[e]);
      }
    }
    return {rounded / 2, -exact / 2, 0};
  }

  // The scores of a league's rows for their own classes.
  std::vector<double> own_scores(const League<T>& league) const {
    std::vector<double> scores;
    scores.reserve(league.members.size());
    for (int32_t i : league.members) {
      const int32_t y = place_[y_[i]];
      double own = 0;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
        own += double(rows_.head_value[h]) * league.W[rows_.head_index[h] * league.stride + y];
      for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t)
        own += double(rows_.tail_value[t]) * league.tail.find(rows_.tail_index[t], y);
      scores.push_back(own + alone(i, sum_[i]));
    }
    return scores;
  }

  // The contribution of the classes of league l, for one part of neighbouring rows. own: for all rows, the
  // scores of their own classes.
  int64_t parts() const { return (rows_.n + rows_a_part - 1) / rows_a_part; }
  Certificate certify(int32_t l, const League<T>& league, int64_t part, const double* own) const {
    const int64_t stride = league.stride, first = part * rows_a_part,
                  last = std::min(rows_.n, first + rows_a_part);
    Buffer<double> scores(rows_a_part * stride);
    score_rows(rows_, first, last, league.W.data(), stride, scores.data());
    Certificate total;
    for (int64_t i = first; i < last; ++i)
      total.add(certify_row(i, l, league, scores.data() + (i - first) * stride, own[i]));
    return total;
  }

 private:
  static constexpr int64_t rows_a_part = 16;
  static constexpr double nothing = -std::numeric_limits<double>::infinity();

  // f(place of the class, coefficient) for the coefficients of row i in the weights of league l.
  void for_each(int64_t i, int32_t l, auto f) const {
    const auto held = alpha_[i];
    if (held.size == 0) return;
    for (int32_t e = 0; e < held.size; ++e)
      if (league_[held.classes[e]] == l) f(place_[held.classes[e]], -double(held.values[e]));
    if (league_[y_[i]] == l) f(place_[y_[i]], sum_[i]);
  }

  // The contribution of features that only row i has to its score for a class with this coefficient.
  double alone(int64_t i, double coef) const {
    double score = 0;
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      score += double(rows_.single_value[j]) * static_cast<T>(rows_.single_value[j] * coef);
    return score;
  }

  // s: the scores from frequent features.
  Certificate certify_row(int64_t i, int32_t l, const League<T>& league, double* s, double own) const {
    const bool inner = league_[y_[i]] == l;
    const double Ci = C_[i];
    if (rows_.norm[i] == 0) {
      // Every margin is 0 for any weights, so at the optimum all variables are at their bounds.
      const double value = Ci * double(league.size() - inner);
      return {value, value, 0};
    }
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t) {
      const auto list = league.tail[rows_.tail_index[t]];
      for (int32_t e = 0; e < list.size; ++e)
        s[list.classes[e]] += double(rows_.tail_value[t]) * list.values[e];
    }
    std::fill(s + league.size(), s + league.stride, nothing);
    if (inner) s[place_[y_[i]]] = nothing;
    double dual = 0, worst = 0, loss = 0;
    for_each(i, l, [&](int32_t c, double coef) {
      if (coef > 0) return;  // the own class
      const double excess = 1 + s[c] + alone(i, coef) - own, value = -coef;
      loss += std::max(0.0, excess);
      worst = std::max(worst, excess > 0 ? (value < Ci ? excess : 0.0) : -excess);
      dual += value;
      s[c] = nothing;
    });
    // A class whose variable is 0 violates by its positive excess.
    vec<double> sums = {}, tops = {};
    for (int64_t c = 0; c < league.stride; c += Lanes<double>::count) {
      const vec<double> excess = larger<double>(load(s + c) + (1 - own), vec<double>{});
      sums += excess;
      tops = larger<double>(tops, excess);
    }
    for (int lane = 0; lane < Lanes<double>::count; ++lane) {
      loss += sums[lane];
      worst = std::max(worst, tops[lane]);
    }
    return {Ci * loss, dual, worst};
  }

  const Layout<T>& rows_;
  const std::vector<int32_t>& y_;
  const std::vector<T>& C_;
  const std::vector<int32_t>&league_, &place_;
  const DualRows<T>& alpha_;
  std::vector<double> sum_;
};

}  // namespace manyclass
