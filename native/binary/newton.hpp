// Newton's method with a trust region on the primal of a vector of binary problems with smooth losses. All
// problems advance together, so that one pass over the rows computes the products with all their Hessians.
//
//   f(w) = 1/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//   gradient = w - sum_i a_i t_i x_i,          a_i = -C_i loss'(m_i): a feasible dual point, hence a gap
//   Hessian d = d + sum_i C_i loss''(m_i) (x_i.d) x_i
//
// A step minimises the quadratic model within the trust region by truncated conjugate gradients. If these
// converge slowly and there are few features, later steps solve the Newton system directly, with a line
// search. The features that only one row has are combined into one feature whose value is the norm of theirs:
// it has the same effect on the margin.
//
// If a row takes no part in a problem, its t_i is 0.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "binary/direct_solve.hpp"
#include "binary/loss.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

template <class T>
class Newton {
 public:
  static constexpr int width = Lanes<T>::count;

  // rows: those that have features. Keeps references to all arguments.
  Newton(const Layout<T>& layout, const std::vector<T>& C, const std::vector<int32_t>& rows)
      : layout_(layout), C_(C), rows_(rows), own_(layout.n, -1) {
    int64_t features = layout.heads();
    for (int32_t i : rows)
      if (layout.tail_norm[i] > 0) own_[i] = static_cast<int32_t>(features++);
    for (Buffer<T>* v : {&w_, &gradient_, &step_, &residual_, &direction_, &product_})
      v->reset(features * width);
    exact_.reset(features * width);
    for (Buffer<T>* v : {&margin_, &step_margin_, &along_, &curvature_}) v->reset(layout.n * width);
  }

  struct Progress {
    Wide<T> primal, dual, steepest;  // steepest: the largest component of the gradient
  };

  T* weights() { return w_.data(); }
  // The weights of features that only row i has are this times their values.
  vec<T> own_weight(int64_t i) const {
    return own_[i] < 0 ? vec<T>{}
                       : load(w_.data() + int64_t(own_[i]) * width) * (1 / std::sqrt(layout_.tail_norm[i]));
  }
  void set_own_weight(int64_t i, vec<T> times) {
    if (own_[i] >= 0) store(w_.data() + int64_t(own_[i]) * width, times * std::sqrt(layout_.tail_norm[i]));
  }

  // Starts each problem at its current weights, or at 0 if that is better. signs(i): t_i.
  template <Binary loss, class Signs>
  Progress start(Signs signs) {
    Wide<T> at_zero;
    for (int32_t i : rows_) {
      const vec<T> t = signs(i);
      store(margin_.data() + int64_t(i) * width, t * dot(i, w_.data()));
      at_zero.add(t * t * loss_at<loss>(vec<T>{}, i));
    }
    radius_ = {};
    directly_ = false;
    const Progress at = look<loss>(signs);
    vec<T> keep = vec<T>{} + 1;
    for (int l = 0; l < width; ++l)
      if (!(at.primal[l] <= at_zero[l])) keep[l] = 0;
    if (!any_nonzero<T>(keep - 1)) return at;
    const auto clear = [&](T* v) { store(v, keep > vec<T>{} ? load(v) : vec<T>{}); };
    for (int64_t f = 0; f < w_.size(); f += width) clear(w_.data() + f);
    for (int32_t i : rows_) clear(margin_.data() + int64_t(i) * width);
    return look<loss>(signs);
  }

  // One step of the active problems. Adds the number of passes over the rows to `passes`.
  template <Binary loss, class Signs>
  Progress advance(const Progress& at, const bool (&active)[width], int64_t& passes, Signs signs) {
    const int64_t features = w_.size() / width;
    const bool few = features <= DirectSolve<T>::most_unknowns;
    vec<T> accepted = {};
    if (!directly_) {
      int64_t most = few ? 8 : 200;
      directly_ = !step_within_region<loss>(at, active, most, accepted, signs) && few;
      passes += std::max<int64_t>(1, most);
    }
    if (directly_) {
      accepted = solve_for_step<loss>(at, active, signs);
      passes += 1 + features / 4;  // passes of about the same cost
    }
    if (!any_nonzero<T>(accepted)) return at;
    for (int64_t f = 0; f < w_.size(); f += width)
      store(w_.data() + f, load(w_.data() + f) + accepted * load(step_.data() + f));
    for (int32_t i : rows_) {
      T* m = margin_.data() + int64_t(i) * width;
      store(m, directly_ ? signs(i) * exact_dot(i, w_.data())
                         : load(m) + accepted * load(step_margin_.data() + int64_t(i) * width));
    }
    ++passes;
    return look<loss>(signs);
  }

