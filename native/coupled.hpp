// Coordinate ascent on the dual of the coupled losses, a row at a time, all its variables at once.
//
//   for each wave of rows:
//     each tile of classes:   s_i = W' x_i for all rows of the wave          tiles shared out to the threads
//     each row:               solve its sub-problem                          rows shared out
//     each slice of classes:  W += x_i (change of alpha_i), in row order     slices shared out
// Weights of words that many rows of a wave have are so read once a wave. The sub-problems are those of
// relative_margin.hpp and absolute_margin.hpp. The weights of losses on absolute margins are centred: they
// are kept as u_c, with their mean as one class more, and the scores are s_c - s_mean.
//
// The rows of a wave all see the weights from before the wave, and move together by a factor theta <= 1. With
// delta_i the change of row i's coefficients and gain_i the slope of the dual along it, the dual changes by
//     theta sum_i gain_i - theta^2 / 2 Q,     Q = sum_{i,i'} (x_i . x_i') (delta_i . delta_i'),
// and each row alone has gain_i >= k_i |delta_i|^2. So theta = min(1, sum_i gain_i / Q) never lowers the
// dual. Rows of text share few features and fewer of the classes they change: theta is nearly always 1. The
// wave's size belongs to the problem, never to the number of threads, and each weight receives its changes in
// row order: the result does not depend on who computes what.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absolute_margin.hpp"
#include "alternating.hpp"
#include "coupled_certificate.hpp"
#include "coupled_loss.hpp"
#include "dual_rows.hpp"
#include "kept_weights.hpp"
#include "layout.hpp"
#include "pass_stats.hpp"
#include "relative_margin.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
class CoupledSolver {
 public:
  CoupledSolver(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
                const CoupledLoss& loss, bool reduced)
      : rows_(std::move(layout)),
        y_(std::move(labels)),
        C_(std::move(C)),
        K_(classes),
        stride_(padded<T>(classes + !loss.relative)),
        loss_(loss),
        alpha_(rows_.n),
        W_(rows_.heads() * stride_) {
    if (!loss.relative && rows_.tails() != 0)
      throw std::logic_error("centred weights want every shared feature in the head");
    if (!reduced) return;
    if (!loss.relative) throw std::logic_error("centred weights cannot be reduced");
    kept_ = KeptWeights(rows_, y_, K_);
  }

  // What `sweep` gives covers all rows visited since, so that sums do not depend on how a pass is divided.
  void begin_pass() {
    for (auto& slot : slots_) slot.total = {};
    waves_ = 0;
    thetas_ = 0;
    if (!loss_.relative) centre();
  }

