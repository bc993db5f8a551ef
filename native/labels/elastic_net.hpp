// One label against the rest with an elastic net (PPDSparse; Yen et al., KDD 2017). With t_i = 1 for the rows
// of the label and -1 for all others:
//
//   P(w) = lambda |w|_1 + tau/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//   D(a) = sum_i gain(a_i) - tau/2 |w(a)|^2,   w(a) = soft(v, lambda) / tau,   v = sum_i t_i a_i x_i
//     hinge           loss = max(0, 1 - m)          gain = a                    0 <= a <= C_i
//     squared hinge   loss = 1/2 max(0, 1 - m)^2    gain = a - a^2 / (2 C_i)    a >= 0
//
// where soft(v, lambda) = sign(v) max(0, |v| - lambda). The optional constant feature is in |w|^2 but not in
// |w|_1, so its weight is v / tau.
#pragma once
#include <algorithm>
#include <cmath>

namespace manyclass {

struct ElasticNet {
  double lambda, tau;
  double constant;  // the value of the constant feature, 0 if there is none

  double weight(double v) const {
    const double size = std::max(0.0, std::abs(v) - lambda) / tau;
    return v < 0 ? -size : size;
  }
  double penalty(double w) const { return lambda * std::abs(w) + tau / 2 * w * w; }
};

template <bool squared>
struct SparseLoss {
  static double loss(double m, double C) {
    const double over = std::max(0.0, 1 - m);
    return squared ? C / 2 * over * over : C * over;
  }
  static double gain(double a, double C) { return squared ? a - a * a / (2 * C) : a; }
  // The contribution of one row to the duality gap.
  static double gap(double a, double m, double C) { return loss(m, C) - gain(a, C) + a * m; }
  static double gradient(double a, double m, double C) { return squared ? 1 - m - a / C : 1 - m; }
  // The optimal value with all other rows fixed, assuming curvature k = x.x / tau along it. That is an upper
  // bound of the dual's curvature, so the step never lowers the dual.
  static double best(double a, double m, double k, double C) {
    const double g = gradient(a, m, C), curve = squared ? k + 1 / C : k;
    if (curve == 0) return g > 0 ? C : 0.0;  // hinge, and a row without features
    const double next = std::max(0.0, a + g / curve);
    return squared ? next : std::min(next, C);
  }
  static double violation(double a, double m, double C) {
    const double g = gradient(a, m, C);
    return g > 0 ? (squared || a < C ? g : 0.0) : (a > 0 ? -g : 0.0);
  }
};

}  // namespace manyclass
