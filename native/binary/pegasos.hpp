// Pegasos on rows that come a block at a time (Yu, Hsieh, Chang and Lin, 2010, Algorithm 3), as an average of
// dual variables.
//
//   P(w) = 1/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//
// A margin asks for a dual variable r(m) = -C_i loss'(m), the response of its row:
//     hinge C_i if m < 1, else 0;   squared hinge 2 C_i max(0, 1 - m);   logistic C_i / (1 + exp(m)).
// The update of the paper with a set B of the n rows, (11) and (12) with step size n C / t, is
//     w <- (1 - 1/t) w + n / (t |B|) sum_{i in B} t_i r_i x_i.
// Let a row weigh the same in whatever set it comes: time counts rows, in units of n, so that it is the
// number of passes. Then
//     w = v / time,   v = sum over all visits so far of t_i r_i x_i,   time <- time + |B| / n,
// with blocks of the same size as in the paper. After p passes
//     w = sum_i t_i a_i x_i,   a_i = the mean of the p responses of row i, in a_i <- a_i + (r_i - a_i) / p.
// A mean of responses is feasible in the dual, so that a certificate needs nothing else. Rows that take no
// part are visits without a response.
//
// The projection (13) to |w|^2 <= n C is left out. It would scale w alone, and a would have to follow in all
// blocks; and the mean meets it by itself when the first steps, which are long, weigh little.
//
// The squared hinge is not in the paper. Its responses have no bound, and steps that are longer than its
// curvature allows, those of the first 2 C |x|^2 passes or (with whole blocks) n times as many, would make
// them grow without end. So the responses of an update are those after it, up to a common factor: with m' the
// margins at w time / next, and d = sum_{i in B} t_i r_i(m') x_i, they are theta r_i(m') with the theta that
// maximises
//     theta sum_i r_i (1 - m'_i) - theta^2 sum_i r_i^2 / (4 C_i) - theta^2 |d|^2 / (2 next),
//     theta = S / (S + |d|^2 / next),   S = sum_i r_i^2 / (2 C_i):
// for one row the response at its next margin, and with time theta -> 1.
#pragma once
#include <cstdint>
#include <vector>

#include "binary/loss.hpp"
#include "binary/step.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

struct PegasosTime {
  double begin, end;  // passes, before and after all rows of a call
  double visits;      // of each of its rows so far
  double unit;        // v = unit W

  double at(int64_t place, int64_t count) const {
    return begin + (end - begin) * static_cast<double>(place) / static_cast<double>(count);
  }
};

template <class T, Binary loss>
class Pegasos {
 public:
  Pegasos(const VisitedRows<T>& on, const PegasosTime& time) : on_(on), time_(time) {}

  // An update with each row.
  template <class Interrupted>
  BlockSums rows(Interrupted interrupted) {
    const int64_t count = on_.count();
    for (int64_t r = 0; r < count; ++r) {
      if (r % 1024 == 0 && interrupted()) break;
      on_.prefetch(r + 2);
      const int64_t i = on_.order[r];
      const double now = time_.at(r, count), next = time_.at(r + 1, count);
      vec<T> answer = response(i, now, next);
      if constexpr (damped) answer *= static_cast<T>(1 / (1 + 2 * double(C(i)) * on_.rows.norm[i] / next));
      on_.add(i, on_.sides.signs(i) * answer * static_cast<T>(1 / time_.unit), on_.W);
      average(i, answer);
    }
    return sums_.over(on_.lanes);
  }

  // One update with all of them.
  template <class Interrupted>
  BlockSums block(Interrupted interrupted) {
    const int64_t count = on_.count();
    Buffer<T> responses(count * width), d(on_.rows.heads() * width);
    Wide<T> S, norm;
    for (int64_t r = 0; r < count; ++r) {
      if (r % 1024 == 0 && interrupted()) return sums_.over(on_.lanes);  // nothing has moved
      on_.prefetch(r + 2);
      const int64_t i = on_.order[r];
      T* const answer = responses.data() + r * width;
      store(answer, response(i, time_.begin, time_.end));
      on_.add(i, on_.sides.signs(i) * load(answer), d.data());
      if constexpr (damped) {
        const Wide<T> wide(answer);
        for (int v = 0; v < Wide<T>::parts; ++v) {
          const vec<double> square = wide.part[v] * wide.part[v];
          S.part[v] += square / (2 * double(C(i)));
          norm.part[v] += square * double(on_.rows.tail_norm[i]);
        }
      }
    }
    vec<T> theta = vec<T>{} + T(1);
    if constexpr (damped) {
      for (int64_t f = 0; f < d.size(); f += width) norm.add_product(d.data() + f, d.data() + f);
      for (int v = 0; v < Wide<T>::parts; ++v) {
        const vec<double> all = S.part[v] + norm.part[v] / time_.end;
        S.part[v] = all > 0.0 ? S.part[v] / all : all;
      }
      theta = S.rounded();
    }
    const vec<T> step = theta * static_cast<T>(1 / time_.unit);
    for (int64_t f = 0; f < d.size(); f += width)
      store(on_.W + f, load(on_.W + f) + step * load(d.data() + f));
    for (int64_t r = 0; r < count; ++r) average(on_.order[r], theta * load(responses.data() + r * width));
    return sums_.over(on_.lanes);
  }

 private:
  using Loss = BinaryLoss<loss>;
  static constexpr int width = Lanes<T>::count;
  static constexpr bool damped = loss == Binary::squared_hinge;

  T C(int64_t i) const { return on_.penalties[i]; }
  vec<T> variable(int64_t i) const { return Loss::variable(load(on_.states + i * width), C(i)); }

  // Of row i at time `now`, in an update that ends at `next`: before theta.
  vec<T> response(int64_t i, double now, double next) {
    const vec<T> a = variable(i);
    // All visits of a row have left time_.visits a_i in v: what its own features see.
    vec<T> m = on_.sides.signs(i) * on_.score(i) * static_cast<T>(time_.unit) +
               on_.rows.tail_norm[i] * static_cast<T>(time_.visits) * a;
    m *= static_cast<T>(now > 0 ? 1 / now : 0);
    sums_.add(Loss::measure(load(on_.states + i * width), m, C(i)), a * m);
    if constexpr (damped) m *= static_cast<T>(now / next);
    vec<T> state = Loss::at_margin(m, C(i));
    if constexpr (!Loss::sparse) {  // no further than variables are stored
      const vec<T> least = vec<T>{} + static_cast<T>(Loss::start);
      state = larger<T>(state, least);
      state = state < -least ? state : -least;
    }
    return Loss::variable(state, C(i));
  }

  // The variable of row i, one response later.
  void average(int64_t i, vec<T> response) {
    const vec<T> a = variable(i);
    store(on_.states + i * width,
          Loss::state(a + (response - a) * static_cast<T>(1 / (time_.visits + 1)), C(i)));
  }

  const VisitedRows<T>& on_;
  const PegasosTime time_;
  LaneSums<T> sums_;
};

}  // namespace manyclass
