// The step of one row of maximum entropy: from its scores to its new dual variables, all classes at once.
//
//   With k = x.x, the new a_c solve  log a_c + k a_c = s_c + k (old a_c) - mu,  where mu makes them sum to C.
//   In terms of l_c = log(a_c / C) and q = k C this is  l_c + q exp(l_c) = h_c - mu,  which two nested Newton
//   iterations solve for l and mu, one vector of classes at a time.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "dual/pass_stats.hpp"
#include "simd/math.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
class MaximumEntropyStep {
 public:
  static constexpr T least = -30;                                          // lower bound of l: a_c is about 0
  static constexpr T least_score = sizeof(T) == 4 ? T(-1e30) : T(-1e300);  // score of padding

  struct Row {
    int32_t label;
    T C, k;
  };

  // Arrays by class, in whole vectors. Reads the old l and the scores s; writes the new l and the change of
  // the coefficients.
  MaximumEntropyStep(const Row& row, int64_t stride, const T* old, const T* s, T* l, T* change)
      : y_(row.label), C_(row.C), k_(row.k), stride_(stride), old_(old), s_(s), l_(l), change_(change) {}

  // Sets `stats` to the row's loss, gap and violation before its step. Returns the gain of the dual if only
  // this row moves.
  double solve(PassStats& stats) {
    measure(stats);
    find();
    return finish();
  }

 private:
  static constexpr int L = Lanes<T>::count;
  static constexpr vec<T> zero = {};

  void measure(PassStats& stats) {
    const T top = largest_of(s_, stride_);
    double partition = 0;  // sum exp(s - top)
    for (int64_t c = 0; c < stride_; c += L) {
      const vec<T> at = load(old_ + c), p = exp_of<T>(at), score = load(s_ + c);
      partition += sum_lanes<T>(exp_of<T>(score - top));
      entropy_ -= sum_lanes<T>(p * at);
      fit_ += sum_lanes<T>(p * (score > least_score ? score : zero));
    }
    const double log_partition = top + std::log(partition);
    vec<T> worst = zero;
    for (int64_t c = 0; c < stride_; c += L) {
      const vec<T> d = exp_of<T>(load(old_ + c)) - exp_of<T>(load(s_ + c) - static_cast<T>(log_partition));
      worst = larger<T>(worst, larger<T>(d, -d));
    }
    stats.loss = C_ * (log_partition - s_[y_]);
    stats.alpha_sum = C_ * entropy_;
    stats.gap = C_ * (log_partition - entropy_ - fit_);
    stats.violation = largest_lane<T>(worst);
  }

  // Finds l up to a constant.
  void find() {
    const T q = k_ * C_, log_q = std::log(q);
    T* h = change_;
    for (int64_t c = 0; c < stride_; c += L) store(h + c, load(s_ + c) + q * exp_of<T>(load(old_ + c)));
    T mu = static_cast<T>(fit_ + entropy_);  // sum_c p_c (s_c - l_c), the mean of what each class asks for
    double low = -1e30, high = 1e30;
    // A starting point close to the root of l + q exp(l) = target: with w = q exp(l) it reads w + log w = z,
    // where z = target + log q.
    const auto guess = [&] {
      for (int64_t c = 0; c < stride_; c += L) {
        const vec<T> target = load(h + c) - mu, z = target + log_q;
        const vec<T> large = larger<T>(z, zero + 1), e = exp_of<T>(z < T(1) ? z : zero + 1);
        store(l_ + c, z > T(1) ? log_of<T>(large - log_of<T>(large)) - log_q : target - e / (1 + e));
      }
    };
    guess();
    constexpr T precise = sizeof(T) == 4 ? T(1e-6) : T(1e-13);
    for (int round = 0; round < 60; ++round) {
      vec<T> sums = zero, slopes = zero, moved = zero;
      for (int64_t c = 0; c < stride_; c += L) {
        const vec<T> target = load(h + c) - mu;
        vec<T> at = load(l_ + c);
        for (int inner = 0; inner < 2; ++inner) {
          const vec<T> e = q * exp_of<T>(at), step = (at + e - target) / (1 + e);
          at -= step;
          if (inner == 1) moved = larger<T>(moved, larger<T>(step, -step));
        }
        const vec<T> p = exp_of<T>(at);
        store(l_ + c, at);
        sums += p;
        slopes += p / (1 + q * p);
      }
      const T most = largest_lane<T>(moved);
      const double sum = sum_lanes<T>(sums), slope = sum_lanes<T>(slopes) / sum, off = std::log(sum);
      (off > 0 ? low : high) = mu;
      if (std::abs(off) <= precise && most <= 100 * precise) return;
      double to = mu + off / slope;
      if (!(to > low && to < high)) to = low > -1e30 && high < 1e30 ? (low + high) / 2 : mu + off;
      const T shift = static_cast<T>(to) - mu;
      if (shift == 0 && most <= 100 * precise) return;
      mu = static_cast<T>(to);
      if (std::abs(shift) > 1) {
        guess();
        continue;
      }
      for (int64_t c = 0; c < stride_; c += L) {
        const vec<T> at = load(l_ + c);
        store(l_ + c, at - shift / (1 + q * exp_of<T>(at)));
      }
    }
  }

  // Normalizes l, and computes the change of the coefficients and the gain of the dual.
  double finish() {
    double sum = 0;
    for (int64_t c = 0; c < stride_; c += L) sum += sum_lanes<T>(exp_of<T>(load(l_ + c)));
    const T scale = static_cast<T>(std::log(sum));
    double square = 0, slope = 0, new_entropy = 0;
    for (int64_t c = 0; c < stride_; c += L) {
      vec<T> at = load(l_ + c) - scale;
      at = at > least ? at : zero + least;
      store(l_ + c, at);
      const vec<T> p = exp_of<T>(at), d = C_ * (exp_of<T>(load(old_ + c)) - p);
      store(change_ + c, d);
      square += sum_lanes<T>(d * d);
      slope += sum_lanes<T>(d * (load(s_ + c) > least_score ? load(s_ + c) : zero));
      new_entropy -= sum_lanes<T>(p * at);
    }
    const double least_gain = 0.5 * k_ * square;  // a lower bound that rounding may violate near the optimum
    return std::max(least_gain, C_ * (new_entropy - entropy_) - slope - 0.5 * k_ * square);
  }

  const int32_t y_;
  const T C_, k_;
  const int64_t stride_;
  const T *const old_, *const s_;
  T *const l_, *const change_;
  double entropy_ = 0, fit_ = 0;  // before the step: -sum_c p_c l_c and sum_c p_c s_c
};

}  // namespace manyclass