  // With reduced weights a row goes alone: k and the products of rows are then only bounds of what they stand
  // for. That is enough for every step to raise the dual; and for the sum of the steps to end at its optimum.
  //
  // One visit of the given rows, `wave` at a time (but at a pass's end their number is a multiple of that).
  // `full`: every class is scored, and classes that violate by more than `enter` join, at most `most_new` of
  // them; otherwise only the classes a row already uses are scored.
  PassStats sweep(const int64_t* order, int64_t count, int64_t wave, bool full, T enter, int64_t most_new,
                  int threads) {
    if (!kept_.all()) wave = 1;
    if (static_cast<int64_t>(slots_.size()) < wave) slots_.resize(wave);
    threads = static_cast<int>(std::min<int64_t>(threads, wave));
    if (full) scores_.reserve(wave * stride_);
    const int64_t tiles = (stride_ + tile_width<T> - 1) / tile_width<T>;
    const int64_t groups = std::min(wave, (2 * threads + tiles - 1) / tiles);  // of rows, where tiles are few
    const int64_t slices = threads == 1 ? 1 : 2 * threads;
    Team team(threads);
    T theta = 1;
    std::vector<Scratch> scratch;
    for (int t = 0; t < threads; ++t) scratch.emplace_back(stride_, rows_, wave);
    team.run([&](int me) {
      Scratch& mine = scratch[me];
      for (int64_t first = 0; first < count; first += wave) {
        const int64_t size = std::min(wave, count - first);
        if (full) {
          team.share_out(tiles * groups, me, [&](int64_t t) {
            const int64_t low = t / groups * tile_width<T>, high = std::min(stride_, low + tile_width<T>);
            const int64_t g = t % groups;
            for (int64_t r = g * size / groups; r < (g + 1) * size / groups; ++r)
              score_row_of_tile(order[first + r], r, low, high);
          });
          team.meet();
        }
        team.share_out(size, me, [&](int64_t r) {
          slots_[r].row = order[first + r];
          T* scores = full ? scores_.data() + r * stride_ : mine.scores.data();
          solve_row(slots_[r], scores, full, enter, most_new, mine);
        });
        team.meet();
        // Slices of classes, and the variables of a part of the rows. They all but always move by a full
        // step: one thread finds out while the others take it.
        const auto move = [&](int64_t slice, T step) {
          apply_slice(size, step == 1 ? T(1) : step - 1, slice * stride_ / slices,
                      (slice + 1) * stride_ / slices, mine);
          for (int64_t r = slice * size / slices; r < (slice + 1) * size / slices; ++r)
            commit(slots_[r], step, mine);
        };
        team.share_out(1 + slices, me, [&](int64_t t) {
          if (t == 0)
            theta = common_step(size, mine);
          else
            move(t - 1, T(1));
        });
        team.meet();
        if (theta != 1) {
          team.share_out(slices, me, [&](int64_t slice) { move(slice, theta); });
          team.meet();
        }
        if (me == 0) {
          ++waves_;
          thetas_ += theta;
        }
      }
    });
    PassStats total;
    for (auto& slot : slots_) total.add(slot.total);
    total.waves = waves_;
    total.theta = thetas_;
    total.asleep = team.seconds_asleep();
    return total;
  }

