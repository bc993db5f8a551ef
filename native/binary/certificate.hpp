// Certificates of a block of binary problems, in float64: from dual variables, or from the weights that
// Newton's method has found. binary/loss.hpp states P and D.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "binary/data.hpp"
#include "binary/loss.hpp"
#include "binary/newton.hpp"
#include "binary/problems.hpp"
#include "binary/step.hpp"
#include "dual/certificate.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

// The memory with which a thread trains one block after another.
template <class T>
struct BlockWork {
  static constexpr int width = Lanes<T>::count;

  explicit BlockWork(const BinaryData<T>& data)
      : W(data.rows.heads() * width),
        state(data.rows.n * width),
        exact(data.rows.heads() * width),
        sides(data.no_sides()) {}

  Buffer<T> W, state;             // state: see binary/loss.hpp
  Buffer<double> exact;           // W in float64, for the certificate
  RowSides sides;                 // in the block's problems; all 0 between blocks
  std::vector<int32_t> rows;      // the block's rows that have features
  std::vector<int32_t> features;  // the head features of these rows
  std::vector<char> seen;         // one-vs-one: whether a head feature is among them
  std::vector<int32_t> active;
  std::optional<Newton<T>> newton;
};

template <class T, Binary loss>
class BinaryCertificate {
 public:
  static constexpr int width = Lanes<T>::count, L = Wide<T>::L, parts = Wide<T>::parts;

  BinaryCertificate(const BinaryData<T>& data, const BinaryBlock<T>& block, BlockWork<T>& work)
      : data_(data), rows_(data.rows), block_(block), work_(work) {}

