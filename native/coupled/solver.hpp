// Coordinate ascent on the dual of the coupled losses, one row at a time, all its variables at once:
//
//   min_W  1/2 |W|^2 + sum_i C_i loss_i(W' x_i),      W = sum_i x_i coef_i',  coef linear in alpha
//
//   for each wave of rows:
//     for each tile of classes:   s_i = W' x_i for all rows of the wave          threads share the tiles
//     for each row:               solve its sub-problem                          threads share the rows
//     for each slice of classes:  W += x_i (change of coef_i)', in row order     threads share the slices
//
// coupled/loss.hpp lists the losses, and coupled/step.hpp has the step of a row. Weights of features that
// many rows of a wave have are read from memory only once per wave. Losses on absolute margins have centred
// weights: W holds uncentred ones and their mean as an additional class, and scores are s_c - s_mean.
//
// The rows of a wave are solved at the weights from before the wave, and move by a common factor theta
// (coupled/common_step.hpp). The size of a wave depends on the problem, never on the number of threads, and
// each weight receives its changes in row order. So the result does not depend on the number of threads.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "coupled/alternating.hpp"
#include "coupled/certificate.hpp"
#include "coupled/common_step.hpp"
#include "coupled/loss.hpp"
#include "coupled/score_exchange.hpp"
#include "coupled/step.hpp"
#include "coupled/waves.hpp"
#include "dual/kept_weights.hpp"
#include "dual/pass_stats.hpp"
#include "dual/rows.hpp"
#include "dual/weight_lists.hpp"
#include "parallel/processes.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/products.hpp"
#include "rows/row_adder.hpp"
#include "rows/scores.hpp"
#include "simd/memory.hpp"
#include "simd/tiles.hpp"
#include "simd/vector.hpp"

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
        lists_(rows_.listed ? rows_.tails() : 0) {
    processes_.ranges = {{0, K_}};
    lay_out_weights();
    if (!loss.relative && rows_.tails() != 0)
      throw std::logic_error("centred weights need every shared feature in the head");
    if (!reduced) return;
    if (!loss.relative) throw std::logic_error("centred weights cannot be reduced");
    kept_ = KeptWeights(rows_, [this](int64_t i) { return std::span(&y_[i], 1); }, K_);
  }

  // From now on each process holds the weights of its own range of classes, and all dual variables. Ranges
  // begin at whole vectors. Sets all training weights to 0.
  void join(Processes processes) {
    if (!kept_.all()) throw std::logic_error("reduced weights cannot be shared among processes");
    processes_ = std::move(processes);
    lay_out_weights();
  }

  // Replaces the rows, and sets all dual variables to 0. The weights stay as they are. `layout` receives the
  // old rows.
  void swap_rows(Layout<T>& layout, std::vector<int32_t> labels, std::vector<T> C) {
    std::swap(rows_, layout);
    y_ = std::move(labels);
    C_ = std::move(C);
    alpha_.reset(rows_.n);
    steps_.begin_pass();
  }
  void return_rows(Layout<T>& layout) { std::swap(rows_, layout); }

  // The contribution of these rows to the certificate, at the current weights.
  Certificate measure(int threads) const {
    Certificate total;
    std::vector<double> none;
    certificate_of(1, {}).add_rows(W_, stride_, processes_, threads, total, none);
    return total;
  }

  std::vector<int32_t> best(int threads) const {
    return best_classes(
        rows_,
        [&](int64_t i, int64_t, T* s) {
          for (int64_t low = 0; low < columns_; low += tile_width<T>) score_tile_of(i, low, s);
          lists_.score(rows_, i, s);
        },
        stride_, K_, threads);
  }

  // Statistics returned by `sweep` cover all rows visited since this call, so that sums do not depend on how
  // a pass is divided into sweeps.
  void begin_pass() {
    steps_.begin_pass();
    if (!loss_.relative) centre();
  }

  // Visits the given rows once, `wave` at a time. Except at the end of a pass, `count` is a multiple of
  // `wave`.
  //
  // With reduced weights each row moves alone: k and the products of rows are then only upper bounds, which
  // is enough for every step to raise the dual and for the steps to converge to its optimum.
  PassStats sweep(const int64_t* order, int64_t count, int64_t wave, const Visit<T>& visit, int threads) {
    if (!kept_.all()) wave = 1;
    steps_.make_room(wave);
    threads = static_cast<int>(std::min<int64_t>(threads, wave));
    const bool alone = processes_.alone();
    if (visit.full || !alone) scores_.reserve(wave * stride_);
    const int64_t tiles = visit.full ? (columns_ + tile_width<T> - 1) / tile_width<T> : 0;
    const WaveShape shape(wave, tiles, std::max<int64_t>(1, wide_), threads);
    Team team(threads);
    std::vector<Scratch> scratch;
    for (int t = 0; t < threads; ++t) scratch.emplace_back(*this);
    CommonStep<T> common(rows_, y_, K_, wave);  // used by the one thread that computes theta
    const auto scores_of = [&](int64_t r) { return scores_.data() + r * stride_; };
    const WaveSteps steps{
        [&](int64_t tile, int64_t first, int64_t low, int64_t high) {
          for (int64_t r = low; r < high; ++r)
            score_tile_of(order[first + r], tile * tile_width<T>, scores_of(r));
        },
        [&](int me, int64_t first, int64_t r) {
          if (rests(order[first + r], visit.full)) return;
          if (visit.full)
            complete_scores(order[first + r], scores_of(r), scratch[me]);
          else
            score_support(order[first + r], scores_of(r), scratch[me]);
        },
        [&](int64_t first, int64_t size) { exchange(order + first, size, visit.full, scratch[0].solver); },
        [&](int me, int64_t first, int64_t r) {
          const int64_t i = order[first + r];
          steps_[r].row = i;
          steps_[r].changed = false;
          steps_[r].stats = {};
          if (rests(i, visit.full)) return;
          T* scores = visit.full || !alone ? scores_of(r) : scratch[me].scores.data();
          if (alone) visit.full ? score_tail(i, scores, scratch[me]) : score_support(i, scores, scratch[me]);
          scratch[me].solver.solve(steps_[r], row_of(i), scores, visit);
        },
        [](int64_t) {},  // every process solves all rows
        [&](int, int64_t size) { return common.of(steps_, size, relax_); },
        [&](int me, int64_t size, int64_t slice, int64_t low, int64_t high, T theta) {
          const T by = theta == 1 ? T(1) : theta - 1;
          apply_slice(size, by, slice * wide_ / shape.slices, (slice + 1) * wide_ / shape.slices,
                      scratch[me]);
          if (rows_.listed) apply_to_lists(size, by, slice, shape.slices, scratch[me]);
          for (int64_t r = low; r < high; ++r) commit(steps_[r], theta, scratch[me]);
        }};
    run_waves<T>(team, count, shape, alone, steps_.waves, steps);
    PassStats total = steps_.total();
    total.asleep = team.seconds_asleep();
    return total;
  }

  // Similar rows of different classes undo each other's steps, and would need very many passes. So each group
  // of such rows, rows[ptr[g]] to rows[ptr[g + 1]], is visited repeatedly, until it gains little or `rounds`
  // are over. In between, its scores are updated by the products of its rows; the weights are updated once at
  // the end.
  void settle(const int64_t* ptr, const int64_t* rows, int64_t groups, int64_t rounds,
              const Visit<T>& visit) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; ++g) most = std::max(most, ptr[g + 1] - ptr[g]);
    steps_.make_room(1);
    Scratch mine(*this);
    GroupScratch at(*this, most);
    for (int64_t g = 0; g < groups; ++g)
      settle_group(rows + ptr[g], ptr[g + 1] - ptr[g], rounds, visit, at, mine);
  }

  // One pass of the published algorithm for LLW (coupled/alternating.hpp).
  PassStats alternate(const int64_t* order, int64_t count, const std::vector<int64_t>& chunks, int threads) {
    const int64_t columns = processes_.alone() ? padded<T>(K_) : columns_;
    return AlternatingPass<T>{rows_, y_, C_, K_, processes_, chunks, alpha_, W_, columns, wide_}.run(
        order, count, threads);
  }

  CoupledCoefficients<T> coefficients() const { return {alpha_, y_, C_, loss_, !kept_.all()}; }

  // The certificate, in float64, of a model with the weights of the dual variables times `scale`; and the
  // primal at further factors. Sets the training weights to the model's: if scale is not 1, call `refresh`
  // before training continues.
  std::pair<Certificate, std::vector<double>> certificate(int threads, double scale,
                                                          std::vector<double> further) {
    return with_all_classes([&](Buffer<T>& W) {
      return certificate_of(scale, std::move(further)).certify(W, stride_, processes_, threads);
    });
  }

  // Recomputes the training weights from the dual variables, without accumulated rounding errors.
  void refresh(int threads) {
    with_all_classes([&](Buffer<T>& W) { return certificate_of(1, {}).set_weights(W, stride_, threads); });
  }

  // Over-relaxation: the factor, less than 2, by which the curvature of each row's sub-problem is reduced.
  void set_relaxation(T factor) { relax_ = factor; }

  std::tuple<int64_t, int64_t, int64_t, int64_t> held_columns() const {
    return {processes_.mine().low, processes_.mine().high, 0, loss_.relative ? -1 : mean_at_};
  }
  auto& places() { return steps_; }
  const Layout<T>& rows() const { return rows_; }
  const std::vector<int32_t>& labels() const { return y_; }
  int64_t heads() const { return rows_.heads(); }
  int64_t labelled() const { return static_cast<int64_t>(y_.size()); }
  FeasibleSet<T> feasible(int64_t i) const { return {loss_, C_[i]}; }
  int64_t classes() const { return K_; }
  DualRows<T>& alpha() { return alpha_; }
  Buffer<T>& weights() { return W_; }
  T* weight(int64_t head, int64_t c) { return W_.data() + head * wide_ + c; }
  WeightLists<T>& lists() { return lists_; }  // of tail features; empty unless the rows are listed
  const WeightLists<T>& lists() const { return lists_; }

  // Frees memory for the model after training.
  void release() {
    W_.reset(0);
    lists_.clear();
    scores_.reset(0);
    rows_ = {};
  }

 private:
  using Step = RowStep<T>;

  // The columns of W are the classes of this process, followed for centred losses by the mean over all
  // classes.
  void lay_out_weights() {
    const int64_t classes = processes_.mine().size();
    mean_at_ = processes_.alone() ? K_ : padded<T>(classes);
    columns_ = processes_.alone() ? stride_ : padded<T>(classes);
    wide_ = processes_.alone() ? stride_ : columns_ + (loss_.relative ? 0 : Lanes<T>::count);
    W_.reset(rows_.heads() * wide_);
  }

  // The column of a class, or of the mean (class K); -1 for classes of other processes.
  int64_t column(int64_t c) const {
    if (c == K_) return mean_at_;
    return processes_.mine().has(c) ? c - processes_.mine().low : -1;
  }

  // Calls f(W), which sets the weights of all classes (heads x stride), and keeps those of this process.
  template <class F>
  auto with_all_classes(F f) {
    if (processes_.alone()) return f(W_);
    Buffer<T> all(rows_.heads() * stride_);
    auto found = f(all);
    const ClassRange mine = processes_.mine();
    std::fill(W_.data(), W_.data() + W_.size(), T(0));
    for (int64_t h = 0; h < rows_.heads(); ++h)
      std::copy_n(all.data() + h * stride_ + mine.low, mine.size(), W_.data() + h * wide_);
    return found;
  }

  CoupledCertificate<T> certificate_of(double scale, std::vector<double> further) const {
    return {rows_, C_, K_, coefficients(), scale, std::move(further), lists_};
  }

  // Subtracts the mean from the weights. As it grows, differences between classes would drown in rounding.
  void centre() {
    const int64_t classes = processes_.mine().size();
    for (int64_t h = 0; h < rows_.heads(); ++h) {
      T* w = W_.data() + h * wide_;
      const T mean = std::exchange(w[mean_at_], T(0));
      if (mean == 0) continue;
      for (int64_t c = 0; c < classes; ++c) w[c] -= mean;
    }
  }

  struct Scratch {
    explicit Scratch(const CoupledSolver& s)
        : solver(s.loss_, s.K_, s.stride_),
          scores(s.stride_),
          v(s.stride_ + Lanes<T>::count),
          by_class(s.rows_.listed ? s.stride_ : 0, T(0)) {}
    RowSolver<T> solver;
    Buffer<T> scores, v;
    std::vector<std::pair<int32_t, T>> others;  // score_tail: rows that share a rare feature, and x_ij x_i'j
    std::vector<std::pair<int32_t, int32_t>> wanted;  // score_support: classes and their columns
    std::vector<int32_t> slice_column;
    std::vector<T> slice_change;
    std::vector<T> by_class;  // apply_to_lists: the changes of a row; all 0 before and after
  };

  struct GroupScratch {
    GroupScratch(const CoupledSolver& s, int64_t most)
        : scores(most * s.stride_),
          moved(most * s.stride_),
          seen(s.stride_),
          products(most * most),
          mark(s.rows_.heads() + s.rows_.tails(), T(0)) {}
    Buffer<T> scores, moved, seen;  // moved: total changes of the coefficients
    std::vector<T> products, mark;
  };

  void settle_group(const int64_t* group, int64_t size, int64_t rounds, const Visit<T>& visit,
                    GroupScratch& at, Scratch& mine) {
    constexpr double little = 0.01;  // of the gap in the first round
    for (int64_t r = 0; r < size; ++r) {
      T* s = at.scores.data() + r * stride_;
      const int64_t i = group[r];
      for (int64_t low = 0; low < columns_; low += tile_width<T>) score_tile_of(i, low, s);
      complete_scores(i, s, mine);
      const RowProducts<T> products(rows_, i, at.mark);
      for (int64_t q = 0; q < size; ++q)
        at.products[r * size + q] = q == r ? rows_.norm[i] : static_cast<T>(products.with(group[q]));
    }
    if (!processes_.alone()) processes_.exchange_columns(at.scores.data(), stride_, size);
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
        T* w = W_.data() + rows_.head_index[h] * wide_;
        const T *moved = at.moved.data() + r * stride_, x = rows_.head_value[h];
        for (int64_t c = 0; c < processes_.mine().size(); ++c) w[c] += x * moved[processes_.mine().low + c];
        if (!loss_.relative) w[mean_at_] += x * moved[K_];
      }
  }

  // Adds the scores of tail features: from their lists, or from the dual variables of the other rows that
  // have them and of the row itself (tail_norm, which includes the features that only this row has). The
  // other rows are scattered in memory, so their slots, and then their variables, are prefetched a few rows
  // ahead.
  void score_tail(int64_t i, T* s, Scratch& mine) const {
    if (!kept_.all()) {
      s[y_[i]] += rows_.tail_norm[i] * alpha_[i].sum;
      return;
    }
    auto& others = mine.others;
    others.clear();
    if (rows_.listed) lists_.score(rows_, i, s);
    const int64_t end = rows_.listed ? rows_.tail_ptr[i] : rows_.tail_ptr[i + 1];
    for (int64_t t = rows_.tail_ptr[i]; t < end; ++t) {
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

  // Scores the tile of columns that starts at `low`.
  void score_tile_of(int64_t i, int64_t low, T* s) const {
    score_row(rows_, i, W_.data() + low, wide_, s + processes_.mine().low + low,
              std::min(columns_ - low, tile_width<T>));
  }

  // Adds what the tiles leave out: the tail, and the mean where it is not in the last tile.
  void complete_scores(int64_t i, T* s, Scratch& mine) const {
    if (!processes_.alone() && !loss_.relative) {
      s[K_] = 0;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
        s[K_] += rows_.head_value[h] * W_[rows_.head_index[h] * wide_ + mean_at_];
    }
    score_tail(i, s, mine);
  }

  void score_support(int64_t i, T* s, Scratch& mine) const {
    const auto a = alpha_[i];
    auto& wanted = mine.wanted;
    wanted.clear();
    const auto want = [&](int32_t c) {
      s[c] = 0;
      if (column(c) >= 0) wanted.emplace_back(c, static_cast<int32_t>(column(c)));
    };
    want(y_[i]);
    if (!loss_.relative) want(static_cast<int32_t>(K_));
    for (int32_t e = 0; e < a.size; ++e) want(a.classes[e]);
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
      const T* w = W_.data() + rows_.head_index[h] * wide_;
      const T x = rows_.head_value[h];
      for (const auto& [c, at] : wanted) s[c] += x * w[at];
    }
    score_tail(i, s, mine);
  }

  bool rests(int64_t i, bool full) const {
    return rows_.norm[i] == 0 || (!full && alpha_[i].size == 0 && alpha_[i].own == 0);
  }

  // Exchanges the scores of a wave; each process computes the mean itself.
  void exchange(const int64_t* rows, int64_t size, bool full, RowSolver<T>& solver) {
    const ScoreExchange<T> scores(processes_, scores_.data(), stride_, size);
    const auto in_use = [&](int64_t r, auto f) {
      if (rests(rows[r], full)) return;
      const auto a = alpha_[rows[r]];
      f(y_[rows[r]]);
      for (int32_t e = 0; e < a.size; ++e) f(a.classes[e]);
    };
    if (!full)
      scores.tell_in_use(in_use);
    else if (!loss_.relative)
      scores.tell_all();
    else
      scores.tell_what_matters(
          in_use, [&](int64_t r) { return rests(rows[r], full); },
          [&](int64_t r, const T* s) { return solver.lowest_that_matters(row_of(rows[r]), s); });
  }

  // Over-relaxed steps assume a smaller curvature than the dual has; they still raise it.
  typename RowSolver<T>::Row row_of(int64_t i) const {
    const T k = rows_.norm[i] / relax_;
    return {alpha_[i], y_[i], C_[i], loss_.simplex ? workable_curvature(k, C_[i]) : k};
  }

  // W += theta x_i (change of coef_i)' for the columns [low, high), rows in order.
  void apply_slice(int64_t size, T theta, int64_t low, int64_t high, Scratch& mine) {
    for (int64_t r = 0; r < size; ++r) {
      const Step& step = steps_[r];
      if (!step.changed) continue;
      mine.slice_column.clear();
      mine.slice_change.clear();
      step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
        const int64_t at = column(c);
        if (at < low || at >= high) return;
        mine.slice_column.push_back(static_cast<int32_t>(at));
        mine.slice_change.push_back(theta * change);
      });
      const int64_t changes = static_cast<int64_t>(mine.slice_column.size());
      const int64_t b = rows_.head_ptr[step.row], e = rows_.head_ptr[step.row + 1];
      const bool dense = changes * 16 > high - low;
      if (dense) {
        std::fill(mine.v.data() + low, mine.v.data() + high, T(0));
        for (int64_t q = 0; q < changes; ++q) mine.v[mine.slice_column[q]] = mine.slice_change[q];
      }
      const int32_t* columns = mine.slice_column.data();
      const T* change = mine.slice_change.data();
      for (int64_t h = b; h < e; ++h) {
        T* w = W_.data() + rows_.head_index[h] * wide_;
        const T x = rows_.head_value[h];
        if (!kept_.all()) {
          for (int64_t q = 0; q < changes; ++q)
            if (kept_.has(rows_.head_index[h], columns[q])) w[columns[q]] += x * change[q];
        } else if (dense) {
          for (int64_t c = low; c < high; ++c) w[c] += x * mine.v[c];
        } else {
          for (int64_t q = 0; q < changes; ++q) w[columns[q]] += x * change[q];
        }
      }
    }
  }

  // The same for the lists of the tail; each list belongs to one slice.
  void apply_to_lists(int64_t size, T theta, int64_t slice, int64_t slices, Scratch& mine) {
    for (int64_t r = 0; r < size; ++r) {
      const Step& step = steps_[r];
      const int64_t first = rows_.tail_ptr[step.row], last = rows_.tail_ptr[step.row + 1];
      if (!step.changed || first == last) continue;
      auto& classes = mine.slice_column;
      auto& changes = mine.slice_change;
      classes.clear();
      changes.clear();
      step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
        if (theta * change == 0) return;
        classes.push_back(c);
        changes.push_back(theta * change);
        mine.by_class[c] = theta * change;
      });
      for (int64_t t = first; t < last; ++t)
        if (rows_.tail_index[t] % slices == slice)
          lists_.add_changes(rows_.tail_index[t], rows_.tail_value[t], classes.data(), changes.data(),
                             static_cast<int64_t>(classes.size()), mine.by_class.data());
      for (int32_t c : classes) mine.by_class[c] = 0;
    }
  }

  // alpha = before + theta (after - before). Leaves the step unchanged, because other threads still read it.
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
  Processes processes_;
  int64_t columns_ = 0, wide_ = 0, mean_at_ = 0;  // of W: see lay_out_weights
  CoupledLoss loss_;
  KeptWeights kept_;
  DualRows<T> alpha_;
  WeightLists<T> lists_;
  Buffer<T> W_;
  Buffer<T> scores_;  // of the rows of a wave
  WavePlaces<Step> steps_;
  T relax_ = 1;
};

}  // namespace manyclass