  // Rows that are much alike undo each other's steps: visited in turn they need very many. Such a group
  // (rows[ptr[g]] to rows[ptr[g + 1]]) is visited again and again, its scores following from the products of
  // its rows, until it gains little or `rounds` are over; the weights learn of it once.
  void settle(const int64_t* ptr, const int64_t* rows, int64_t groups, int64_t rounds, T enter,
              int64_t most_new) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; ++g) most = std::max(most, ptr[g + 1] - ptr[g]);
    if (slots_.empty()) slots_.resize(1);
    Scratch mine(stride_, rows_, 1);
    Buffer<T> scores(most * stride_), moved(most * stride_), seen(stride_);
    std::vector<T> products(most * most);
    for (int64_t g = 0; g < groups; ++g)
      settle_group(rows + ptr[g], ptr[g + 1] - ptr[g], rounds, enter, most_new,
                   {scores, moved, seen, products}, mine);
  }

  // One pass of the alternating algorithm (LLW).
  PassStats alternate(const int64_t* order, int64_t count, int threads) {
    return manyclass::alternate(rows_, y_, C_, K_, stride_, order, count, alpha_, W_, threads);
  }

  CoupledCoefficients<T> coefficients() const { return {alpha_, y_, C_, loss_, !kept_.all()}; }

  // Primal, dual and largest violation over all variables, in float64, for a model with the weights of the
  // dual variables times `scale`; and the primal at further factors. The training weights are set to the
  // model's: `refresh` before going on if that is not 1.
  std::pair<Certificate, std::vector<double>> certificate(int threads, double scale,
                                                          std::vector<double> further) {
    return CoupledCertificate<T>(rows_, y_, C_, alpha_, K_, loss_, !kept_.all(), scale, std::move(further))
        .certify(W_, stride_, threads);
  }

  // The training weights anew from the dual variables: without what rounding has accumulated.
  void refresh(int threads) {
    CoupledCertificate<T>(rows_, y_, C_, alpha_, K_, loss_, !kept_.all(), 1, {})
        .set_weights(W_, stride_, threads);
  }

  // By how much steps go beyond the best one of their row: less than 2.
  void set_relaxation(T factor) { relax_ = factor; }

  const Layout<T>& rows() const { return rows_; }
  const std::vector<int32_t>& labels() const { return y_; }
  int64_t classes() const { return K_; }
  DualRows<T>& alpha() { return alpha_; }
  const Buffer<T>& weights() const { return W_; }

  // Training is over: makes room for the model.
  void release() {
    W_.reset(0);
    scores_.reset(0);
    rows_ = {};
  }

 private:
  // Takes the mean into the weights: far from it, their differences would drown in rounding.
  void centre() {
    for (int64_t h = 0; h < rows_.heads(); ++h) {
      T* w = W_.data() + h * stride_;
      const T mean = std::exchange(w[K_], T(0));
      if (mean == 0) continue;
      for (int64_t c = 0; c < K_; ++c) w[c] -= mean;
    }
  }

  // Steps are taken as if the dual curved less than it does: each still raises it, while `relax` < 2.
  T curvature(int64_t i) const { return rows_.norm[i] / relax_; }

  // A row's step, computed by one thread and applied by all.
  struct Slot {
    int64_t row = 0;
    std::vector<int32_t> classes;
    std::vector<T> before, after;  // alpha of these classes
    T own_before = 0, own = 0;     // variable of the own class, if the loss has one
    T own_change = 0;              // of the coefficient for the row's own class
    T mean_change = 0;             // of the mean of the coefficients
    double gain = 0;               // slope of the dual along the step
    bool changed = false;
    PassStats stats, total;  // of this visit; of all visits in this slot, so that sums have a fixed order

    // f(class, change of the row's coefficient in the weights of this class); the mean is one class more
    template <class F>
    void for_each_change(int32_t own_class, int64_t K, F f) const {
      for (size_t e = 0; e < classes.size(); ++e)
        if (after[e] != before[e]) f(classes[e], before[e] - after[e]);
      if (own_change != 0) f(own_class, own_change);
      if (mean_change != 0) f(static_cast<int32_t>(K), mean_change);
    }
  };

  struct Scratch {
    Scratch(int64_t stride, const Layout<T>& rows, int64_t wave)
        : scores(stride),
          v(stride),
          found(stride + Lanes<T>::count),
          latest(stride, -1),
          mark(rows.heads() + rows.tails(), T(0)),
          overlap(wave * wave) {}
    Buffer<T> scores, v;
    Buffer<int32_t> found;
    std::vector<std::pair<int32_t, T>> others;  // score_tail: rows that share a rare feature, and its weight
    std::vector<T> excess;                      // solve_absolute_row: of the classes in use
    std::vector<int32_t> slice_class;
    std::vector<T> slice_change;
    // common_step: the changes of a wave, chained by class; a row's features; delta_i . delta_i'
    struct Change {
      int32_t cls, row, previous;
      T value;
    };
    std::vector<Change> changes;
    std::vector<int32_t> latest;
    std::vector<T> mark;
    std::vector<double> overlap;
  };

  struct GroupScratch {
    Buffer<T>&scores, &moved, &seen;  // moved: changes of the coefficients so far
    std::vector<T>& products;
  };

  void settle_group(const int64_t* group, int64_t size, int64_t rounds, T enter, int64_t most_new,
                    const GroupScratch& at, Scratch& mine) {
    constexpr double little = 0.01;  // of what the first round found
    for (int64_t r = 0; r < size; ++r) {
      T* s = at.scores.data() + r * stride_;
      const int64_t i = group[r], b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
      for (int64_t low = 0; low < stride_; low += tile_width<T>)
        score_tile(W_.data() + low, stride_, rows_.head_index.data() + b, rows_.head_value.data() + b, e - b,
                   s + low, std::min(stride_ - low, tile_width<T>));
      score_tail(i, s, mine);
      rows_.for_each_shared(i, [&](int64_t f, T x) { mine.mark[f] = x; });
      for (int64_t q = 0; q < size; ++q) {
        double product = 0;
        rows_.for_each_shared(group[q], [&](int64_t f, T x) { product += double(mine.mark[f]) * x; });
        at.products[r * size + q] = q == r ? rows_.norm[i] : static_cast<T>(product);
      }
      rows_.for_each_shared(i, [&](int64_t f, T) { mine.mark[f] = 0; });
    }
    std::fill(at.moved.data(), at.moved.data() + size * stride_, T(0));
    Slot& slot = slots_[0];
    double first = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      double gap = 0;
      for (int64_t r = 0; r < size; ++r) {
        slot.row = group[r];
        std::copy_n(at.scores.data() + r * stride_, stride_, at.seen.data());
        solve_scored(slot, at.seen.data(), true, enter, most_new, mine);
        gap += slot.stats.gap;
        if (!slot.changed) continue;
        slot.for_each_change(y_[slot.row], K_, [&](int32_t c, T change) {
          at.moved[r * stride_ + c] += change;
          for (int64_t q = 0; q < size; ++q) at.scores[q * stride_ + c] += at.products[r * size + q] * change;
        });
        alpha_.assign(slot.row, slot.classes.data(), slot.after.data(),
                      static_cast<int64_t>(slot.after.size()), slot.own);
      }
      if (round == 0) first = gap;
      if (gap <= little * first) break;
    }
    for (int64_t r = 0; r < size; ++r)
      for (int64_t h = rows_.head_ptr[group[r]]; h < rows_.head_ptr[group[r] + 1]; ++h) {
        T* w = W_.data() + rows_.head_index[h] * stride_;
        for (int64_t c = 0; c < stride_; ++c) w[c] += rows_.head_value[h] * at.moved[r * stride_ + c];
      }
  }

  // theta
  T common_step(int64_t size, Scratch& mine) const {
    if (size == 1) return 1;
    double gain = 0, Q = 0;
    std::fill(mine.overlap.begin(), mine.overlap.begin() + size * size, 0.0);
    mine.changes.clear();
    for (int64_t r = 0; r < size; ++r) {
      const Slot& slot = slots_[r];
      if (!slot.changed) continue;
      double square = 0;
      slot.for_each_change(y_[slot.row], K_, [&](int32_t c, T change) {
        // sum_c (delta_c - mean)(delta'_c - mean') = sum_c delta_c delta'_c - K mean mean'
        const double weighted = c == K_ ? -double(K_) * change : double(change);
        square += weighted * change;
        for (int32_t p = mine.latest[c]; p >= 0; p = mine.changes[p].previous)
          mine.overlap[mine.changes[p].row * size + r] += weighted * mine.changes[p].value;
        mine.changes.push_back({c, static_cast<int32_t>(r), mine.latest[c], change});
        mine.latest[c] = static_cast<int32_t>(mine.changes.size()) - 1;
      });
      const double own = rows_.norm[slot.row] * square;
      Q += own;
      gain += std::max(slot.gain, own / relax_);  // near the optimum rounding may hide that it is not less
    }
    for (const auto& change : mine.changes) mine.latest[change.cls] = -1;
    for (int64_t r = 0; r < size; ++r) {
      const double* overlap = mine.overlap.data() + r * size;
      if (std::all_of(overlap, overlap + size, [](double o) { return o == 0; })) continue;
      const int64_t i = slots_[r].row;
      rows_.for_each_shared(i, [&](int64_t f, T x) { mine.mark[f] = x; });
      for (int64_t q = r + 1; q < size; ++q) {
        if (overlap[q] == 0) continue;
        double product = 0;
        rows_.for_each_shared(slots_[q].row, [&](int64_t f, T x) { product += double(mine.mark[f]) * x; });
        Q += 2 * product * overlap[q];
      }
      rows_.for_each_shared(i, [&](int64_t f, T) { mine.mark[f] = 0; });
    }
    return Q > gain ? static_cast<T>(gain / Q) : T(1);
  }

  // s += the tail features' part: through the dual variables of the other rows that have them, and of the row
  // itself (tail_norm, which also covers the features of this row alone). The other rows lie anywhere in
  // memory: where they are is asked for first, then what is there, a few rows ahead.
  void score_tail(int64_t i, T* s, Scratch& mine) const {
    if (!kept_.all()) {
      s[y_[i]] += rows_.tail_norm[i] * alpha_[i].sum;
      return;
    }
    auto& others = mine.others;
    others.clear();
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t) {
      const int32_t column = rows_.tail_index[t];
      for (int64_t e = rows_.column_ptr[column]; e < rows_.column_ptr[column + 1]; ++e) {
        const int32_t row = rows_.column_row[e];
        if (row == i) continue;
        alpha_.prefetch_place(row);
        others.emplace_back(row, rows_.tail_value[t] * rows_.column_value[e]);
      }
    }
    if (rows_.tail_norm[i] > 0) others.emplace_back(static_cast<int32_t>(i), rows_.tail_norm[i]);
    constexpr size_t ahead = 8;
    for (size_t o = 0; o < std::min(ahead, others.size()); ++o) alpha_.prefetch(others[o].first);
    for (size_t o = 0; o < others.size(); ++o) {
      if (o + ahead < others.size()) alpha_.prefetch(others[o + ahead].first);
      const auto [row, factor] = others[o];
      const auto a = alpha_[row];
      for (int32_t e = 0; e < a.size; ++e) s[a.classes[e]] -= factor * a.values[e];
      s[y_[row]] += factor * (loss_.relative ? a.sum : a.own);
      if (!loss_.relative) s[K_] += factor * (a.own - a.sum) / static_cast<T>(K_);
    }
  }

  void score_row_of_tile(int64_t i, int64_t r, int64_t low, int64_t high) {
    const int64_t b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
    score_tile(W_.data() + low, stride_, rows_.head_index.data() + b, rows_.head_value.data() + b, e - b,
               scores_.data() + r * stride_ + low, high - low);
  }

  void score_support(int64_t i, const typename DualRows<T>::Row& a, T* s, Scratch& mine) const {
    s[y_[i]] = 0;
    if (!loss_.relative) s[K_] = 0;
    for (int32_t e = 0; e < a.size; ++e) s[a.classes[e]] = 0;
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
      const T* w = W_.data() + rows_.head_index[h] * stride_;
      const T x = rows_.head_value[h];
      s[y_[i]] += x * w[y_[i]];
      if (!loss_.relative) s[K_] += x * w[K_];
      for (int32_t e = 0; e < a.size; ++e) s[a.classes[e]] += x * w[a.classes[e]];
    }
    score_tail(i, s, mine);
  }

  // Of the classes found, about the `most` best: halve the range of scores until few enough are left. Where
  // scores are tied (most are, early on) the row's number decides, so that no class is favoured.
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

  void solve_row(Slot& slot, T* s, bool full, T enter, int64_t most_new, Scratch& mine) {
    const int64_t i = slot.row;
    const auto a = alpha_[i];
    slot.changed = false;
    slot.stats = {};
    if (rows_.norm[i] == 0 || (!full && a.size == 0 && a.own == 0)) return;
    if (full)
      score_tail(i, s, mine);
    else
      score_support(i, a, s, mine);
    solve_scored(slot, s, full, enter, most_new, mine);
  }

  // s: the scores, of all classes (`full`) or of those in use; they are lost.
  void solve_scored(Slot& slot, T* s, bool full, T enter, int64_t most_new, Scratch& mine) {
    const auto a = alpha_[slot.row];
    slot.changed = false;
    slot.stats = {};
    slot.classes.assign(a.classes, a.classes + a.size);
    slot.before.assign(a.values, a.values + a.size);
    if (loss_.relative)
      solve_relative(slot, a, s, full, enter, most_new, mine);
    else
      solve_absolute_row(slot, a, s, full, mine);
  }

  void solve_relative(Slot& slot, const typename DualRows<T>::Row& a, T* s, bool full, T enter,
                      int64_t most_new, Scratch& mine) {
    const int64_t i = slot.row;
    const int32_t y = y_[i];
    const T Ci = C_[i], k = curvature(i);
    const FeasibleSet<T> set(loss_, Ci);
    T* v = mine.v.data();
    const T own = s[y];
    const T inverse = 1 / k;
    PassStats& stats = slot.stats;
    double loss = 0, alpha_g = 0;
    T most = 0,
      least = has_slack<T>(a.sum, Ci) ? T(0) : std::numeric_limits<T>::max();  // of u_c = 1 + s_c - s_y (CS)
    T box = 0;                                                                 // largest violation (WW)
    for (int32_t e = 0; e < a.size; ++e) {
      const int32_t c = a.classes[e];
      const T g = own - s[c] - 1;
      v[e] = a.values[e] - g * inverse;
      alpha_g += double(a.values[e]) * g;
      if (!loss_.simplex) {
        loss += std::max(T(0), -g);
        box = std::max(box, g > 0 ? g : (a.values[e] < Ci ? -g : T(0)));
      } else {
        most = std::max(most, -g);
        least = std::min(least, -g);
      }
      s[c] = std::numeric_limits<T>::lowest();
    }
    T highest = -a.sum;
    for (int32_t e = 0; e < a.size; ++e) highest = std::max(highest, v[e]);
    T tau = solve_threshold(v, a.size, {}, set, a.sum, -a.sum, highest);
    int64_t m = a.size;
    if (full) {
      s[y] = std::numeric_limits<T>::lowest();
      for (int64_t c = K_; c < stride_; ++c) s[c] = std::numeric_limits<T>::lowest();
      // Without `enter`: every class whose variable would leave 0.
      const T level = loss_.simplex && least < std::numeric_limits<T>::max() ? least : T(0);
      T threshold = own - 1 + (enter > 0 ? std::max(k * tau, level + enter) : k * tau);
      int32_t* found = mine.found.data();
      Scan<T> scan = scan_scores(s, stride_, T(1) - own, threshold, found);
      if (!loss_.simplex) {
        loss += scan.hinge_sum;
        box = std::max(box, scan.largest);
      } else {
        most = std::max(most, scan.largest);
      }
      highest = std::max(highest, scan.largest * inverse);
      if (scan.count > 32) {
        // Most of these will not stay: find the root with the scores as they lie, then take only the classes
        // above it.
        tau = solve_threshold(v, m, {s, stride_, inverse, (1 - own) * inverse}, set, a.sum, tau, highest);
        threshold = std::max(threshold, own - 1 + k * tau);
        scan = scan_scores(s, stride_, T(1) - own, threshold, found);
      }
      int64_t joining = scan.count;
      if (joining > most_new)
        joining = keep_largest(s, found, joining, most_new, i, threshold, scan.largest - 1 + own);
      for (int64_t e = 0; e < joining; ++e) {
        slot.classes.push_back(found[e]);
        slot.before.push_back(0);
        v[m++] = (1 - own + s[found[e]]) * inverse;
      }
      if (joining > 0) tau = solve_threshold(v, m, {}, set, a.sum, -a.sum, highest);
    }
    if (loss_.simplex) loss = most;
    stats.loss = Ci * loss;
    stats.gap = Ci * loss + alpha_g;
    stats.alpha_sum = a.sum;
    stats.violation = !loss_.simplex ? box : std::max(T(0), most - std::min(least, most));

    slot.after.resize(m);
    double sum = 0;
    int64_t largest = 0;
    for (int64_t e = 0; e < m; ++e) {
      slot.after[e] = std::min(std::max(v[e] - tau, T(0)), set.cap);
      sum += slot.after[e];
      if (slot.after[e] > slot.after[largest]) largest = e;
    }
    // All of C_i is in use: what rounding has left of it would look like the variable of "no violation".
    if (m > 0 && a.sum + tau >= set.total) slot.after[largest] += static_cast<T>(set.total - sum);
    double change = 0, gain = 0;
    for (int64_t e = 0; e < m; ++e) {
      const double step = double(slot.after[e]) - slot.before[e];
      change += step;
      gain += step * (double(v[e]) - slot.before[e]);
      slot.changed |= step != 0;
    }
    slot.own_change = static_cast<T>(change);
    slot.gain = k * gain;
  }

  // In a full visit the values v lie by class, else by the order of the row's classes in use.
  void solve_absolute_row(Slot& slot, const typename DualRows<T>::Row& a, T* s, bool full, Scratch& mine) {
    constexpr int L = Lanes<T>::count;
    constexpr T none = std::numeric_limits<T>::lowest();
    const int64_t i = slot.row;
    const int32_t y = y_[i];
    const T k = curvature(i), inverse = 1 / k, mean = s[K_];
    const double Ci = C_[i], own_excess = loss_.own_target - double(s[y] - mean);
    const FeasibleSet<T> set(loss_, C_[i]);
    T* v = mine.v.data();
    const int64_t width = full ? stride_ : padded<T>(a.size);
    PassStats& stats = slot.stats;

    // Loss, gap and violation of the classes in use, then of the others; v on the way.
    double loss = 0, alpha_e = 0, most = 0, worst = 0;
    double least = has_slack<T>(double(a.sum) + a.own, Ci) ? 0 : std::numeric_limits<double>::infinity();
    const auto see = [&](double e, double value, double cap) {
      if (cap == 0) return;
      alpha_e += value * e;
      if (!loss_.simplex) loss += cap * std::max(0.0, e);
      worst = std::max(worst, e > 0 ? (value < cap ? e : 0.0) : (value > 0 ? -e : 0.0));
      most = std::max(most, e);
      if (value > 0) least = std::min(least, e);
    };
    see(own_excess, a.own, set.own_cap);
    mine.excess.resize(a.size);
    for (int32_t e = 0; e < a.size; ++e) {
      mine.excess[e] = 1 + (s[a.classes[e]] - mean);
      see(mine.excess[e], a.values[e], set.cap);
      s[a.classes[e]] = none;
    }
    if (full && set.cap > 0) {
      s[y] = none;
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
      if (!loss_.simplex) loss += set.cap * sum;
      worst = std::max(worst, top);
      most = std::max(most, top);
    } else {
      std::fill(v, v + width, none);
    }
    for (int32_t e = 0; e < a.size; ++e) v[full ? a.classes[e] : e] = a.values[e] + mine.excess[e] * inverse;
    stats.loss = loss_.simplex ? Ci * most : loss;
    stats.gap = stats.loss - alpha_e;
    stats.alpha_sum = double(a.sum) + loss_.own_target * a.own;
    stats.violation = loss_.simplex ? most - std::min(least, most) : worst;

    const double v_own = double(a.own) + own_excess / k;
    const AbsoluteSolution found =
        solve_absolute(AbsoluteRow<T>{v, width, double(a.sum), v_own, double(a.own), K_, set}, k);
    const auto beta = [&](T at) {
      return static_cast<T>(std::min<double>(found.scale * std::max(double(at) - found.shift, 0.0), set.cap));
    };
    double change = 0, gain = 0;  // gain: sum of changes times excess, over k
    slot.after.resize(a.size);
    for (int32_t e = 0; e < a.size; ++e) {
      const T at = v[full ? a.classes[e] : e];
      slot.after[e] = beta(at);
      if (full) v[a.classes[e]] = none;  // what is left are the classes that may join
      const double step = double(slot.after[e]) - slot.before[e];
      change += step;
      gain += step * (double(at) - slot.before[e]);
      slot.changed |= step != 0;
    }
    if (full && set.cap > 0) {
      const int64_t joining =
          scan_scores(v, stride_, T(0), static_cast<T>(found.shift), mine.found.data()).count;
      for (int64_t j = 0; j < joining; ++j) {
        const int32_t c = mine.found[j];
        const T value = beta(v[c]);
        if (!(value > 0)) continue;
        slot.classes.push_back(c);
        slot.before.push_back(0);
        slot.after.push_back(value);
        change += value;
        gain += double(value) * v[c];
        slot.changed = true;
      }
    }
    slot.own_before = a.own;
    slot.own = set.own_cap > 0 ? static_cast<T>(std::min<double>(found.own, set.own_cap)) : T(0);
    const double own_step = double(slot.own) - a.own;
    gain += own_step * own_excess / k;
    slot.changed |= own_step != 0;
    slot.own_change = static_cast<T>(own_step);
    slot.mean_change = static_cast<T>((own_step - change) / double(K_));
    slot.gain = k * gain;
  }

  // W += theta x_i (change of the coefficients) for the classes [low, high), rows in order
  void apply_slice(int64_t size, T theta, int64_t low, int64_t high, Scratch& mine) {
    for (int64_t r = 0; r < size; ++r) {
      const Slot& slot = slots_[r];
      if (!slot.changed) continue;
      mine.slice_class.clear();
      mine.slice_change.clear();
      slot.for_each_change(y_[slot.row], K_, [&](int32_t c, T change) {
        if (c < low || c >= high) return;
        mine.slice_class.push_back(c);
        mine.slice_change.push_back(theta * change);
      });
      const int64_t changes = static_cast<int64_t>(mine.slice_class.size());
      const int64_t b = rows_.head_ptr[slot.row], e = rows_.head_ptr[slot.row + 1];
      const bool dense = changes * 16 > high - low;
      if (dense) {
        std::fill(mine.v.data() + low, mine.v.data() + high, T(0));
        for (int64_t q = 0; q < changes; ++q) mine.v[mine.slice_class[q]] = mine.slice_change[q];
      }
      const int32_t* classes = mine.slice_class.data();
      const T* change = mine.slice_change.data();
      for (int64_t h = b; h < e; ++h) {
        T* w = W_.data() + rows_.head_index[h] * stride_;
        const T x = rows_.head_value[h];
        if (!kept_.all()) {
          for (int64_t q = 0; q < changes; ++q)
            if (kept_.has(rows_.head_index[h], classes[q])) w[classes[q]] += x * change[q];
        } else if (dense) {
          for (int64_t c = low; c < high; ++c) w[c] += x * mine.v[c];
        } else {
          for (int64_t q = 0; q < changes; ++q) w[classes[q]] += x * change[q];
        }
      }
    }
  }

  // alpha = before + theta (change); other threads still read the slot.
  void commit(Slot& slot, T theta, Scratch& mine) {
    slot.total.add(std::exchange(slot.stats, {}));
    if (!slot.changed) return;
    const int64_t m = static_cast<int64_t>(slot.after.size());
    T* values = mine.v.data();
    for (int64_t e = 0; e < m; ++e)
      values[e] = theta < 1 ? slot.before[e] + theta * (slot.after[e] - slot.before[e]) : slot.after[e];
    const T own = theta < 1 ? slot.own_before + theta * (slot.own - slot.own_before) : slot.own;
    alpha_.assign(slot.row, slot.classes.data(), values, m, own);
  }

  Layout<T> rows_;
  std::vector<int32_t> y_;
  std::vector<T> C_;
  int64_t K_, stride_;
  CoupledLoss loss_;
  KeptWeights kept_;
  DualRows<T> alpha_;
  Buffer<T> W_;
  Buffer<T> scores_;  // of the rows of a wave
  std::vector<Slot> slots_;
  T relax_ = 1;
  int64_t waves_ = 0;  // of the pass so far, and the sum of their theta
  double thetas_ = 0;
};

}  // namespace manyclass
