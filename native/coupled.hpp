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
#include <tuple>
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
#include "score_exchange.hpp"
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
        alpha_(rows_.n) {
    processes_.ranges = {{0, K_}};
    lay_out_weights();
    if (!loss.relative && rows_.tails() != 0)
      throw std::logic_error("centred weights want every shared feature in the head");
    if (!reduced) return;
    if (!loss.relative) throw std::logic_error("centred weights cannot be reduced");
    kept_ = KeptWeights(rows_, y_, K_);
  }

  // Other processes hold the weights of other classes; dual variables are everyone's. Ranges begin at whole
  // vectors. All training weights are 0 afterwards.
  void join(Processes processes) {
    if (!kept_.all()) throw std::logic_error("reduced weights cannot be shared among processes");
    processes_ = std::move(processes);
    lay_out_weights();
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
    const bool alone = processes_.alone();
    if (visit.full || !alone) scores_.reserve(wave * stride_);
    const int64_t tiles = visit.full ? (columns_ + tile_width<T> - 1) / tile_width<T> : 0;
    const WaveShape shape(wave, tiles, std::max<int64_t>(1, wide_), threads);
    Team team(threads);
    std::vector<Scratch> scratch;
    for (int t = 0; t < threads; ++t) scratch.emplace_back(*this, wave);
    const auto scores_of = [&](int64_t r) { return scores_.data() + r * stride_; };
    run_waves<T>(
        team, count, shape, alone, waves_,
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
        [&](int me, int64_t size) { return common_step(size, scratch[me]); },
        [&](int me, int64_t size, int64_t slice, int64_t low, int64_t high, T theta) {
          apply_slice(size, theta == 1 ? T(1) : theta - 1, slice * wide_ / shape.slices,
                      (slice + 1) * wide_ / shape.slices, scratch[me]);
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
    const size_t factors = further.size();
    const CoupledCertificate<T> certificate = certificate_of(scale, further);
    if (processes_.alone()) return certificate.certify(W_, stride_, threads);
    // Each process certifies some of the rows, for all classes.
    Buffer<T> W(rows_.heads() * stride_);
    Certificate total = certificate.set_weights(W, stride_, threads);
    take_columns(W);
    const auto [first, last] = processes_.share(certificate.row_parts());
    std::vector<double> losses((last - first) * factors, 0.0), primals(factors);
    const auto mine = certificate.certify_parts(first, last, W, stride_, threads, losses.data());
    BytesOut out;
    out.put(mine.data(), last - first);
    out.put(losses.data(), static_cast<int64_t>(losses.size()));
    for (size_t f = 0; f < factors; ++f) primals[f] = further[f] * further[f] * total.primal;
    const auto all = processes_.gather(out.bytes);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      BytesIn in(all[rank]);
      const auto [from, to] = processes_.share(certificate.row_parts(), static_cast<int>(rank));
      for (int64_t p = from; p < to; ++p) total.add(in.take<Certificate>());
      for (int64_t p = from; p < to; ++p)
        for (double& primal : primals) primal += in.take<double>();
    }
    return {total, primals};
  }

  // The training weights anew from the dual variables: without what rounding has accumulated.
  void refresh(int threads) {
    if (processes_.alone()) {
      certificate_of(1, {}).set_weights(W_, stride_, threads);
      return;
    }
    Buffer<T> W(rows_.heads() * stride_);
    certificate_of(1, {}).set_weights(W, stride_, threads);
    take_columns(W);
  }

  // By how much steps go beyond the best one of their row: less than 2.
  void set_relaxation(T factor) { relax_ = factor; }

  std::tuple<int64_t, int64_t, int64_t, int64_t> held_columns() const {
    return {processes_.mine().low, processes_.mine().high, 0, loss_.relative ? -1 : mean_at_};
  }
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

  // W = the columns of this process from those of all classes.
  void take_columns(const Buffer<T>& all) {
    const ClassRange mine = processes_.mine();
    std::fill(W_.data(), W_.data() + W_.size(), T(0));
    for (int64_t h = 0; h < rows_.heads(); ++h)
      std::copy_n(all.data() + h * stride_ + mine.low, mine.size(), W_.data() + h * wide_);
  }

  CoupledCertificate<T> certificate_of(double scale, std::vector<double> further) const {
    return {rows_, y_, C_, alpha_, K_, loss_, !kept_.all(), scale, std::move(further)};
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
    Scratch(const CoupledSolver& s, int64_t wave)
        : solver(s.loss_, s.K_, s.stride_),
          scores(s.stride_),
          v(s.stride_ + Lanes<T>::count),
          latest(s.stride_, -1),
          mark(s.rows_.heads() + s.rows_.tails(), T(0)),
          overlap(wave * wave) {}
    RowSolver<T> solver;
    Buffer<T> scores, v;
    std::vector<std::pair<int32_t, T>> others;  // score_tail: rows that share a rare feature, and its weight
    std::vector<std::pair<int32_t, int32_t>> wanted;  // score_support: classes and their columns
    std::vector<int32_t> slice_column;
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
      const int64_t i = group[r];
      for (int64_t low = 0; low < columns_; low += tile_width<T>) score_tile_of(i, low, s);
      complete_scores(i, s, mine);
      rows_.for_each_shared(i, [&](int64_t f, T x) { mine.mark[f] = x; });
      for (int64_t q = 0; q < size; ++q) {
        double product = 0;
        rows_.for_each_shared(group[q], [&](int64_t f, T x) { product += double(mine.mark[f]) * x; });
        at.products[r * size + q] = q == r ? rows_.norm[i] : static_cast<T>(product);
      }
      rows_.for_each_shared(i, [&](int64_t f, T) { mine.mark[f] = 0; });
    }
    if (!processes_.alone()) exchange_all(size, at.scores.data());
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

  // The scores of the columns from `low` on, for as many classes as a tile has.
  void score_tile_of(int64_t i, int64_t low, T* s) const {
    const int64_t b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
    score_tile(W_.data() + low, wide_, rows_.head_index.data() + b, rows_.head_value.data() + b, e - b,
               s + processes_.mine().low + low, std::min(columns_ - low, tile_width<T>));
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

  // Everyone's scores for the rows of a wave; see score_exchange.hpp.
  void exchange(const int64_t* rows, int64_t size, bool full, RowSolver<T>& solver) {
    if (!loss_.relative && full) return exchange_all(size, scores_.data());
    const auto for_each_known = [&](int64_t r, const ClassRange& of, auto f) {
      if (rests(rows[r], full)) return;
      const auto a = alpha_[rows[r]];
      T* s = scores_.data() + r * stride_;
      if (of.has(y_[rows[r]])) f(s[y_[rows[r]]]);
      for (int32_t e = 0; e < a.size; ++e)
        if (of.has(a.classes[e])) f(s[a.classes[e]]);
    };
    BytesOut out;
    for (int64_t r = 0; r < size; ++r) for_each_known(r, processes_.mine(), [&](T s) { out.put(s); });
    const auto known = processes_.gather(out.bytes);
    const auto take_known = [&] {
      for_each_other([&](size_t rank, const ClassRange& theirs) {
        BytesIn in(known[rank]);
        for (int64_t r = 0; r < size; ++r) for_each_known(r, theirs, [&](T& s) { s = in.take<T>(); });
      });
    };
    take_known();
    if (!full) return;
    out.bytes.clear();
    const ClassRange mine = processes_.mine();
    for (int64_t r = 0; r < size; ++r) {
      if (rests(rows[r], full)) continue;
      const T* s = scores_.data() + r * stride_;
      const T lowest = solver.lowest_that_matters(row_of(rows[r]), s);
      const int64_t best = std::max_element(s + mine.low, s + mine.high) - s;  // the largest always counts
      named_.clear();
      for (int64_t c = mine.low; c < mine.high; ++c)
        if (s[c] > lowest || c == best) named_.push_back(static_cast<int32_t>(c));
      out.put(static_cast<int32_t>(named_.size()));
      for (int32_t c : named_) {
        out.put(c);
        out.put(s[c]);
      }
    }
    const auto named = processes_.gather(out.bytes);
    for_each_other([&](size_t rank, const ClassRange& theirs) {
      BytesIn in(named[rank]);
      for (int64_t r = 0; r < size; ++r) {
        if (rests(rows[r], full)) continue;
        T* s = scores_.data() + r * stride_;
        std::fill(s + theirs.low, s + theirs.high, std::numeric_limits<T>::lowest());
        for (int32_t left = in.take<int32_t>(); left > 0; --left) {
          const int32_t c = in.take<int32_t>();
          if (!theirs.has(c)) throw std::runtime_error("another process sent a class that is not its own");
          s[c] = in.take<T>();
        }
      }
    });
    take_known();
  }

  // All scores of some rows; the mean is known to all.
  void exchange_all(int64_t size, T* scores) {
    BytesOut out;
    const ClassRange mine = processes_.mine();
    for (int64_t r = 0; r < size; ++r) out.put(scores + r * stride_ + mine.low, mine.size());
    const auto all = processes_.gather(out.bytes);
    for_each_other([&](size_t rank, const ClassRange& theirs) {
      BytesIn in(all[rank]);
      for (int64_t r = 0; r < size; ++r) in.take(scores + r * stride_ + theirs.low, theirs.size());
    });
  }

  template <class F>
  void for_each_other(F f) const {
    for (size_t rank = 0; rank < processes_.ranges.size(); ++rank)
      if (static_cast<int>(rank) != processes_.rank) f(rank, processes_.ranges[rank]);
  }

  // With a relaxation steps are taken as if the dual curved less than it does: each still raises it.
  typename RowSolver<T>::Row row_of(int64_t i) const {
    return {alpha_[i], y_[i], C_[i], rows_.norm[i] / relax_};
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
  std::vector<int32_t> named_;                    // exchange
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
