// Maximum entropy (multinomial logistic regression): coordinate ascent on the dual, one row at a time, all
// classes at once.
//
//   P(W) = 1/2 |W|^2 + sum_i C_i (log sum_c exp s_ic - s_iy)
//   D(a) = -1/2 |W|^2 - sum_ic a_ic log(a_ic / C_i),   a_ic > 0,  sum_c a_ic = C_i
//   w_c = sum_i (C_i [y_i = c] - a_ic) x_i
//
// All variables are positive, so they are stored dense, as log(a_ic / C_i). Rows move in waves with a common
// step theta, as in coupled/solver.hpp; coupled/maximum_entropy_step.hpp has the step of a row. Along the
// step of row i the dual is concave and largest at the end, so a fraction theta of the step gains at least
// theta gain_i. The interaction of the rows costs theta^2 X, where
//     X = sum_{i < i'} (x_i . x_i') (delta_i . delta_i'),
// so theta = min(1, sum_i gain_i / (2 X)) never lowers the dual.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "coupled/maximum_entropy_step.hpp"
#include "coupled/waves.hpp"
#include "dual/certificate.hpp"
#include "dual/kept_weights.hpp"
#include "dual/pass_stats.hpp"
#include "parallel/processes.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/products.hpp"
#include "rows/scores.hpp"
#include "simd/math.hpp"
#include "simd/memory.hpp"
#include "simd/tiles.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
class MaximumEntropySolver {
 public:
  MaximumEntropySolver(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
                       bool reduced)
      : rows_(std::move(layout)),
        y_(std::move(labels)),
        C_(std::move(C)),
        K_(classes),
        stride_(padded<T>(classes)),
        state_(rows_.n * stride_),
        W_(rows_.heads() * stride_) {
    processes_.ranges = {{0, K_}};
    if (rows_.tails() != 0) throw std::logic_error("dense weights need every shared feature in the head");
    if (reduced) kept_ = KeptWeights(rows_, [this](int64_t i) { return std::span(&y_[i], 1); }, K_);
    begin();
  }
  MaximumEntropySolver(const MaximumEntropySolver&) = delete;

  // Processes share the classes for scoring and updating, and the rows for solving. Ranges of classes begin
  // at whole vectors. Every process has all variables and room for all weights, but only the weights of its
  // own classes are up to date.
  void join(Processes processes) {
    if (!kept_.all()) throw std::logic_error("reduced weights cannot be shared among processes");
    processes_ = std::move(processes);
  }

  // As in coupled/solver.hpp. The variables of the new rows are set to their initial values.
  void swap_rows(Layout<T>& layout, std::vector<int32_t> labels, std::vector<T> C) {
    std::swap(rows_, layout);
    y_ = std::move(labels);
    C_ = std::move(C);
    state_.reset(rows_.n * stride_);
    begin();
    slots_.begin_pass();
  }
  void return_rows(Layout<T>& layout) { std::swap(rows_, layout); }

  Certificate measure(int threads) const {
    const Coefficients coef = coefficients();
    const int64_t groups = (rows_.n + rows_at_once - 1) / rows_at_once;
    std::vector<Certificate> of_group(groups);
    team_tasks(
        groups, threads, [&] { return Buffer<double>(rows_at_once * stride_); },
        [&](int64_t g, auto& scores) {
          of_group[g] = certify_rows(g * rows_at_once, coef.log_sums, scores);
        });
    Certificate total;
    for (const auto& part : of_group) total.add(part);
    return total;
  }

  std::vector<int32_t> best(int threads) const {
    constexpr int64_t width = Lanes<T>::count;
    return best_classes(
        rows_, [&](int64_t i, int64_t c, T* s) { score_row(rows_, i, W_.data() + c, stride_, s, width); },
        width, K_, threads);
  }

  // The coefficients of the weights: C_i [y_i = c] - a_ic.
  struct Coefficients {
    const MaximumEntropySolver& of;
    std::vector<double> log_sums;

