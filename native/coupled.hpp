// Coordinate ascent on the dual of the coupled losses, a row at a time, all its variables at once.
//
//   for each wave of rows:
//     each tile of classes:   s_i = W' x_i for all rows of the wave          tiles shared out to the threads
//     each row:               solve its sub-problem                          rows shared out
//     each slice of classes:  W += x_i (change of alpha_i), in row order     slices shared out
// Weights of words that many rows of a wave have are so read once a wave. The step of a row is that of
// coupled_step.hpp. The weights of losses on absolute margins are centred: they are kept as u_c, with their
// mean as one class more, and the scores are s_c - s_mean.
//
// The rows of a wave all see the weights from before the wave, and move together by a factor theta <= 1. With
// delta_i the change of row i's coefficients and gain_i the slope of the dual along it, the dual changes by
//     theta sum_i gain_i - theta^2 / 2 Q,     Q = sum_{i,i'} (x_i . x_i') (delta_i . delta_i'),
// so theta = min(1, sum_i gain_i / Q) never lowers the dual. (Of steps that are relaxed it takes back what
// goes beyond the best common one; to leave that in gained nothing on WordNet.) Rows of text share few
// features and fewer of the classes they change: theta is nearly always 1. The wave's size belongs to the
// problem, never to the number of threads, and each weight receives its changes in row order: the result does
// not depend on who computes what.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "alternating.hpp"
#include "coupled_certificate.hpp"
#include "coupled_loss.hpp"
#include "coupled_step.hpp"
#include "dual_rows.hpp"
#include "kept_weights.hpp"
#include "layout.hpp"
#include "pass_stats.hpp"
#include "team.hpp"
#include "vector.hpp"
#include "waves.hpp"

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
    for (auto& step : steps_) step.total = {};
    waves_ = {};
    if (!loss_.relative) centre();
  }

  // Of the pass so far: what there is of its waves, then of each place in a wave.
  std::vector<PassStats> sums() const {
    std::vector<PassStats> all{waves_};
    for (const auto& step : steps_) all.push_back(step.total);
    return all;
  }
  void set_sums(const std::vector<PassStats>& all) {
    waves_ = all.at(0);
    steps_.resize(all.size() - 1);
    for (size_t r = 0; r < steps_.size(); ++r) steps_[r].total = all[r + 1];
  }

  // With reduced weights a row goes alone: k and the products of rows are then only bounds of what they stand
  // for. That is enough for every step to raise the dual; and for the sum of the steps to end at its optimum.
  //
  // One visit of the given rows, `wave` at a time (but at a pass's end their number is a multiple of that).
  PassStats sweep(const int64_t* order, int64_t count, int64_t wave, const Visit<T>& visit, int threads) {
    if (!kept_.all()) wave = 1;
    if (static_cast<int64_t>(steps_.size()) < wave) steps_.resize(wave);
    threads = static_cast<int>(std::min<int64_t>(threads, wave));
    if (visit.full) scores_.reserve(wave * stride_);
    const int64_t tiles = visit.full ? (stride_ + tile_width<T> - 1) / tile_width<T> : 0;
    const WaveShape shape(wave, tiles, stride_, threads);
    Team team(threads);
    std::vector<Scratch> scratch;
    for (int t = 0; t < threads; ++t) scratch.emplace_back(*this, wave);
    run_waves<T>(
        team, count, shape, waves_,
        [&](int64_t tile, int64_t first, int64_t low, int64_t high) {
          for (int64_t r = low; r < high; ++r) score_row_of_tile(order[first + r], r, tile * tile_width<T>);
        },
        [&](int me, int64_t first, int64_t r) {
          steps_[r].row = order[first + r];
          T* scores = visit.full ? scores_.data() + r * stride_ : scratch[me].scores.data();
          solve_row(steps_[r], scores, visit, scratch[me]);
        },
        [&](int me, int64_t size) { return common_step(size, scratch[me]); },
        [&](int me, int64_t size, int64_t slice, int64_t low, int64_t high, T theta) {
          apply_slice(size, theta == 1 ? T(1) : theta - 1, slice * stride_ / shape.slices,
                      (slice + 1) * stride_ / shape.slices, scratch[me]);
          for (int64_t r = low; r < high; ++r) commit(steps_[r], theta, scratch[me]);
        });
    PassStats total = waves_;
    for (auto& step : steps_) total.add(step.total);
    total.asleep = team.seconds_asleep();
    return total;
  }

  // Rows that are much alike undo each other's steps: visited in turn they need very many. Such a group
  // (rows[ptr[g]] to rows[ptr[g + 1]]) is visited again and again, its scores following from the products of
  // its rows, until it gains little or `rounds` are over; the weights learn of it once.
  void settle(const int64_t* ptr, const int64_t* rows, int64_t groups, int64_t rounds,
              const Visit<T>& visit) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; ++g) most = std::max(most, ptr[g + 1] - ptr[g]);
    if (steps_.empty()) steps_.resize(1);
    Scratch mine(*this, 1);
    Buffer<T> scores(most * stride_), moved(most * stride_), seen(stride_);
    std::vector<T> products(most * most);
    for (int64_t g = 0; g < groups; ++g)
      settle_group(rows + ptr[g], ptr[g + 1] - ptr[g], rounds, visit, {scores, moved, seen, products}, mine);
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
  Buffer<T>& weights() { return W_; }

  // Training is over: makes room for the model.
  void release() {
    W_.reset(0);
    scores_.reset(0);
    rows_ = {};
  }

 private:
  using Step = RowStep<T>;

  // Takes the mean into the weights: far from it, their differences would drown in rounding.
  void centre() {
    for (int64_t h = 0; h < rows_.heads(); ++h) {
      T* w = W_.data() + h * stride_;
      const T mean = std::exchange(w[K_], T(0));
      if (mean == 0) continue;
      for (int64_t c = 0; c < K_; ++c) w[c] -= mean;
    }
  }

  struct Scratch {
    Scratch(const CoupledSolver& s, int64_t wave)
        : solver(s.loss_, s.K_, s.stride_),
          scores(s.stride_),
          v(s.stride_),
          latest(s.stride_, -1),
          mark(s.rows_.heads() + s.rows_.tails(), T(0)),
          overlap(wave * wave) {}
    RowSolver<T> solver;
    Buffer<T> scores, v;
    std::vector<std::pair<int32_t, T>> others;  // score_tail: rows that share a rare feature, and its weight
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

  void settle_group(const int64_t* group, int64_t size, int64_t rounds, const Visit<T>& visit,
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
    Step& step = steps_[0];
    double first = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      double gap = 0;
      for (int64_t r = 0; r < size; ++r) {
        step.row = group[r];
        std::copy_n(at.scores.data() + r * stride_, stride_, at.seen.data());
        mine.solver.solve(step, row_of(step.row), at.seen.data(), visit);
        gap += step.stats.gap;
        if (!step.changed) continue;
        step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
          at.moved[r * stride_ + c] += change;
          for (int64_t q = 0; q < size; ++q) at.scores[q * stride_ + c] += at.products[r * size + q] * change;
        });
        alpha_.assign(step.row, step.classes.data(), step.after.data(),
                      static_cast<int64_t>(step.after.size()), step.own);
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
      const Step& step = steps_[r];
      if (!step.changed) continue;
      double square = 0;
      step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
        // sum_c (delta_c - mean)(delta'_c - mean') = sum_c delta_c delta'_c - K mean mean'
        const double weighted = c == K_ ? -double(K_) * change : double(change);
        square += weighted * change;
        for (int32_t p = mine.latest[c]; p >= 0; p = mine.changes[p].previous)
          mine.overlap[mine.changes[p].row * size + r] += weighted * mine.changes[p].value;
        mine.changes.push_back({c, static_cast<int32_t>(r), mine.latest[c], change});
        mine.latest[c] = static_cast<int32_t>(mine.changes.size()) - 1;
      });
      const double own = rows_.norm[step.row] * square;
      Q += own;
      gain += std::max(step.gain, own / relax_);  // near the optimum rounding may hide that it is not less
    }
    for (const auto& change : mine.changes) mine.latest[change.cls] = -1;
    for (int64_t r = 0; r < size; ++r) {
      const double* overlap = mine.overlap.data() + r * size;
      if (std::all_of(overlap, overlap + size, [](double o) { return o == 0; })) continue;
      const int64_t i = steps_[r].row;
      rows_.for_each_shared(i, [&](int64_t f, T x) { mine.mark[f] = x; });
      for (int64_t q = r + 1; q < size; ++q) {
        if (overlap[q] == 0) continue;
        double product = 0;
        rows_.for_each_shared(steps_[q].row, [&](int64_t f, T x) { product += double(mine.mark[f]) * x; });
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

  void score_row_of_tile(int64_t i, int64_t r, int64_t low) {
    const int64_t high = std::min(stride_, low + tile_width<T>);
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

  void solve_row(Step& step, T* s, const Visit<T>& visit, Scratch& mine) {
    const int64_t i = step.row;
    const auto a = row_of(i);
    step.changed = false;
    step.stats = {};
    if (rows_.norm[i] == 0 || (!visit.full && a.held.size == 0 && a.held.own == 0)) return;
    if (visit.full)
      score_tail(i, s, mine);
    else
      score_support(i, a.held, s, mine);
    mine.solver.solve(step, a, s, visit);
  }

  // With a relaxation steps are taken as if the dual curved less than it does: each still raises it.
  typename RowSolver<T>::Row row_of(int64_t i) const {
    return {alpha_[i], y_[i], C_[i], rows_.norm[i] / relax_};
  }

  // W += theta x_i (change of the coefficients) for the classes [low, high), rows in order
  void apply_slice(int64_t size, T theta, int64_t low, int64_t high, Scratch& mine) {
    for (int64_t r = 0; r < size; ++r) {
      const Step& step = steps_[r];
      if (!step.changed) continue;
      mine.slice_class.clear();
      mine.slice_change.clear();
      step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
        if (c < low || c >= high) return;
        mine.slice_class.push_back(c);
        mine.slice_change.push_back(theta * change);
      });
      const int64_t changes = static_cast<int64_t>(mine.slice_class.size());
      const int64_t b = rows_.head_ptr[step.row], e = rows_.head_ptr[step.row + 1];
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

  // alpha = before + theta (change); other threads still read the step.
  void commit(Step& step, T theta, Scratch& mine) {
    step.total.add(std::exchange(step.stats, {}));
    if (!step.changed) return;
    const int64_t m = static_cast<int64_t>(step.after.size());
    T* values = mine.v.data();
    for (int64_t e = 0; e < m; ++e)
      values[e] = theta < 1 ? step.before[e] + theta * (step.after[e] - step.before[e]) : step.after[e];
    const T own = theta < 1 ? step.own_before + theta * (step.own - step.own_before) : step.own;
    alpha_.assign(step.row, step.classes.data(), values, m, own);
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
  std::vector<Step> steps_;
  T relax_ = 1;
  PassStats waves_;  // of the pass so far: their number and the sum of their theta
};

}  // namespace manyclass
