// Newton's method with a trust region on the primal of a vector of binary problems, all of them in step: each
// product with their Hessians is one pass over the rows.
//
//   f(w) = 1/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//   gradient = w - sum_i a_i t_i x_i,          a_i = -C_i loss'(m_i): a feasible dual point, and so a gap
//   Hessian d = d + sum_i C_i loss''(m_i) (x_i.d) x_i
//
// A step minimises the quadratic model within the trust region, by conjugate gradients that stop early. What
// only one row has is one feature: with v the norm of these values, it moves the margin as a feature of value
// v does.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "binary_loss.hpp"
#include "layout.hpp"
#include "vector.hpp"
#include "wide.hpp"

namespace manyclass {

template <class T>
class Newton {
 public:
  static constexpr int width = Lanes<T>::count;

  // `rows`: those that have features.
  Newton(const Layout<T>& layout, const std::vector<T>& C, const std::vector<int32_t>& rows)
      : layout_(layout), C_(C), rows_(rows), own_(layout.n, -1) {
    int64_t features = layout.heads();
    for (int32_t i : rows)
      if (layout.tail_norm[i] > 0) own_[i] = static_cast<int32_t>(features++);
    for (Buffer<T>* v : {&w_, &gradient_, &step_, &residual_, &direction_, &product_})
      v->reset(features * width);
    for (Buffer<T>* v : {&margin_, &step_margin_, &along_, &curvature_}) v->reset(layout.n * width);
  }

  // How far the problems are.
  struct Progress {
    Wide<T> primal, dual, steepest;  // steepest: the largest part of the gradient
  };

  T* weights() { return w_.data(); }
  // The weights of the features of row i alone are this times their values.
  vec<T> own_weight(int64_t i) const {
    return own_[i] < 0 ? vec<T>{}
                       : load(w_.data() + int64_t(own_[i]) * width) * (1 / std::sqrt(layout_.tail_norm[i]));
  }
  void set_own_weight(int64_t i, vec<T> times) {
    if (own_[i] >= 0) store(w_.data() + int64_t(own_[i]) * width, times * std::sqrt(layout_.tail_norm[i]));
  }

  // From the weights as they are. `signs(v, i)`: v t_i.
  template <Binary loss, class Signs>
  Progress start(Signs signs) {
    for (int32_t i : rows_) store(margin_.data() + int64_t(i) * width, signs(dot(i, w_.data()), i));
    const Progress at = look<loss>(signs);
    radius_ = {};
    return at;
  }

  // One step of the problems that are `active`; `passes` counts passes over the rows.
  template <Binary loss, class Signs>
  Progress advance(const Progress& at, const bool (&active)[width], int64_t& passes, Signs signs) {
    const Wide<T> gg = norm(gradient_);
    for (int l = 0; l < width; ++l)
      if (radius_[l] == 0) radius_[l] = std::sqrt(gg[l]);
    Wide<T> predicted;
    bool at_border[width] = {};
    passes += std::max<int64_t>(1, minimise_model(gg, active, at_border, predicted, signs));

    Wide<T> now;
    const Wide<T> step_norm = norm(step_);
    for (int64_t f = 0; f < w_.size(); f += width) {
      const vec<T> to = load(w_.data() + f) + load(step_.data() + f);
      alignas(64) T moved[width];
      store(moved, to);
      now.add_product(moved, moved);
    }
    for (auto& part : now.part) part = part * 0.5;
    for (int32_t i : rows_) {
      const vec<T> m =
          load(margin_.data() + int64_t(i) * width) + load(step_margin_.data() + int64_t(i) * width);
      alignas(64) T seen[width];
      store(seen, BinaryLoss<loss>::measure(BinaryLoss<loss>::at_margin(m, C_[i]), m, C_[i]).loss);
      now.add(seen);
    }
    vec<T> accepted = {};
    bool any = false;
    for (int l = 0; l < width; ++l) {
      if (!active[l]) continue;
      const double gained = at.primal[l] - now[l], length = std::sqrt(step_norm[l]);
      const double ratio = predicted[l] > 0 ? gained / predicted[l] : -1;
      if (ratio < 0.25)
        radius_[l] = 0.25 * std::min(length, radius_[l]);
      else if (ratio > 0.75 && at_border[l])
        radius_[l] *= 4;
      accepted[l] = ratio > 1e-4 ? T(1) : T(0);
      any |= ratio > 1e-4;
    }
    if (!any) return at;
    for (int64_t f = 0; f < w_.size(); f += width)
      store(w_.data() + f, load(w_.data() + f) + accepted * load(step_.data() + f));
    for (int32_t i : rows_) {
      T* m = margin_.data() + int64_t(i) * width;
      store(m, load(m) + accepted * load(step_margin_.data() + int64_t(i) * width));
    }
    ++passes;
    return look<loss>(signs);
  }

 private:
  vec<T> dot(int64_t i, const T* v) const {
    vec<T> s = {};
    for (int64_t h = layout_.head_ptr[i]; h < layout_.head_ptr[i + 1]; ++h)
      s += layout_.head_value[h] * load(v + int64_t(layout_.head_index[h]) * width);
    if (own_[i] >= 0) s += std::sqrt(layout_.tail_norm[i]) * load(v + int64_t(own_[i]) * width);
    return s;
  }

  // v += x_i times
  void add(int64_t i, vec<T> times, T* v) const {
    for (int64_t h = layout_.head_ptr[i]; h < layout_.head_ptr[i + 1]; ++h) {
      T* at = v + int64_t(layout_.head_index[h]) * width;
      store(at, load(at) + layout_.head_value[h] * times);
    }
    if (own_[i] < 0) return;
    T* at = v + int64_t(own_[i]) * width;
    store(at, load(at) + std::sqrt(layout_.tail_norm[i]) * times);
  }