 private:
  // f(feature, value), including the combined feature of the row.
  void for_each_feature(int64_t i, auto f) const {
    for (int64_t h = layout_.head_ptr[i]; h < layout_.head_ptr[i + 1]; ++h)
      f(int64_t(layout_.head_index[h]), layout_.head_value[h]);
    if (own_[i] >= 0) f(int64_t(own_[i]), std::sqrt(layout_.tail_norm[i]));
  }

  vec<T> dot(int64_t i, const T* v) const {
    vec<T> s = {};
    for_each_feature(i, [&](int64_t f, T x) { s += x * load(v + f * width); });
    return s;
  }

  // Summed in float64.
  vec<T> exact_dot(int64_t i, const T* v) const {
    Wide<T> s;
    for_each_feature(i, [&](int64_t f, T x) { s.add_scaled(x, v + f * width); });
    return s.rounded();
  }

  // v += times x_i
  void add(int64_t i, vec<T> times, T* v) const {
    for_each_feature(i, [&](int64_t f, T x) { store(v + f * width, load(v + f * width) + x * times); });
  }

  template <Binary loss>
  vec<T> loss_at(vec<T> m, int64_t i) const {
    return BinaryLoss<loss>::measure(BinaryLoss<loss>::at_margin(m, C_[i]), m, C_[i]).loss;
  }

  static Wide<T> product(const Buffer<T>& u, const Buffer<T>& v) {
    Wide<T> sum;
    for (int64_t f = 0; f < v.size(); f += width) sum.add_product(u.data() + f, v.data() + f);
    return sum;
  }
  static Wide<T> norm(const Buffer<T>& v) { return product(v, v); }

  // Gradient, curvature and both objectives at the current margins. The gradient is summed in float64,
  // because for long rows it is a small difference of large numbers.
  template <Binary loss, class Signs>
  Progress look(Signs signs) {
    using Loss = BinaryLoss<loss>;
    Progress at;
    std::fill(exact_.data(), exact_.data() + exact_.size(), 0.0);  // the weights of the dual variables
    for (int32_t i : rows_) {
      const vec<T> m = load(margin_.data() + int64_t(i) * width), state = Loss::at_margin(m, C_[i]);
      const vec<T> t = signs(i), part = t * t;
      const auto seen = Loss::measure(state, m, C_[i]);
      at.primal.add(part * seen.loss);
      at.dual.add(part * seen.gain);
      store(curvature_.data() + int64_t(i) * width, part * Loss::curvature(m, C_[i]));
      const Wide<T> a(t * Loss::variable(state, C_[i]));
      for_each_feature(i, [&](int64_t f, T x) { a.add_to(exact_.data() + f * width, x); });
    }
    Wide<T> dual_norm, steepest;
    for (int64_t f = 0; f < w_.size(); f += width)
      for (int v = 0; v < Wide<T>::parts; ++v) {
        const int64_t place = f + v * Wide<T>::L;
        const vec<double> of_dual = load(exact_.data() + place);
        const vec<double> g = load_as<double>(w_.data() + place) - of_dual;
        dual_norm.part[v] += of_dual * of_dual;
        steepest.part[v] = larger<double>(steepest.part[v], larger<double>(g, -g));
        store_as<double>(gradient_.data() + place, g);
      }
    const Wide<T> primal_norm = norm(w_);
    for (int v = 0; v < Wide<T>::parts; ++v) {
      at.primal.part[v] += primal_norm.part[v] * 0.5;
      at.dual.part[v] -= dual_norm.part[v] * 0.5;
    }
    at.steepest = steepest;
    return at;
  }

  // The objectives at w + share s, given ww = |w|^2, ws = w.s and ss = |s|^2.
  template <Binary loss, class Signs>
  Wide<T> primal_after(vec<T> share, const Wide<T>& ww, const Wide<T>& ws, const Wide<T>& ss, Signs signs) {
    alignas(64) T shares[width];
    store(shares, share);
    Wide<T> now;
    for (int l = 0; l < width; ++l) now[l] = (ww[l] + shares[l] * (2 * ws[l] + shares[l] * ss[l])) / 2;
    for (int32_t i : rows_) {
      const vec<T> m =
          load(margin_.data() + int64_t(i) * width) + share * load(step_margin_.data() + int64_t(i) * width);
      const vec<T> t = signs(i);
      now.add(t * t * loss_at<loss>(m, i));
    }
    return now;
  }

