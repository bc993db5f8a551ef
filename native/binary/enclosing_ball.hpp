// StreamSVM (Rai, Daume and Venkatasubramanian, 2009): trains the squared hinge in one pass, as a growing
// ball that encloses points, for a vector of classes at once.
//
// Row i is the point [t_i x_i, sqrt(D_i) e_i] with D_i = 1 / (2 C_i), where e_i is an axis of its own. The
// centre of the ball is a convex combination of points, [w, (a_i sqrt(D_i))_i] with w = sum_i a_i t_i x_i and
// sum_i a_i = 1. A new point is at distance d from the centre:
//     d^2 = |w|^2 - 2 t_i w.x_i + |x_i|^2 + q + D_i,   q = sum_j a_j^2 D_j.
// If d > R, the smallest ball around the old one and the point has its centre beta = (1 - R / d) / 2 of the
// way towards the point:
//     w <- (1 - beta) w + beta t_i x_i    q <- (1 - beta)^2 q + beta^2 D_i    R <- R + beta d = (R + d) / 2
// The first ball is the first point, with R = 0.
//
// Every a >= 0 is feasible in the dual of binary/loss.hpp, and so is theta a. The dual value of theta a,
// theta - theta^2 (|w|^2 + q) / 2, is largest for
//     theta = 1 / (|w|^2 + q).
// The gap that remains is that of StreamSVM itself.
//
// The common factor of the (1 - beta) is kept apart from weights and variables: w = scale V, a = scale u. R
// grows by a factor of at least 1 / (1 - beta) with each such step, so `scale` never falls below the first
// positive R divided by the last one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "binary/step.hpp"
#include "simd/lane_masks.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

template <class T>
class EnclosingBall {
 public:
  static constexpr int width = Lanes<T>::count;

  // Visits these rows. W holds V and the states hold u; W is cleared at the very first row.
  void grow(const VisitedRows<T>& on, auto interrupted) {
    for (int64_t r = 0; r < on.count(); ++r) {
      if (r % 1024 == 0 && interrupted()) break;
      on.prefetch(r + 2);
      const int64_t i = on.order[r];
      const double norm = on.rows.norm[i], D = 1 / (2 * double(on.penalties[i]));
      if (!begun_) std::fill(on.W, on.W + on.rows.heads() * width, T(0));
      const vec<T> t = on.sides.signs(i);
      alignas(64) T margin[width];
      store(margin, t * on.score(i));  // each row is visited once: features of its own have no weights yet
      const vec<T> taken = begun_ ? meet(Wide<T>(margin), norm, D) : begin(norm, D);
      store(on.states + i * width, taken);
      if (any_nonzero<T>(taken)) on.add(i, t * taken, on.W);
    }
  }

  // theta scale: turns u into dual variables.
  Wide<T> factor() const {
    Wide<T> all;
    for (int v = 0; begun_ && v < parts; ++v) all.part[v] = scale_.part[v] / (norm_.part[v] + q_.part[v]);
    return all;
  }

 private:
  static constexpr int parts = Wide<T>::parts;

  vec<T> begin(double norm, double D) {
    begun_ = true;
    for (int v = 0; v < parts; ++v) {
      norm_.part[v] = vec<double>{} + norm;
      q_.part[v] = vec<double>{} + D;
      scale_.part[v] = vec<double>{} + 1.0;
    }
    return vec<T>{} + T(1);
  }

  // u of a point with the given margin at V; 0 in the lanes whose ball contains it.
  vec<T> meet(const Wide<T>& margin, double norm, double D) {
    Wide<T> taken;
    const vec<double> zero = {};
    for (int v = 0; v < parts; ++v) {
      const vec<double> m = scale_.part[v] * margin.part[v];
      const vec<double> square = norm_.part[v] - 2 * m + norm,
                        d = root(larger<double>(square, zero) + q_.part[v] + D);
      const vec<double> beta = d > R_.part[v] ? (1 - R_.part[v] / d) / 2 : zero, rest = 1 - beta;
      norm_.part[v] = rest * rest * norm_.part[v] + 2 * rest * beta * m + beta * beta * norm;
      q_.part[v] = rest * rest * q_.part[v] + beta * beta * D;
      R_.part[v] += beta * d;
      scale_.part[v] *= rest;
      taken.part[v] = beta / scale_.part[v];
    }
    return taken.rounded();
  }

  static vec<double> root(vec<double> v) {
    for (int l = 0; l < Wide<T>::L; ++l) v[l] = std::sqrt(v[l]);
    return v;
  }

  bool begun_ = false;
  Wide<T> norm_, q_, R_, scale_;  // |w|^2, q, R, scale
};

// One ball for each vector of classes.
template <class T>
struct EnclosingBalls {
  explicit EnclosingBalls(int64_t vectors) : ball(vectors) {}
  std::vector<EnclosingBall<T>> ball;
};

}  // namespace manyclass
