// The certificate of the coupled losses, from the dual variables alone and in float64.
//
//   WW: P = 1/2 |W|^2 + sum_i C_i sum_{c != y} max(0, u_ic),   D = sum alpha - 1/2 |W|^2,   u_ic = 1 + s_ic -
//   s_iy CS: the same with the largest u_ic in place of the sum
//
// Blocks of 16 classes are shared out to the threads; what they add up is put together in the order of the
// blocks, so the result does not depend on the number of threads.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "coefficients.hpp"
#include "dual_rows.hpp"
#include "layout.hpp"
#include "relative_margin.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
class CoupledCertificate {
 public:
  CoupledCertificate(const Layout<T>& rows, const std::vector<int32_t>& labels, const std::vector<T>& C,
                     const DualRows<T>& alpha, int64_t classes, Relative loss)
      : rows_(rows), y_(labels), C_(C), alpha_(alpha), K_(classes), loss_(loss) {}

  // The dual variables as coefficients of the weights, by classes: w_c = sum_i coef_ic x_i. What rounding has
  // put above C_i comes back to the feasible set here.
  Coefficients<double> coefficients() const {
    Coefficients<double> out;
    out.ptr.assign(K_ + 1, 0);
    for (int64_t i = 0; i < rows_.n; ++i) {
      const auto a = alpha_[i];
      for (int32_t e = 0; e < a.size; ++e) ++out.ptr[a.classes[e] + 1];
      out.ptr[y_[i] + 1] += a.size > 0;
    }
    for (int64_t c = 0; c < K_; ++c) out.ptr[c + 1] += out.ptr[c];
    out.row.resize(out.ptr[K_]);
    out.value.resize(out.ptr[K_]);
    std::vector<int64_t> next(out.ptr.begin(), out.ptr.end() - 1);
    const auto put = [&](int64_t i, int32_t c, double value) {
      out.row[next[c]] = static_cast<int32_t>(i);
      out.value[next[c]++] = value;
    };
    for (int64_t i = 0; i < rows_.n; ++i) {
      const auto a = alpha_[i];
      if (a.size == 0) continue;
      double sum = 0;
      for (int32_t e = 0; e < a.size; ++e) sum += a.values[e];
      const double scale = loss_ == Relative::cs && sum > C_[i] ? C_[i] / sum : 1;
      for (int32_t e = 0; e < a.size; ++e) put(i, a.classes[e], -scale * a.values[e]);
      put(i, y_[i], scale * sum);
    }
    return out;
  }