  // Computes the step by conjugate gradients, and which problems accept it (1 or 0). passes: on entry the
  // limit, on return the number used. Returns whether the limit was enough.
  template <Binary loss, class Signs>
  bool step_within_region(const Progress& at, const bool (&active)[width], int64_t& passes, vec<T>& accepted,
                          Signs signs) {
    const Wide<T> gg = norm(gradient_);
    for (int l = 0; l < width; ++l)
      if (radius_[l] == 0) radius_[l] = std::sqrt(gg[l]);
    const Descent end = conjugate_gradients(gg, active, passes);
    const Wide<T> predicted = predicted_decrease();
    for (int32_t i : rows_) {
      T* m = step_margin_.data() + int64_t(i) * width;
      store(m, signs(i) * load(m));
    }
    const Wide<T> ss = norm(step_);
    const Wide<T> now = primal_after<loss>(vec<T>{} + 1, norm(w_), product(w_, step_), ss, signs);
    for (int l = 0; l < width; ++l) {
      if (!active[l]) continue;
      const double gained = at.primal[l] - now[l], length = std::sqrt(ss[l]);
      const double ratio = predicted[l] > 0 ? gained / predicted[l] : -1;
      if (ratio < 0.25)
        radius_[l] = 0.25 * std::min(length, radius_[l]);
      else if (ratio > 0.75 && end.at_border[l])
        radius_[l] *= 4;
      accepted[l] = ratio > 1e-4 ? T(1) : T(0);
    }
    return !end.any();
  }

  // Conjugate gradients in progress.
  struct Descent {
    bool going[width] = {}, at_border[width] = {};
    vec<T> on = {};  // 1 for problems that go on
    Wide<T> rr;      // the squared norm of the residual
    bool any() const {
      return std::any_of(going, going + width, [](bool g) { return g; });
    }
  };

  Descent begin_descent(const Wide<T>& gg, const bool (&active)[width]) {
    Descent at;
    for (int l = 0; l < width; ++l) {
      at.going[l] = active[l] && gg[l] > 0;
      at.on[l] = at.going[l] ? T(1) : T(0);
      at.rr[l] = at.going[l] ? gg[l] : 0;
    }
    std::fill(step_.data(), step_.data() + step_.size(), T(0));
    for (int64_t f = 0; f < w_.size(); f += width) {
      const vec<T> r = -at.on * load(gradient_.data() + f);
      store(residual_.data() + f, r);
      store(direction_.data() + f, r);
    }
    for (int32_t i : rows_) store(step_margin_.data() + int64_t(i) * width, vec<T>{});
    return at;
  }

  // Computes the step. passes: on entry the limit, on return the number used.
  Descent conjugate_gradients(const Wide<T>& gg, const bool (&active)[width], int64_t& passes) {
    constexpr double enough = 0.1;  // residual norm relative to the gradient's
    const int64_t most = std::exchange(passes, 0);
    Descent at = begin_descent(gg, active);
    while (passes < most && at.any()) {
      ++passes;
      multiply();
      bool ends[width] = {};
      const Wide<T> length = lengths(at, ends);
      const vec<T> by = length.rounded();
      Wide<T> next, turn;  // next: the squared norm of the new residual
      for (int64_t f = 0; f < w_.size(); f += width) {
        T *s = step_.data() + f, *r = residual_.data() + f;
        store(s, load(s) + by * load(direction_.data() + f));
        store(r, load(r) - by * load(product_.data() + f));
        next.add_product(r, r);
      }
      for (int32_t i : rows_) {
        T* m = step_margin_.data() + int64_t(i) * width;
        store(m, load(m) + by * load(along_.data() + int64_t(i) * width));
      }
      for (int l = 0; l < width; ++l) {
        if (!at.going[l]) continue;
        if (ends[l] || next[l] <= enough * enough * gg[l] || length[l] == 0) {
          at.going[l] = false;
          at.on[l] = 0;
        } else {
          turn[l] = next[l] / at.rr[l];
        }
        at.rr[l] = next[l];
      }
      const vec<T> keep = turn.rounded();
      for (int64_t f = 0; f < w_.size(); f += width) {
        T* d = direction_.data() + f;
        store(d, at.on * (load(residual_.data() + f) + keep * load(d)));
      }
    }
    return at;
  }

