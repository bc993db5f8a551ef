// The step of one row of a coupled loss: from its scores to all its new dual variables at once, by the
// sub-problems of coupled/relative_margin.hpp and coupled/absolute_margin.hpp. Also measures the row's loss,
// gap and violation before the step.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "coupled/absolute_margin.hpp"
#include "coupled/loss.hpp"
#include "coupled/relative_margin.hpp"
#include "dual/pass_stats.hpp"
#include "dual/rows.hpp"
#include "simd/memory.hpp"
#include "simd/scan.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// How rows are visited. In a full visit every class is scored, and at most `most_new` classes that violate by
// more than `enter` join the row's classes in use (those with positive variables). Otherwise only the latter
// are scored.
template <class T>
struct Visit {
  bool full;
  T enter;
  int64_t most_new;
};

// The step of a row, computed by one thread and applied by all.
template <class T>
struct RowStep {
  int64_t row = 0;
  std::vector<int32_t> classes;
  std::vector<T> before, after;  // alpha of these classes
  T own_before = 0, own = 0;     // the variable of the own class, if the loss has one
  T own_change = 0;              // of the coefficient for the row's own class
  T mean_change = 0;             // of the mean of the coefficients
  double gain = 0;               // slope of the dual along the step
  bool changed = false;
  // Of this visit, and of all visits of the pass in this place of a wave: so sums have a fixed order.
  PassStats stats, total;

  // f(class, change of the row's coefficient in the weights of this class); class K stands for the mean.
  template <class F>
  void for_each_change(int32_t own_class, int64_t K, F f) const {
    for (size_t e = 0; e < classes.size(); ++e)
      if (after[e] != before[e]) f(classes[e], before[e] - after[e]);
    if (own_change != 0) f(own_class, own_change);
    if (mean_change != 0) f(static_cast<int32_t>(K), mean_change);
  }
};

// Solves the sub-problems of rows, one at a time. Each thread has its own.
template <class T>
class RowSolver {
 public:
  // A row as its sub-problem sees it.
  struct Row {
    typename DualRows<T>::Row held;
    int32_t label;
    T C, curvature;  // curvature: of the dual along the row's variables; smaller with over-relaxation
  };

  // stride: the length of arrays by class.
  RowSolver(const CoupledLoss& loss, int64_t classes, int64_t stride)
      : loss_(loss), K_(classes), stride_(stride), v_(stride), found_(stride + Lanes<T>::count) {}

  // s: the scores, of all classes or of those in use; overwritten. Sets all of `step` except its row.
  void solve(RowStep<T>& step, const Row& a, T* s, const Visit<T>& visit) {
    step.changed = false;
    step.stats = {};
    step.classes.assign(a.held.classes, a.held.classes + a.held.size);
    step.before.assign(a.held.values, a.held.values + a.held.size);
    if (loss_.relative)
      solve_relative(step, a, s, visit);
    else
      solve_absolute_margins(step, a, s, visit);
  }

  // For losses on relative margins: a score that every class must exceed to join the classes in use or to
  // have a positive loss, given the scores of the row's own class and of the classes in use. Errs on the low
  // side.
  T lowest_that_matters(const Row& a, const T* s) {
    const T own = s[a.label], k = a.curvature;
    T highest = -a.held.sum;
    for (int32_t e = 0; e < a.held.size; ++e) {
      v_[e] = a.held.values[e] - (own - s[a.held.classes[e]] - 1) / k;
      highest = std::max(highest, v_[e]);
    }
    const FeasibleSet<T> set(loss_, a.C);
    const T tau = solve_threshold(v_.data(), a.held.size, {}, set, a.held.sum, -a.held.sum, highest);
    const T level = own - 1 + std::min(T(0), k * tau);
    return level - T(1e-4) * (1 + std::abs(level));
  }