    static constexpr bool centred() { return false; }
    void for_each(int64_t i, auto f) const {
      if (of.rows_.norm[i] == 0 || of.C_[i] == 0) return;
      const T* l = of.state(i);
      alignas(64) double a[L64];
      for (int64_t c = 0; c < of.K_; c += L64) {
        store(a, double(of.C_[i]) * exp_of<double>(load_as<double>(l + c) - log_sums[i]));
        for (int64_t v = 0; v < L64 && c + v < of.K_; ++v)
          f(static_cast<int32_t>(c + v), (c + v == of.y_[i] ? double(of.C_[i]) : 0.0) - a[v]);
      }
    }
  };
  Coefficients coefficients() const {
    Coefficients out{*this, std::vector<double>(rows_.n)};
    for (int64_t i = 0; i < rows_.n; ++i) out.log_sums[i] = log_sum_exp(state(i));
    return out;
  }

  void begin_pass() { slots_.begin_pass(); }

  PassStats sweep(const int64_t* order, int64_t count, int64_t wave, int threads) {
    if (!kept_.all()) wave = 1;  // as in coupled/solver.hpp
    slots_.make_room(wave);
    threads = static_cast<int>(std::min<int64_t>(threads, wave));
    for (auto* buffer : {&scores_, &next_, &changes_}) buffer->reserve(wave * stride_);
    const int64_t begin = processes_.mine().low, columns = padded<T>(processes_.mine().high) - begin;
    const int64_t tiles = (columns + tile_width<T> - 1) / tile_width<T>, vectors = columns / L;
    const WaveShape shape(wave, tiles, std::max<int64_t>(1, vectors), threads);
    Team team(threads);
    std::vector<T> mark(rows_.heads(), T(0));  // used by the one thread that computes theta
    const WaveSteps steps{
        [&](int64_t tile, int64_t first, int64_t low, int64_t high) {
          const int64_t c = begin + tile * tile_width<T>;
          for (int64_t r = low; r < high; ++r)
            score_row(rows_, order[first + r], W_.data() + c, stride_, scores_.data() + r * stride_ + c,
                      std::min(begin + columns - c, tile_width<T>));
        },
        [](int, int64_t, int64_t) {},
        [&](int64_t, int64_t size) { processes_.exchange_columns(scores_.data(), stride_, size); },
        [&](int, int64_t first, int64_t r) {
          slots_[r].row = order[first + r];
          if (r % processes_.size() == processes_.rank) solve_row(order[first + r], r);
        },
        [&](int64_t size) { tell_steps(size); },
        [&](int, int64_t size) { return common_step(size, mark); },
        [&](int, int64_t size, int64_t slice, int64_t low, int64_t high, T theta) {
          update(size, theta == 1 ? T(1) : theta - 1, begin + slice * vectors / shape.slices * L,
                 begin + (slice + 1) * vectors / shape.slices * L);
          for (int64_t r = low; r < high; ++r) commit(r, theta);
        }};
    run_waves<T>(team, count, shape, processes_.alone(), slots_.waves, steps);
    PassStats total = slots_.total();
    total.asleep = team.seconds_asleep();
    return total;
  }

  // Computed in float64 from the dual variables alone, which are scaled to sum to C_i. Sets the training
  // weights to the weights of the dual variables, rounded as the model will store them.
  Certificate certificate(int threads) {
    std::vector<double> log_sums(rows_.n);
    const int64_t blocks = (K_ + block_width - 1) / block_width,
                  groups = (rows_.n + rows_at_once - 1) / rows_at_once;
    std::vector<Certificate> of_block(blocks), of_group(groups);
    const auto [first_block, last_block] = blocks_of(processes_.mine());
    const auto [first_group, last_group] = processes_.share(groups);
    Team team(threads);
    team.run([&](int me) {
      team.share_out(groups, me, [&](int64_t g) {
        for (int64_t i = g * rows_at_once; i < std::min(rows_.n, (g + 1) * rows_at_once); ++i)
          log_sums[i] = log_sum_exp(state(i));
      });
      team.meet();
      Buffer<double> exact(rows_.heads() * block_width);
      team.share_out(last_block - first_block, me, [&](int64_t b) {
        of_block[first_block + b] = set_weights((first_block + b) * block_width, log_sums, exact);
      });
      team.meet();
      if (!processes_.alone()) {
        team.share_out(1, me,
                       [&](int64_t) { processes_.exchange_columns(W_.data(), stride_, rows_.heads()); });
        team.meet();
      }
      Buffer<double> scores(rows_at_once * stride_);
      team.share_out(last_group - first_group, me, [&](int64_t g) {
        of_group[first_group + g] = certify_rows((first_group + g) * rows_at_once, log_sums, scores);
      });
    });
    if (!processes_.alone()) tell_parts(of_block, of_group);
    Certificate total;
    for (const auto& part : of_block) total.add(part);
    for (const auto& part : of_group) total.add(part);
    return total;
  }