  // How far each problem goes along its direction; `ends` if that takes it to the border of its region.
  Wide<T> lengths(Descent& at, bool (&ends)[width]) const {
    Wide<T> curve, dd, sd, ss;
    for (int64_t f = 0; f < w_.size(); f += width) {
      const T *d = direction_.data() + f, *s = step_.data() + f;
      curve.add_product(d, product_.data() + f);
      dd.add_product(d, d);
      sd.add_product(s, d);
      ss.add_product(s, s);
    }
    Wide<T> length;
    for (int l = 0; l < width; ++l) {
      if (!at.going[l]) continue;
      length[l] = curve[l] > 0 ? at.rr[l] / curve[l] : 0;
      const double reached = ss[l] + 2 * length[l] * sd[l] + length[l] * length[l] * dd[l];
      const double radius = radius_[l] * radius_[l];
      if (reached <= radius) continue;
      const double root = std::sqrt(sd[l] * sd[l] + dd[l] * std::max(0.0, radius - ss[l]));
      length[l] = sd[l] >= 0 ? std::max(0.0, radius - ss[l]) / (sd[l] + root) : (root - sd[l]) / dd[l];
      ends[l] = at.at_border[l] = true;
    }
    return length;
  }

  // The decrease that the quadratic model predicts for the step. With the residual r = -g - H s, it is
  // -g.s - s.H s / 2 = (s.r - g.s) / 2.
  Wide<T> predicted_decrease() const {
    Wide<T> gs, sr, out;
    for (int64_t f = 0; f < w_.size(); f += width) {
      gs.add_product(gradient_.data() + f, step_.data() + f);
      sr.add_product(step_.data() + f, residual_.data() + f);
    }
    for (int v = 0; v < Wide<T>::parts; ++v) out.part[v] = (sr.part[v] - gs.part[v]) * 0.5;
    return out;
  }

  // Solves for the minimum of the model directly. Returns the share of the step that each problem takes:
  // halved until the objective decreases enough, or 1 if rounding would hide the decrease.
  template <Binary loss, class Signs>
  vec<T> solve_for_step(const Progress& at, const bool (&active)[width], Signs signs) {
    direct_.reset(w_.size() / width);
    for (int32_t i : rows_) {
      const Wide<T> c(curvature_.data() + int64_t(i) * width);
      for_each_feature(i, [&](int64_t f, T x) {
        for_each_feature(i, [&](int64_t g, T z) {
          if (g <= f) direct_.add(f, g, double(x) * double(z), c);
        });
      });
    }
    direct_.factor();
    Buffer<double> solution(w_.size());
    for (int64_t f = 0; f < w_.size(); ++f) solution.data()[f] = exact_.data()[f] - double(w_.data()[f]);
    direct_.solve(solution.data());
    Wide<T> slope;  // the negated slope of the objective along the step
    for (int64_t f = 0; f < w_.size(); ++f) {
      slope[f % width] += (exact_.data()[f] - double(w_.data()[f])) * solution.data()[f];
      step_.data()[f] = static_cast<T>(solution.data()[f]);
    }
    for (int32_t i : rows_)
      store(step_margin_.data() + int64_t(i) * width, signs(i) * exact_dot(i, step_.data()));
    constexpr double hidden = sizeof(T) == 4 ? 1e-6 : 1e-14;
    const Wide<T> ww = norm(w_), ws = product(w_, step_), ss = norm(step_);
    vec<T> share = {}, searching = {};
    for (int l = 0; l < width; ++l) {
      share[l] = active[l] ? T(1) : T(0);
      searching[l] = active[l] && slope[l] > hidden * at.primal[l] ? T(1) : T(0);
    }
    for (int halving = 0; halving < 20 && any_nonzero<T>(searching); ++halving) {
      const Wide<T> now = primal_after<loss>(share, ww, ws, ss, signs);
      for (int l = 0; l < width; ++l) {
        if (searching[l] == 0) continue;
        if (now[l] <= at.primal[l] - 1e-4 * double(share[l]) * slope[l])
          searching[l] = 0;
        else
          share[l] /= 2;
      }
    }
    return searching > vec<T>{} ? vec<T>{} : share;
  }

  // product = H direction, along_i = x_i.direction
  void multiply() {
    std::copy_n(direction_.data(), direction_.size(), product_.data());
    for (int32_t i : rows_) {
      const vec<T> d = dot(i, direction_.data());
      store(along_.data() + int64_t(i) * width, d);
      add(i, load(curvature_.data() + int64_t(i) * width) * d, product_.data());
    }
  }

  const Layout<T>& layout_;
  const std::vector<T>& C_;
  const std::vector<int32_t>& rows_;
  std::vector<int32_t> own_;  // by row, the number of its combined feature, or -1
  Buffer<T> w_, gradient_, step_, residual_, direction_, product_;  // by feature
  Buffer<double> exact_;                                            // by feature
  Buffer<T> margin_, step_margin_, along_, curvature_;              // by row
  DirectSolve<T> direct_;
  bool directly_ = false;  // set once conjugate gradients have needed too many passes
  Wide<T> radius_;
};

}  // namespace manyclass