  static Wide<T> norm(const Buffer<T>& v) {
    Wide<T> sum;
    for (int64_t f = 0; f < v.size(); f += width) sum.add_product(v.data() + f, v.data() + f);
    return sum;
  }

  // Gradient, curvature and both objectives at the current margins.
  template <Binary loss, class Signs>
  Progress look(Signs signs) {
    using Loss = BinaryLoss<loss>;
    Progress at;
    std::fill(gradient_.data(), gradient_.data() + gradient_.size(), T(0));  // first minus the weights of a
    for (int32_t i : rows_) {
      const vec<T> m = load(margin_.data() + int64_t(i) * width), state = Loss::at_margin(m, C_[i]);
      const auto seen = Loss::measure(state, m, C_[i]);
      alignas(64) T losses[width], gains[width];
      store(losses, seen.loss);
      store(gains, seen.gain);
      at.primal.add(losses);
      at.dual.add(gains);
      store(curvature_.data() + int64_t(i) * width, Loss::curvature(m, C_[i]));
      add(i, signs(-Loss::variable(state, C_[i]), i), gradient_.data());
    }
    const Wide<T> dual_norm = norm(gradient_), primal_norm = norm(w_);
    for (int v = 0; v < Wide<T>::parts; ++v) {
      at.primal.part[v] += primal_norm.part[v] * 0.5;
      at.dual.part[v] -= dual_norm.part[v] * 0.5;
    }
    vec<T> steepest = {};
    for (int64_t f = 0; f < w_.size(); f += width) {
      const vec<T> g = load(gradient_.data() + f) + load(w_.data() + f);
      store(gradient_.data() + f, g);
      steepest = larger<T>(steepest, larger<T>(g, -g));
    }
    for (int l = 0; l < width; ++l) at.steepest[l] = steepest[l];
    return at;
  }

  // The step, the margins it adds, and what the model says it gains; the number of passes it took.
  template <class Signs>
  int64_t minimise_model(const Wide<T>& gg, const bool (&active)[width], bool (&at_border)[width],
                         Wide<T>& predicted, Signs signs) {
    constexpr double enough = 0.1;  // of the gradient may be left
    constexpr int64_t most = 200;
    bool going[width];
    Wide<T> rr;
    vec<T> on = {};
    for (int l = 0; l < width; ++l) {
      going[l] = active[l] && gg[l] > 0;
      on[l] = going[l] ? T(1) : T(0);
      rr[l] = going[l] ? gg[l] : 0;
    }
    std::fill(step_.data(), step_.data() + step_.size(), T(0));
    for (int64_t f = 0; f < w_.size(); f += width) {
      const vec<T> r = -on * load(gradient_.data() + f);
      store(residual_.data() + f, r);
      store(direction_.data() + f, r);
    }
    for (int32_t i : rows_) store(step_margin_.data() + int64_t(i) * width, vec<T>{});
    int64_t pass = 0;
    while (pass < most && std::any_of(going, going + width, [](bool g) { return g; })) {
      ++pass;
      multiply();
      Wide<T> curve, dd, sd, ss;
      for (int64_t f = 0; f < w_.size(); f += width) {
        const T *d = direction_.data() + f, *s = step_.data() + f;
        curve.add_product(d, product_.data() + f);
        dd.add_product(d, d);
        sd.add_product(s, d);
        ss.add_product(s, s);
      }
      Wide<T> length, turn;
      bool ends[width] = {};
      for (int l = 0; l < width; ++l) {
        if (!going[l]) continue;
        length[l] = curve[l] > 0 ? rr[l] / curve[l] : 0;
        const double reached = ss[l] + 2 * length[l] * sd[l] + length[l] * length[l] * dd[l];
        const double radius = radius_[l] * radius_[l];
        if (reached <= radius) continue;
        const double root = std::sqrt(sd[l] * sd[l] + dd[l] * std::max(0.0, radius - ss[l]));
        length[l] = sd[l] >= 0 ? std::max(0.0, radius - ss[l]) / (sd[l] + root) : (root - sd[l]) / dd[l];
        ends[l] = at_border[l] = true;
      }
      const vec<T> by = length.rounded();
      Wide<T> next;
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
        if (!going[l]) continue;
        if (ends[l] || next[l] <= enough * enough * gg[l] || length[l] == 0) {
          going[l] = false;
          on[l] = 0;
        } else {
          turn[l] = next[l] / rr[l];
        }
        rr[l] = next[l];
      }
      const vec<T> keep = turn.rounded();
      for (int64_t f = 0; f < w_.size(); f += width) {
        T* d = direction_.data() + f;
        store(d, on * (load(residual_.data() + f) + keep * load(d)));
      }
    }
    // Of the residual r = -g - H s: the model gains -g.s - s.H s / 2 = (s.r - g.s) / 2.
    Wide<T> gs, sr;
    for (int64_t f = 0; f < w_.size(); f += width) {
      gs.add_product(gradient_.data() + f, step_.data() + f);
      sr.add_product(step_.data() + f, residual_.data() + f);
    }
    for (int v = 0; v < Wide<T>::parts; ++v) predicted.part[v] = (sr.part[v] - gs.part[v]) * 0.5;
    for (int32_t i : rows_) {
      T* m = step_margin_.data() + int64_t(i) * width;
      store(m, signs(load(m), i));
    }
    return pass;
  }

  // product = H direction; along_i = x_i.direction
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
  std::vector<int32_t> own_;  // number of the feature that stands for those of the row alone, or -1
  Buffer<T> w_, gradient_, step_, residual_, direction_, product_;  // by features
  Buffer<T> margin_, step_margin_, along_, curvature_;              // by rows
  Wide<T> radius_;
};

}  // namespace manyclass