  // Copies the model (features x classes) from the weights that the last certificate has set.
  void copy_model(T* out) const {
    for (int64_t h = 0; h < rows_.heads(); ++h)
      std::copy_n(W_.data() + h * stride_, K_, out + rows_.head_features[h] * K_);
    for (int64_t i = 0; i < rows_.n; ++i) {
      if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
      const double log_sum = log_sum_exp(state(i));
      for (int64_t c = 0; c < K_; ++c) {
        const double coef = coefficient(i, c, log_sum);
        if (!kept_.all() && c != y_[i]) continue;
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          out[rows_.single_index[j] * K_ + c] = static_cast<T>(coef * rows_.single_value[j]);
      }
    }
  }

  // log(a_ic / C_i), rows x stride
  T* state(int64_t i) { return state_.data() + i * stride_; }
  const T* state(int64_t i) const { return state_.data() + i * stride_; }
  Buffer<T>& variables() { return state_; }
  Buffer<T>& weights() { return W_; }
  T* weight(int64_t head, int64_t c) { return W_.data() + head * stride_ + c; }
  auto& places() { return slots_; }
  std::tuple<int64_t, int64_t, int64_t, int64_t> held_columns() const {
    return {processes_.mine().low, processes_.mine().high, processes_.mine().low, -1};
  }
  const Layout<T>& rows() const { return rows_; }
  int64_t heads() const { return rows_.heads(); }
  int64_t labelled() const { return std::ssize(y_); }
  int64_t classes() const { return K_; }
  T penalty(int64_t i) const { return C_[i]; }
  int64_t dual_bytes() const { return state_.bytes(); }

  static constexpr T least = MaximumEntropyStep<T>::least;

 private:
  using Step = MaximumEntropyStep<T>;
  static constexpr int L = Lanes<T>::count, L64 = Lanes<double>::count;
  static constexpr int64_t block_width = 16, rows_at_once = 16;

  struct Slot {
    int64_t row = 0;
    bool changed = false;
    double gain = 0;  // of the dual, if the row moved alone
    PassStats stats, total;
  };

  // Puts all of C_i on the row's own class, so that W = 0.
  void begin() {
    for (int64_t i = 0; i < rows_.n; ++i) {
      std::fill(state(i), state(i) + stride_, least);
      state(i)[y_[i]] = 0;
    }
  }

  double log_sum_exp(const T* l) const {
    double most = l[0];
    for (int64_t c = 1; c < K_; ++c) most = std::max<double>(most, l[c]);
    vec<double> sums = {};
    double rest = 0;
    const int64_t whole = K_ / L64 * L64;
    for (int64_t c = 0; c < whole; c += L64) sums += exp_of<double>(load_as<double>(l + c) - most);
    for (int64_t c = whole; c < K_; ++c) rest += std::exp(double(l[c]) - most);
    return most + std::log(sum_lanes<double>(sums) + rest);
  }

  // C_i [y_i = c] - a_ic
  double coefficient(int64_t i, int64_t c, double log_sum) const {
    return C_[i] * ((c == y_[i] ? 1.0 : 0.0) - std::exp(double(state(i)[c]) - log_sum));
  }

  void solve_row(int64_t i, int64_t r) {
    Slot& slot = slots_[r];
    slot.row = i;
    slot.stats = {};
    slot.changed = rows_.norm[i] > 0;
    if (!slot.changed) return;
    T* s = scores_.data() + r * stride_;
    complete_scores(i, s);
    slot.gain = Step({y_[i], C_[i], rows_.norm[i]}, stride_, state(i), s, next_.data() + r * stride_,
                     changes_.data() + r * stride_)
                    .solve(slot.stats);
  }