  // Primal, dual and largest violation over all variables. `loaded(block)` sees the weights of each block of
  // classes.
  template <class F>
  Certificate certify(const Coefficients<double>& coef, int threads, F loaded) const {
    std::vector<std::vector<int32_t>> members(K_);
    for (int64_t i = 0; i < rows_.n; ++i) members[y_[i]].push_back(static_cast<int32_t>(i));
    const int64_t blocks = (K_ + WeightBlock<T>::width - 1) / WeightBlock<T>::width;
    std::vector<double> own(rows_.n, 0.0);
    std::vector<Certificate> parts(blocks);
    // CS: the largest score of the other classes, and the least of those in use
    std::vector<std::vector<double>> most(threads), least(threads);
#pragma omp parallel num_threads(threads)
    {
      Block block(rows_, coef);
      const auto load = [&](int64_t b) {
        const auto norms = block.load_classes(b * block.width, K_);
        parts[b].primal = norms.rounded / 2;
        parts[b].dual = -norms.exact / 2;
        loaded(block);
      };
      if (loss_ == Relative::ww) {  // a sum of hinges needs the own scores first; a maximum can wait for them
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < blocks; ++b) {
          load(b);
          for (int64_t c = block.first(); c < block.last(); ++c)
            for (int32_t i : members[c]) own[i] = block.score(i, c);
        }
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < blocks; ++b) {
          block.load_classes(b * block.width, K_);
          parts[b].add(ww_part(block, own));
        }
      } else {
        auto& top = most[omp_get_thread_num()];
        auto& low = least[omp_get_thread_num()];
        top.assign(rows_.n, -std::numeric_limits<double>::infinity());
        low.assign(rows_.n, std::numeric_limits<double>::infinity());
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < blocks; ++b) {
          load(b);
          parts[b].add(cs_part(block, own, top, low));
        }
      }
    }
    Certificate total;
    for (const auto& part : parts) total.add(part);
    for (int64_t i = 0; i < rows_.n; ++i) {
      // A row without features: every margin is 0 whatever the weights, its variables all stand at the bound.
      const double bound = C_[i] * (loss_ == Relative::ww ? double(K_ - 1) : 1.0);
      if (rows_.norm[i] == 0) {
        total.dual += bound;
        if (loss_ == Relative::cs) total.primal += bound;
        continue;
      }
      if (loss_ == Relative::ww) continue;
      double top = -std::numeric_limits<double>::infinity(), low = -top, sum = 0;
      for (int t = 0; t < threads; ++t) {
        if (most[t].empty()) continue;
        top = std::max(top, most[t][i]);
        low = std::min(low, least[t][i]);
      }
      top = std::max(0.0, 1 + top - own[i]);
      low = 1 + low - own[i];
      const auto a = alpha_[i];
      for (int32_t e = 0; e < a.size; ++e) sum += a.values[e];
      if (has_slack<T>(sum, C_[i])) low = std::min(low, 0.0);
      total.primal += C_[i] * top;
      total.violation = std::max(total.violation, top - std::min(low, top));
    }
    return total;
  }

 private:
  using Block = BlockOfClasses<T, Coefficients<double>>;

  static vec<double> positive(vec<double> u) { return larger<double>(u, vec<double>{}); }

  // u_c = 1 + s_c - s_y. A class without a variable in use adds max(0, u_c), and violates by as much.
  Certificate ww_part(Block& block, const std::vector<double>& own) const {
    vec<double> losses = {}, worst = {};
    Certificate part;
    const int64_t first = block.first(), many = block.last() - first;
    block.for_each_row(
        y_,
        [&](int64_t i, const Scores& s) {
          const double shift = 1 - own[i];
          const vec<double> low = positive(s.low + shift), high = positive(s.high + shift);
          losses += C_[i] * (low + high);
          if (rows_.norm[i] > 0) worst = larger<double>(worst, larger<double>(low, high));
        },
        [&](int64_t i, const Scores& s, const Scores& coef) {
          double loss = 0, violation = 0;
          for (int64_t l = 0; l < many; ++l) {
            if (first + l == y_[i]) continue;
            const double u = 1 + s[l] - own[i], a = -coef[l];
            loss += std::max(0.0, u);
            part.dual += a;
            violation = std::max(violation, u > 0 ? (a < C_[i] ? u : 0.0) : (a > 0 ? -u : 0.0));
          }
          part.primal += C_[i] * loss;
          if (rows_.norm[i] > 0) part.violation = std::max(part.violation, violation);
        });
    for (int l = 0; l < 8; ++l) {
      part.primal += losses[l];
      part.violation = std::max(part.violation, worst[l]);
    }
    return part;
  }

  Certificate cs_part(Block& block, std::vector<double>& own, std::vector<double>& most,
                      std::vector<double>& least) const {
    Certificate part;
    const int64_t first = block.first(), many = block.last() - first;
    block.for_each_row(
        y_,
        [&](int64_t i, const Scores& s) {
          const vec<double> top = larger<double>(s.low, s.high);
          double largest = top[0];
          for (int l = 1; l < 8; ++l) largest = std::max(largest, top[l]);
          most[i] = std::max(most[i], largest);
        },
        [&](int64_t i, const Scores& s, const Scores& coef) {
          for (int64_t l = 0; l < many; ++l) {
            if (first + l == y_[i]) {
              own[i] = s[l];
              continue;
            }
            most[i] = std::max(most[i], s[l]);
            if (coef[l] != 0) least[i] = std::min(least[i], s[l]);
            part.dual -= coef[l];
          }
        });
    return part;
  }

  const Layout<T>& rows_;
  const std::vector<int32_t>& y_;
  const std::vector<T>& C_;
  const DualRows<T>& alpha_;
  const int64_t K_;
  const Relative loss_;
};

}  // namespace manyclass
