// Coordinate ascent on the dual of the coupled losses, a row at a time, all its variables at once.
//
//   for each wave of rows:
//     each tile of classes:   s_i = W' x_i for all rows of the wave          tiles shared out to the threads
//     each row:               solve its sub-problem                          rows shared out
//     each slice of classes:  W += x_i (change of alpha_i), in row order     slices shared out
// Weights of words that many rows of a wave have are so read once a wave. The step of a row is that of
// coupled/step.hpp. The weights of losses on absolute margins are centred: they are kept as u_c, with their
// mean as one class more, and the scores are s_c - s_mean.
//
// The rows of a wave all see the weights from before the wave, and move together by the factor theta of
// coupled/common_step.hpp. The wave's size belongs to the problem, never to the number of threads, and each
// weight receives its changes in row order: the result does not depend on who computes what.
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
#include "rows/best_classes.hpp"
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
      throw std::logic_error("centred weights want every shared feature in the head");
    if (!reduced) return;
    if (!loss.relative) throw std::logic_error("centred weights cannot be reduced");
    kept_ = KeptWeights(rows_, [this](int64_t i) { return std::span(&y_[i], 1); }, K_);
  }

  // Other processes hold the weights of other classes; dual variables are everyone's. Ranges begin at whole
  // vectors. All training weights are 0 afterwards.
  void join(Processes processes) {
    if (!kept_.all()) throw std::logic_error("reduced weights cannot be shared among processes");
    processes_ = std::move(processes);
    lay_out_weights();
  }

  // Other rows from now on, of which no variable is in use yet; the weights stay as they are.
  void swap_rows(Layout<T>& layout, std::vector<int32_t> labels, std::vector<T> C) {
    std::swap(rows_, layout);
    y_ = std::move(labels);
    C_ = std::move(C);
    alpha_.reset(rows_.n);
    steps_.begin_pass();
  }
  void return_rows(Layout<T>& layout) { std::swap(rows_, layout); }

  // What these rows add to the certificate at the weights as they are.
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

  // What `sweep` gives covers all rows visited since, so that sums do not depend on how a pass is divided.
  void begin_pass() {
    steps_.begin_pass();
    if (!loss_.relative) centre();
  }

  // With reduced weights a row goes alone: k and the products of rows are then only bounds of what they stand
  // for. That is enough for every step to raise the dual; and for the sum of the steps to end at its optimum.
  //
  // One visit of the given rows, `wave` at a time (but at a pass's end their number is a multiple of that).
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
    CommonStep<T> common(rows_, y_, K_, wave);  // only ever one thread looks for theta
    const auto scores_of = [&](int64_t r) { return scores_.data() + r * stride_; };
    run_waves<T>(
        team, count, shape, alone, steps_.waves,
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
        [](int64_t) {},  // everyone solves all rows
        [&](int, int64_t size) { return common.of(steps_, size, relax_); },
        [&](int me, int64_t size, int64_t slice, int64_t low, int64_t high, T theta) {
          const T by = theta == 1 ? T(1) : theta - 1;
          apply_slice(size, by, slice * wide_ / shape.slices, (slice + 1) * wide_ / shape.slices,
                      scratch[me]);
          if (rows_.listed) apply_to_lists(size, by, slice, shape.slices, scratch[me]);
          for (int64_t r = low; r < high; ++r) commit(steps_[r], theta, scratch[me]);
        });
    PassStats total = steps_.total();
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
    steps_.make_room(1);
    Scratch mine(*this);
    GroupScratch at(*this, most);
    for (int64_t g = 0; g < groups; ++g)
      settle_group(rows + ptr[g], ptr[g + 1] - ptr[g], rounds, visit, at, mine);
  }

  // One pass of the published algorithm for LLW; the mean is summed by these chunks of classes.
  PassStats alternate(const int64_t* order, int64_t count, const std::vector<int64_t>& chunks, int threads) {
    const int64_t columns = processes_.alone() ? padded<T>(K_) : columns_;
    return AlternatingPass<T>{rows_, y_, C_, K_, processes_, chunks, alpha_, W_, columns, wide_}.run(
        order, count, threads);
  }

  CoupledCoefficients<T> coefficients() const { return {alpha_, y_, C_, loss_, !kept_.all()}; }

  // Primal, dual and largest violation over all variables, in float64, for a model with the weights of the
  // dual variables times `scale`; and the primal at further factors. The training weights are set to the
  // model's: `refresh` before going on if that is not 1.
  std::pair<Certificate, std::vector<double>> certificate(int threads, double scale,
                                                          std::vector<double> further) {
    return with_all_classes([&](Buffer<T>& W) {
      return certificate_of(scale, std::move(further)).certify(W, stride_, processes_, threads);
    });
  }

  // The training weights anew from the dual variables: without what rounding has accumulated.
  void refresh(int threads) {
    with_all_classes([&](Buffer<T>& W) { return certificate_of(1, {}).set_weights(W, stride_, threads); });
  }

  // By how much steps go beyond the best one of their row: less than 2.
  void set_relaxation(T factor) { relax_ = factor; }

  std::tuple<int64_t, int64_t, int64_t, int64_t> held_columns() const {
    return {processes_.mine().low, processes_.mine().high, 0, loss_.relative ? -1 : mean_at_};
  }
  auto& places() { return steps_; }  // with the sums of the pass so far
  const Layout<T>& rows() const { return rows_; }
  const std::vector<int32_t>& labels() const { return y_; }
  int64_t heads() const { return rows_.heads(); }
  int64_t labelled() const { return static_cast<int64_t>(y_.size()); }
  FeasibleSet<T> feasible(int64_t i) const { return {loss_, C_[i]}; }
  int64_t classes() const { return K_; }
  DualRows<T>& alpha() { return alpha_; }
  Buffer<T>& weights() { return W_; }
  T* weight(int64_t head, int64_t c) { return W_.data() + head * wide_ + c; }
  WeightLists<T>& lists() { return lists_; }  // of the features of the tail, where rows come in parts
  const WeightLists<T>& lists() const { return lists_; }

  // Training is over: makes room for the model.
  void release() {
    W_.reset(0);
    lists_.clear();
    scores_.reset(0);
    rows_ = {};
  }

 private:
  using Step = RowStep<T>;

  // Columns of W: the classes of this process from 0 on, and their mean over all classes, where there is one:
  // behind all classes, or behind those of this process.
  void lay_out_weights() {
    const int64_t classes = processes_.mine().size();
    mean_at_ = processes_.alone() ? K_ : padded<T>(classes);
    columns_ = processes_.alone() ? stride_ : padded<T>(classes);
    wide_ = processes_.alone() ? stride_ : columns_ + (loss_.relative ? 0 : Lanes<T>::count);
    W_.reset(rows_.heads() * wide_);
  }

  // The column of a class, or of the mean, or -1 if it is another process's.
  int64_t column(int64_t c) const {
    if (c == K_) return mean_at_;
    return processes_.mine().has(c) ? c - processes_.mine().low : -1;
  }

  // f(weights of all classes, heads x stride), which sets them; those of this process become W.
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
    return {rows_, y_, C_, alpha_, K_, loss_, !kept_.all(), scale, std::move(further), lists_};
  }

  // Takes the mean into the weights: far from it, their differences would drown in rounding.
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
    std::vector<std::pair<int32_t, T>> others;  // score_tail: rows that share a rare feature, and its weight
    std::vector<std::pair<int32_t, int32_t>> wanted;  // score_support: classes and their columns
    std::vector<int32_t> slice_column;
    std::vector<T> slice_change;
    std::vector<T> by_class;  // apply_to_lists: the changes of a row; 0 before and after
  };

  struct GroupScratch {
    GroupScratch(const CoupledSolver& s, int64_t most)
        : scores(most * s.stride_),
          moved(most * s.stride_),
          seen(s.stride_),
          products(most * most),
          mark(s.rows_.heads() + s.rows_.tails(), T(0)) {}
    Buffer<T> scores, moved, seen;  // moved: changes of the coefficients so far
    std::vector<T> products, mark;
  };

  void settle_group(const int64_t* group, int64_t size, int64_t rounds, const Visit<T>& visit,
                    GroupScratch& at, Scratch& mine) {
    constexpr double little = 0.01;  // of what the first round found
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

  // s += the tail features' part: from their lists, or through the dual variables of the other rows that have
  // them, and of the row itself (tail_norm, which also covers the features of this row alone). The other rows
  // lie anywhere in memory: where they are is asked for first, then what is there, a few rows ahead.
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

  // The scores of the columns from `low` on, for as many classes as a tile has.
  void score_tile_of(int64_t i, int64_t low, T* s) const {
    score_row(rows_, i, W_.data() + low, wide_, s + processes_.mine().low + low,
              std::min(columns_ - low, tile_width<T>));
  }

  // What the tiles have not: the mean, where it lies apart, and the tail.
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

  // Everyone's scores for the rows of a wave; the mean is known to all.
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

  // With a relaxation steps are taken as if the dual curved less than it does: each still raises it.
  typename RowSolver<T>::Row row_of(int64_t i) const {
    const T k = rows_.norm[i] / relax_;
    return {alpha_[i], y_[i], C_[i], loss_.simplex ? workable_curvature(k, C_[i]) : k};
  }

  // W += theta x_i (change of the coefficients) for the columns [low, high), rows in order
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

  // The same for the lists of the tail: each of them belongs to one slice.
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