  // Adds the features that only this row has, which the tiles leave out.
  void complete_scores(int64_t i, T* s) const {
    const T* old = state(i);
    const T coef = rows_.tail_norm[i] * C_[i];
    if (kept_.all())
      for (int64_t c = 0; c < stride_; c += L) store(s + c, load(s + c) - coef * exp_of<T>(load(old + c)));
    else
      s[y_[i]] -= coef * std::exp(old[y_[i]]);
    s[y_[i]] += coef;
    std::fill(s + K_, s + stride_, Step::least_score);
  }

  // Exchanges the steps of a wave, whose rows the processes have solved in turn.
  void tell_steps(int64_t size) {
    processes_.exchange([&](int of, auto piece) {
      for (int64_t r = of; r < size; r += processes_.size()) {
        Slot& slot = slots_[r];
        piece(&slot.changed, 1);
        piece(&slot.gain, 1);
        piece(&slot.stats, 1);
        if (!slot.changed) continue;
        piece(next_.data() + r * stride_, stride_);
        piece(changes_.data() + r * stride_, stride_);
      }
    });
  }

  // Exchanges the contributions of blocks of classes and groups of rows to a certificate.
  void tell_parts(std::vector<Certificate>& of_block, std::vector<Certificate>& of_group) {
    processes_.exchange([&](int of, auto piece) {
      const auto [block, block_end] = blocks_of(processes_.ranges[of]);
      const auto [group, group_end] = processes_.share(std::ssize(of_group), of);
      piece(of_block.data() + block, block_end - block);
      piece(of_group.data() + group, group_end - group);
    });
  }

  static std::pair<int64_t, int64_t> blocks_of(const ClassRange& classes) {
    return {classes.low / block_width, (classes.high + block_width - 1) / block_width};
  }

  T common_step(int64_t size, std::vector<T>& mark) const {
    double gain = 0, shared = 0;
    for (int64_t r = 0; r < size; ++r) {
      const Slot& slot = slots_[r];
      if (!slot.changed) continue;
      gain += slot.gain;
      const RowProducts<T> products(rows_, slot.row, mark);
      for (int64_t o = r + 1; o < size; ++o) {
        if (!slots_[o].changed) continue;
        const double product = products.with(slots_[o].row);
        if (product == 0) continue;
        vec<T> sums = {};
        for (int64_t c = 0; c < stride_; c += L)
          sums += load(changes_.data() + r * stride_ + c) * load(changes_.data() + o * stride_ + c);
        shared += product * sum_lanes<T>(sums);
      }
    }
    return 2 * shared > gain ? static_cast<T>(gain / (2 * shared)) : T(1);
  }