 private:
  // Selects about the `most` best of the classes found, by halving the range of scores until few enough are
  // left. Ties, which are common early on, are broken by the number of the row, so that no class is favoured.
  static int64_t keep_largest(const T* s, int32_t* found, int64_t count, int64_t most, int64_t row, T low,
                              T high) {
    for (int round = 0; round < 8 && count > most; ++round) {
      const T middle = low + (high - low) / 2;
      int64_t kept = 0;
      for (int64_t e = 0; e < count; ++e) kept += s[found[e]] > middle;
      if (kept == 0) {
        high = middle;
        continue;
      }
      kept = 0;
      for (int64_t e = 0; e < count; ++e) {
        found[kept] = found[e];
        kept += s[found[e]] > middle;
      }
      count = kept;
      low = middle;
    }
    if (count <= most) return count;
    std::rotate(found, found + (row * 7919) % count, found + count);
    return most;
  }

  // What the sub-problem of a row with relative margins needs to know of the classes that it has seen. Its
  // values v are in `v_`: the classes in use first, then those that join.
  struct Seen {
    double loss = 0, alpha_g = 0;
    T most = 0, least = 0;  // of u_c = 1 + s_c - s_y (CS)
    T box = 0;              // largest violation (WW)
    T highest = 0;          // upper bound of tau
    T tau = 0;
    T own = 0;          // score of the own class
    int64_t count = 0;  // of values v
  };

  void solve_relative(RowStep<T>& step, const Row& a, T* s, const Visit<T>& visit) {
    const FeasibleSet<T> set(loss_, a.C);
    Seen seen = see_classes_in_use(a, s, set);
    if (visit.full) {
      s[a.label] = std::numeric_limits<T>::lowest();
      for (int64_t c = K_; c < stride_; ++c) s[c] = std::numeric_limits<T>::lowest();
      let_classes_join(step, a, s, visit, set, seen);
    }
    step.stats.loss = loss_.simplex ? a.C * double(seen.most) : set.cap * seen.loss;
    step.stats.gap = step.stats.loss + seen.alpha_g;
    step.stats.alpha_sum = a.held.sum;
    step.stats.violation =
        !loss_.simplex ? seen.box : std::max(T(0), seen.most - std::min(seen.least, seen.most));
    take_step(step, a, set, seen);
  }

  // Removes these classes from the scores.
  Seen see_classes_in_use(const Row& a, T* s, const FeasibleSet<T>& set) {
    const T k = a.curvature, own = s[a.label], inverse = 1 / k;
    T* v = v_.data();
    Seen seen;
    seen.own = own;
    seen.least = has_slack<T>(a.held.sum, a.C) ? T(0) : std::numeric_limits<T>::max();
    for (int32_t e = 0; e < a.held.size; ++e) {
      const int32_t c = a.held.classes[e];
      const T g = own - s[c] - 1;
      v[e] = a.held.values[e] - g * inverse;
      seen.alpha_g += double(a.held.values[e]) * g;
      if (!loss_.simplex) {
        seen.loss += std::max(T(0), -g);
        seen.box = std::max(seen.box, g > 0 ? g : (a.held.values[e] < set.cap ? -g : T(0)));
      } else {
        seen.most = std::max(seen.most, -g);
        seen.least = std::min(seen.least, -g);
      }
      s[c] = std::numeric_limits<T>::lowest();
    }
    seen.highest = -a.held.sum;
    for (int32_t e = 0; e < a.held.size; ++e) seen.highest = std::max(seen.highest, v[e]);
    seen.count = a.held.size;
    seen.tau = solve_threshold(v, seen.count, {}, set, a.held.sum, -a.held.sum, seen.highest);
    return seen;
  }

