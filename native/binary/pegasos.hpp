// Pegasos on rows that arrive block by block (Yu, Hsieh, Chang and Lin, 2010, Algorithm 3), written as an
// average of dual variables.
//
//   P(w) = 1/2 |w|^2 + sum_i C_i loss(m_i),   m_i = t_i w.x_i
//
// The response of a row is the dual variable for which its margin is optimal, r(m) = -C_i loss'(m):
//     hinge C_i if m < 1, else 0;   squared hinge 2 C_i max(0, 1 - m);   logistic C_i / (1 + exp(m)).
// The paper's update with a set B of the n rows, (11) and (12) with step size n C / t, is
//     w <- (1 - 1/t) w + n / (t |B|) sum_{i in B} t_i r_i x_i.
// Here every row has the same weight, whatever the size of its set: time counts rows in units of n, that is,
// passes. Then
//     w = v / time,   v = sum over all visits so far of t_i r_i x_i,   time <- time + |B| / n,
// which for sets of equal size is the paper's. After p passes
//     w = sum_i t_i a_i x_i,   a_i = the mean of the p responses of row i: a_i <- a_i + (r_i - a_i) / p.
// A mean of responses is feasible in the dual, and a certificate needs nothing else. Rows that take no part
// count as visits without a response.
//
// The projection (13) to |w|^2 <= n C is left out. It would scale w alone, and the a of all blocks would have
// to follow. The mean satisfies the bound anyway once the first, long steps have little weight.
//
// The squared hinge is not in the paper. Its responses are unbounded, and would diverge as long as steps are
// longer than its curvature allows: for the first 2 C |x|^2 passes, or, with whole blocks, up to n times as
// many. So its updates are implicit, up to a common factor. With m' the margins at w time / next, and
//     d = sum_{i in B} t_i r_i(m') x_i,
// the responses are theta r_i(m'), where theta maximises
//     theta sum_i r_i (1 - m'_i) - theta^2 sum_i r_i^2 / (4 C_i) - theta^2 |d|^2 / (2 next),
//     theta = S / (S + |d|^2 / next),   S = sum_i r_i^2 / (2 C_i).
// For a single row this is the response at its margin after the update. As time grows, theta tends to 1.
#pragma once
#include <cstdint>

#include "binary/loss.hpp"
#include "binary/step.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

struct PegasosTime {
  double begin, end;  // time before and after the rows of a call
  double visits;      // the number of earlier visits of each of these rows
  double unit;        // v = unit W

  double at(int64_t place, int64_t count) const {
    return begin + (end - begin) * static_cast<double>(place) / static_cast<double>(count);
  }
};

template <class T, Binary loss>
class Pegasos {
 public:
  Pegasos(const VisitedRows<T>& on, const PegasosTime& time) : on_(on), time_(time) {}

  // One update per row.
  BlockSums rows(auto interrupted) {
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

  // One update for the whole block.
  BlockSums block(auto interrupted) {
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
  static constexpr bool damped = !Loss::bounded;

  T C(int64_t i) const { return on_.penalties[i]; }
  vec<T> variable(int64_t i) const { return Loss::variable(load(on_.states + i * width), C(i)); }

  // The response of row i at time `now`, in an update that ends at `next`; without theta.
  vec<T> response(int64_t i, double now, double next) {
    const vec<T> a = variable(i);
    // For features that only row i has, whose weights are not stored, v is visits t_i a_i x_i.
    vec<T> m = on_.sides.signs(i) * on_.score(i) * static_cast<T>(time_.unit) +
               on_.rows.tail_norm[i] * static_cast<T>(time_.visits) * a;
    m *= static_cast<T>(now > 0 ? 1 / now : 0);
    sums_.add(Loss::measure(load(on_.states + i * width), m, C(i)), a * m);
    if constexpr (damped) m *= static_cast<T>(now / next);
    vec<T> state = Loss::at_margin(m, C(i));
    if constexpr (!Loss::sparse) {  // stay within the range of stored states
      const vec<T> least = vec<T>{} + static_cast<T>(Loss::start);
      state = larger<T>(state, least);
      state = state < -least ? state : -least;
    }
    return Loss::variable(state, C(i));
  }

  // Includes one more response in the variable of row i.
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