  // W += step x_i change_i for the classes [low, high), rows in order.
  void update(int64_t size, T step, int64_t low, int64_t high) {
    for (int64_t r = 0; r < size; ++r) {
      if (!slots_[r].changed) continue;
      const T* change = changes_.data() + r * stride_;
      const int64_t i = slots_[r].row;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        T* w = W_.data() + rows_.head_index[h] * stride_;
        const T x = step * rows_.head_value[h];
        if (kept_.all())
          for (int64_t c = low; c < high; c += L) store(w + c, load(w + c) + x * load(change + c));
        else
          for (int64_t c = low; c < high; c += L)
            store(w + c, load(w + c) + kept_.where_kept<T>(rows_.head_index[h], c, x * load(change + c)));
      }
    }
  }

  void commit(int64_t r, T theta) {
    Slot& slot = slots_[r];
    slot.total.add(std::exchange(slot.stats, {}));
    if (!slot.changed) return;
    T* l = state(slot.row);
    const T* next = next_.data() + r * stride_;
    const T* change = changes_.data() + r * stride_;
    if (theta == 1) {
      std::copy_n(next, stride_, l);
      return;
    }
    // The full step has already been taken: go back part of the way.
    const T back = (1 - theta) / C_[slot.row];
    for (int64_t c = 0; c < stride_; c += L) {
      const vec<T> p = exp_of<T>(load(next + c)) + back * load(change + c);
      const vec<T> floor = vec<T>{} + std::exp(least);
      store(l + c, log_of<T>(larger<T>(p, floor)));
    }
  }

  // Sets the weights of the block of classes that starts at `first`. Returns 1/2 |w|^2 as it enters the
  // primal and the dual.
  Certificate set_weights(int64_t first, const std::vector<double>& log_sums, Buffer<double>& exact) {
    const int64_t many = std::min<int64_t>(block_width, K_ - first);
    std::fill(exact.data(), exact.data() + exact.size(), 0.0);
    Certificate total;
    alignas(64) double coef[block_width];
    for (int64_t i = 0; i < rows_.n; ++i) {
      if (rows_.norm[i] == 0) continue;
      for (int64_t l = 0; l < block_width; ++l)
        coef[l] = l < many ? double(state(i)[first + l]) - log_sums[i] : -700;
      for (int64_t l = 0; l < block_width; l += L64)
        store(coef + l, -double(C_[i]) * exp_of<double>(load(coef + l)));
      for (int64_t l = many; l < block_width; ++l) coef[l] = 0;
      if (y_[i] >= first && y_[i] < first + many) coef[y_[i] - first] += C_[i];
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        double* w = exact.data() + int64_t(rows_.head_index[h]) * block_width;
        for (int64_t l = 0; l < block_width; l += L64)
          store(w + l, load(w + l) + double(rows_.head_value[h]) * load(coef + l));
      }
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int64_t l = 0; l < many; ++l) {
          if (!kept_.all() && first + l != y_[i]) continue;
          const double w = coef[l] * rows_.single_value[j], stored = static_cast<T>(w);
          total.dual -= w * w / 2;
          total.primal += stored * stored / 2;
        }
    }
    for (int64_t h = 0; h < rows_.heads(); ++h)
      for (int64_t l = 0; l < many; ++l) {
        const bool kept = kept_.all() || kept_.has(h, first + l);
        const double w = kept ? exact[h * block_width + l] : 0, stored = static_cast<T>(w);
        total.dual -= w * w / 2;
        total.primal += stored * stored / 2;
        W_[h * stride_ + first + l] = static_cast<T>(w);
      }
    return total;
  }

  Certificate certify_rows(int64_t first, const std::vector<double>& log_sums, Buffer<double>& scores) const {
    const int64_t last = std::min(rows_.n, first + rows_at_once);
    score_rows(rows_, first, last, W_.data(), stride_, scores.data());
    Certificate part;
    for (int64_t i = first; i < last; ++i)
      part.add(certify_row(i, scores.data() + (i - first) * stride_, log_sums[i]));
    return part;
  }

  Certificate certify_row(int64_t i, double* s, double log_sum) const {
    const double Ci = C_[i];
    if (Ci == 0) return {};
    if (rows_.norm[i] == 0) {  // all classes have the same score for any weights
      const double value = Ci * std::log(double(K_));
      return {value, value, 0};
    }
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      for (int64_t c = 0; c < K_; ++c) {
        if (!kept_.all() && c != y_[i]) continue;
        const double x = rows_.single_value[j];
        s[c] += x * static_cast<T>(coefficient(i, c, log_sum) * x);
      }
    std::fill(s + K_, s + stride_, -1e300);
    const double top = largest_of(s, stride_);
    vec<double> sums = {};
    for (int64_t c = 0; c < stride_; c += L64) sums += exp_of<double>(load(s + c) - top);
    const double log_partition = top + std::log(sum_lanes<double>(sums));
    vec<double> entropy = {}, worst = {};
    for (int64_t c = 0; c < stride_; c += L64) {
      const vec<double> l = load_as<double>(state(i) + c) - log_sum, p = exp_of<double>(l);
      const vec<double> d = p - exp_of<double>(load(s + c) - log_partition);
      for (int v = 0; v < L64; ++v)
        if (c + v < K_) {
          entropy[v] -= p[v] * l[v];
          worst[v] = std::max(worst[v], std::abs(d[v]));
        }
    }
    double violation = 0;
    for (int v = 0; v < L64; ++v) violation = std::max(violation, worst[v]);
    return {Ci * (log_partition - s[y_[i]]), Ci * sum_lanes<double>(entropy), violation};
  }

  Layout<T> rows_;
  std::vector<int32_t> y_;
  std::vector<T> C_;
  int64_t K_, stride_;
  Processes processes_;
  KeptWeights kept_;
  Buffer<T> state_, W_;
  Buffer<T> scores_, next_, changes_;  // of the rows of a wave
  WavePlaces<Slot> slots_;
};

}  // namespace manyclass