  // Sets the weights of the block to those of the dual variables, rounded as the model will store them.
  // Returns the squared norms of the exact and of the rounded weights.
  struct Squares {
    Wide<T> exact, rounded;
  };
  Squares set_weights() const {
    Wide<T> exact, rounded;
    for (int32_t f : work_.features) std::fill_n(work_.exact.data() + int64_t(f) * width, width, 0.0);
    for (int32_t i : work_.rows) {
      if (Loss::sparse && !any_nonzero<T>(load(work_.state.data() + int64_t(i) * width))) continue;
      add_to_exact(i, coefficients(i));
      if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
      const Wide<T> single = single_coefficients(i);
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int v = 0; v < parts; ++v) {
          const vec<double> w = single.part[v] * double(rows_.single_value[j]);
          const vec<double> stored = single_weight(single.part[v], rows_.single_value[j]);
          exact.part[v] += w * w;
          rounded.part[v] += stored * stored;
        }
    }
    for (int32_t f : work_.features)
      for (int v = 0; v < parts; ++v) {
        const int64_t at = int64_t(f) * width + v * L;
        vec<double> w = load(work_.exact.data() + at);
        if (!data_.kept.all()) w = data_.kept.template where_kept<double>(f, block_.problem[0] + v * L, w);
        store_as<double>(work_.W.data() + at, w);
        const vec<double> stored = load_as<double>(work_.W.data() + at);
        exact.part[v] += w * w;
        rounded.part[v] += stored * stored;
      }
    return {exact, rounded};
  }

  // From the dual variables alone; also sets the weights.
  Certificate of_variables() const {
    const auto [exact, rounded] = set_weights();
    Wide<T> losses, gains, worst;
    for (int32_t i : work_.rows) {
      Wide<T> s = head_scores(i, work_.W.data());
      if (rows_.single_ptr[i] != rows_.single_ptr[i + 1]) {
        const Wide<T> coef = single_coefficients(i);
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          for (int v = 0; v < parts; ++v)
            s.part[v] += double(rows_.single_value[j]) * single_weight(coef.part[v], rows_.single_value[j]);
      }
      const Wide<T> state(work_.state.data() + int64_t(i) * width), t = signs(i);
      for (int v = 0; v < parts; ++v) {
        const auto seen =
            taking_part(Loss::measure(state.part[v], s.part[v] * t.part[v], double(data_.C[i])), t.part[v]);
        losses.part[v] += seen.loss;
        gains.part[v] += seen.gain;
        worst.part[v] = larger<double>(worst.part[v], seen.violation);
      }
    }
    const double empty = empty_loss();
    const int64_t many = block_.many();
    return {rounded.sum(many) / 2 + losses.sum(many) + empty, gains.sum(many) - exact.sum(many) / 2 + empty,
            worst.largest(many)};
  }

  // From the weights of Newton's method. The dual variables are a_i = -C_i loss'(m_i) at their margins, and
  // become the state; the violation is the largest component of the gradient.
  Certificate of_weights() const {
    Newton<T>& newton = *work_.newton;
    Wide<T> norm, dual_norm, losses, gains, steepest;
    const auto see = [&](int v, vec<double> w, vec<double> of_dual) {
      norm.part[v] += w * w;
      dual_norm.part[v] += of_dual * of_dual;
      steepest.part[v] = larger<double>(steepest.part[v], larger<double>(w - of_dual, of_dual - w));
    };
    for (int32_t f : work_.features) std::fill_n(work_.exact.data() + int64_t(f) * width, width, 0.0);
    for (int32_t i : work_.rows) {
      Wide<T> s = head_scores(i, newton.weights());
      const vec<T> own = newton.own_weight(i);
      alignas(64) T stored[width];
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
        store(stored, own * rows_.single_value[j]);
        s.add_scaled(rows_.single_value[j], stored);
      }
      const Wide<T> t = signs(i);
      Wide<T> a;
      for (int v = 0; v < parts; ++v) {
        const vec<double> m = s.part[v] * t.part[v];
        const vec<double> state = Loss::at_margin(m, double(data_.C[i]));
        const auto seen = taking_part(Loss::measure(state, m, double(data_.C[i])), t.part[v]);
        store_as<double>(work_.state.data() + int64_t(i) * width + v * L, state);
        losses.part[v] += seen.loss;
        gains.part[v] += seen.gain;
        a.part[v] = Loss::variable(state, double(data_.C[i])) * t.part[v];
      }
      add_to_exact(i, a);
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
        store(stored, own * rows_.single_value[j]);
        for (int v = 0; v < parts; ++v)
          see(v, load_as<double>(stored + v * L), double(rows_.single_value[j]) * a.part[v]);
      }
    }
    for (int32_t f : work_.features)
      for (int v = 0; v < parts; ++v) {
        const int64_t at = int64_t(f) * width + v * L;
        see(v, load_as<double>(newton.weights() + at), load(work_.exact.data() + at));
      }
    const double empty = empty_loss();
    const int64_t many = block_.many();
    return {norm.sum(many) / 2 + losses.sum(many) + empty, gains.sum(many) - dual_norm.sum(many) / 2 + empty,
            steepest.largest(many)};
  }

  // t_i a_i in the weights of features that only row i has.
  Wide<T> single_coefficients(int64_t i) const {
    if (data_.kept.all()) return coefficients(i);
    Wide<T> out = coefficients(i);
    const Wide<T> only(work_.sides.template signs<T>(i) > vec<T>{} ? vec<T>{} + 1 : vec<T>{});
    for (int v = 0; v < parts; ++v) out.part[v] *= only.part[v];
    return out;
  }

 private:
  using Loss = BinaryLoss<loss>;

  Wide<T> signs(int64_t i) const { return Wide<T>(work_.sides.template signs<T>(i)); }

  // One-vs-one: rows with t_i = 0 do not count.
  Measured<double> taking_part(const Measured<double>& seen, vec<double> t) const {
    if (!block_.pairs) return seen;
    const vec<double> in = t * t;
    return {seen.loss * in, seen.gain * in, seen.violation * in};
  }

  // t_i a_i
  Wide<T> coefficients(int64_t i) const {
    return signed_variables<loss>(work_.state.data() + i * width, work_.sides.template signs<T>(i),
                                  data_.C[i]);
  }

  void add_to_exact(int64_t i, const Wide<T>& coef) const {
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
      coef.add_to(work_.exact.data() + int64_t(rows_.head_index[h]) * width, rows_.head_value[h]);
  }

  Wide<T> head_scores(int64_t i, const T* W) const {
    Wide<T> s;
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
      s.add_scaled(rows_.head_value[h], W + int64_t(rows_.head_index[h]) * width);
    return s;
  }

  // The rounded weight of a feature that only one row has.
  static vec<double> single_weight(vec<double> coef, double x) {
    alignas(64) T stored[L];
    store_as<double>(stored, coef * x);
    return load_as<double>(stored);
  }

  // A row without features has margin 0 for any weights, and its largest dual value equals its loss.
  double empty_loss() const {
    double empty = 0;
    if (block_.pairs) {
      for (int64_t l = 0; l < block_.many(); ++l)
        empty += data_.empty_C_of[block_.positive[l]] + data_.empty_C_of[block_.negative[l]];
    } else {
      empty = double(block_.many()) * data_.empty_C;
    }
    return empty * BinaryLoss<loss>::at_zero;
  }

  const BinaryData<T>& data_;
  const Layout<T>& rows_;
  const BinaryBlock<T>& block_;
  BlockWork<T>& work_;
};

}  // namespace manyclass