  // s: the scores of the classes that are not in use.
  void let_classes_join(RowStep<T>& step, const Row& a, const T* s, const Visit<T>& visit,
                        const FeasibleSet<T>& set, Seen& seen) {
    const T k = a.curvature, inverse = 1 / k, own = seen.own;
    T* v = v_.data();
    // With enter = 0, every class whose variable would become positive joins.
    const T level = loss_.simplex && seen.least < std::numeric_limits<T>::max() ? seen.least : T(0);
    T threshold = own - 1 + (visit.enter > 0 ? std::max(k * seen.tau, level + visit.enter) : k * seen.tau);
    int32_t* found = found_.data();
    Scan<T> scan = scan_scores(s, stride_, T(1) - own, threshold, found);
    if (!loss_.simplex) {
      seen.loss += scan.hinge_sum;
      seen.box = std::max(seen.box, scan.largest);
    } else {
      seen.most = std::max(seen.most, scan.largest);
    }
    seen.highest = std::max(seen.highest, scan.largest * inverse);
    if (scan.count > 32) {
      // Most of these will not stay: find the root over all scores, then take only the classes above it.
      seen.tau = solve_threshold(v, seen.count, {s, stride_, inverse, (1 - own) * inverse}, set, a.held.sum,
                                 seen.tau, seen.highest);
      threshold = std::max(threshold, own - 1 + k * seen.tau);
      scan = scan_scores(s, stride_, T(1) - own, threshold, found);
    }
    int64_t joining = scan.count;
    if (joining > visit.most_new)
      joining = keep_largest(s, found, joining, visit.most_new, step.row, threshold, scan.largest - 1 + own);
    for (int64_t e = 0; e < joining; ++e) {
      step.classes.push_back(found[e]);
      step.before.push_back(0);
      v[seen.count++] = (1 - own + s[found[e]]) * inverse;
    }
    if (joining > 0)
      seen.tau = solve_threshold(v, seen.count, {}, set, a.held.sum, -a.held.sum, seen.highest);
  }

  void take_step(RowStep<T>& step, const Row& a, const FeasibleSet<T>& set, const Seen& seen) {
    const T *v = v_.data(), tau = seen.tau;
    step.after.resize(seen.count);
    double sum = 0;
    int64_t largest = 0;
    for (int64_t e = 0; e < seen.count; ++e) {
      step.after[e] = std::min(std::max(v[e] - tau, T(0)), set.cap);
      sum += step.after[e];
      if (step.after[e] > step.after[largest]) largest = e;
    }
    // The variables use all of C_i. A remainder from rounding would look like the variable of "no violation".
    if (seen.count > 0 && a.held.sum + tau >= set.total)
      step.after[largest] += static_cast<T>(set.total - sum);
    double change = 0, gain = 0;
    for (int64_t e = 0; e < seen.count; ++e) {
      const double moved = double(step.after[e]) - step.before[e];
      change += moved;
      gain += moved * (double(v[e]) - step.before[e]);
      step.changed |= moved != 0;
    }
    step.own_change = static_cast<T>(change);
    step.gain = a.curvature * gain;
  }

  // What the sub-problem of a row with absolute margins has seen of its classes.
  struct SeenAbsolute {
    double loss = 0, alpha_e = 0, most = 0, worst = 0;
    double least = 0;  // excess of the classes with a positive variable

    void see(const CoupledLoss& loss_of, double e, double value, double cap) {
      if (cap == 0) return;
      alpha_e += value * e;
      if (!loss_of.simplex) loss += cap * std::max(0.0, e);
      worst = std::max(worst, e > 0 ? (value < cap ? e : 0.0) : (value > 0 ? -e : 0.0));
      most = std::max(most, e);
      if (value > 0) least = std::min(least, e);
    }
  };

  // In a full visit v is indexed by class, else by position among the row's classes in use.
  void solve_absolute_margins(RowStep<T>& step, const Row& a, T* s, const Visit<T>& visit) {
    const T k = a.curvature, mean = s[K_];
    const double Ci = a.C, own_excess = loss_.own_target - double(s[a.label] - mean);
    const FeasibleSet<T> set(loss_, a.C);
    SeenAbsolute seen;
    seen.least =
        has_slack<T>(double(a.held.sum) + a.held.own, Ci) ? 0 : std::numeric_limits<double>::infinity();
    seen.see(loss_, own_excess, a.held.own, set.own_cap);
    const int64_t width = see_classes(a, s, visit, set, seen);
    PassStats& stats = step.stats;
    stats.loss = loss_.simplex ? Ci * seen.most : seen.loss;
    stats.gap = stats.loss - seen.alpha_e;
    stats.alpha_sum = double(a.held.sum) + loss_.own_target * a.held.own;
    stats.violation = loss_.simplex ? seen.most - std::min(seen.least, seen.most) : seen.worst;
    const double v_own = double(a.held.own) + own_excess / k;
    take_absolute_step(
        step, a, visit, set,
        solve_absolute(
            AbsoluteRow<T>{v_.data(), width, double(a.held.sum), v_own, double(a.held.own), K_, set}, k),
        own_excess);
  }

  // Sets v of the classes in use, and in a full visit of the others; returns the number of values.
  int64_t see_classes(const Row& a, T* s, const Visit<T>& visit, const FeasibleSet<T>& set,
                      SeenAbsolute& seen) {
    constexpr int L = Lanes<T>::count;
    constexpr T none = std::numeric_limits<T>::lowest();
    const T inverse = 1 / a.curvature, mean = s[K_];
    const int64_t width = visit.full ? stride_ : padded<T>(a.held.size);
    T* v = v_.data();
    excess_.resize(a.held.size);
    for (int32_t e = 0; e < a.held.size; ++e) {
      excess_[e] = 1 + (s[a.held.classes[e]] - mean);
      seen.see(loss_, excess_[e], a.held.values[e], set.cap);
      s[a.held.classes[e]] = none;
    }
    if (visit.full && set.cap > 0) {
      s[a.label] = none;
      for (int64_t c = K_; c < stride_; ++c) s[c] = none;
      vec<T> sums = {}, tops = {};
      const vec<T> zero = {};
      for (int64_t c = 0; c < stride_; c += L) {
        const vec<T> e = load(s + c) + (1 - mean), positive = larger<T>(e, zero);
        sums += positive;
        tops = larger<T>(tops, positive);
        store(v + c, e * inverse);
      }
      double sum = 0, top = 0;
      for (int l = 0; l < L; ++l) {
        sum += sums[l];
        top = std::max<double>(top, tops[l]);
      }
      if (!loss_.simplex) seen.loss += set.cap * sum;
      seen.worst = std::max(seen.worst, top);
      seen.most = std::max(seen.most, top);
    } else {
      std::fill(v, v + width, none);
    }
    for (int32_t e = 0; e < a.held.size; ++e)
      v[visit.full ? a.held.classes[e] : e] = a.held.values[e] + excess_[e] * inverse;
    return width;
  }

  void take_absolute_step(RowStep<T>& step, const Row& a, const Visit<T>& visit, const FeasibleSet<T>& set,
                          const AbsoluteSolution& found, double own_excess) {
    T* v = v_.data();
    const auto beta = [&](T at) {
      return static_cast<T>(std::min<double>(found.scale * std::max(double(at) - found.shift, 0.0), set.cap));
    };
    double change = 0, gain = 0;  // gain: sum of changes times excess, over k
    step.after.resize(a.held.size);
    for (int32_t e = 0; e < a.held.size; ++e) {
      const T at = v[visit.full ? a.held.classes[e] : e];
      step.after[e] = beta(at);
      // Leaves the classes that may join.
      if (visit.full) v[a.held.classes[e]] = std::numeric_limits<T>::lowest();
      const double moved = double(step.after[e]) - step.before[e];
      change += moved;
      gain += moved * (double(at) - step.before[e]);
      step.changed |= moved != 0;
    }
    if (visit.full && set.cap > 0) {
      const int64_t joining = scan_scores(v, stride_, T(0), static_cast<T>(found.shift), found_.data()).count;
      for (int64_t j = 0; j < joining; ++j) {
        const int32_t c = found_[j];
        const T value = beta(v[c]);
        if (!(value > 0)) continue;
        step.classes.push_back(c);
        step.before.push_back(0);
        step.after.push_back(value);
        change += value;
        gain += double(value) * v[c];
        step.changed = true;
      }
    }
    step.own_before = a.held.own;
    step.own = set.own_cap > 0 ? static_cast<T>(std::min<double>(found.own, set.own_cap)) : T(0);
    const double own_step = double(step.own) - a.held.own;
    gain += own_step * own_excess / a.curvature;
    step.changed |= own_step != 0;
    step.own_change = static_cast<T>(own_step);
    step.mean_change = static_cast<T>((own_step - change) / double(K_));
    step.gain = a.curvature * gain;
  }

  const CoupledLoss loss_;
  const int64_t K_, stride_;
  Buffer<T> v_;
  Buffer<int32_t> found_;
  std::vector<T> excess_;  // of the classes in use
};

}  // namespace manyclass
