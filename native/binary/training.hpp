// Trains one block of binary problems to the end, on one thread. The default is coordinate ascent on the
// duals of binary/loss.hpp, one row at a time for all problems of the block (binary/step.hpp). Smooth losses
// can also be trained by Newton's method on the primal (binary/newton.hpp): from the start, or once the dual
// turns out to be slow, as with long rows or features on different scales.
//
// A row rests after a visit that changed none of its variables (or none noticeably, for the logistic loss,
// whose variables have no bounds to rest at). Before a block is done, all rows are visited again, and a
// certificate is computed in float64 over every variable.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "binary/certificate.hpp"
#include "binary/data.hpp"
#include "binary/loss.hpp"
#include "binary/model_columns.hpp"
#include "binary/newton.hpp"
#include "binary/problems.hpp"
#include "binary/step.hpp"
#include "binary/variables.hpp"
#include "dual/certificate.hpp"
#include "parallel/interrupt.hpp"
#include "parallel/shuffle.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// `either` begins with the dual, and changes to Newton's method if that seems slow.
enum class Method { dual, newton, either };

struct BlockResult {
  Certificate certificate;
  int64_t epochs = 0;
  double visited = 0;  // rows visited, in units of all rows
  bool done = false;
  bool cut = false;  // an interrupt may have ended it early
};

template <class T, Binary loss>
class BlockTraining {
 public:
  // Trains block b, starting from these variables.
  BlockTraining(const BinaryData<T>& data, int64_t b, const BlockVariables<T>& from, Method method,
                const TrainingRule& rule, BlockWork<T>& work, Interrupt& interrupt)
      : data_(data),
        rows_(data.rows),
        b_(b),
        block_(data.problems.blocks()[b]),
        method_(method),
        rule_(rule),
        work_(work),
        interrupt_(interrupt),
        certificate_(data, block_, work),
        warm_(!from.row.empty()) {
    data_.add_sides(b_, work_.sides);
    choose_rows();
    for (int32_t f : work_.features) std::fill_n(work_.W.data() + int64_t(f) * width, width, T(0));
    const vec<T> nothing = vec<T>{} + static_cast<T>(Loss::start);
    for (int32_t i : work_.rows) store(work_.state.data() + int64_t(i) * width, nothing);
    from.for_each([&](int32_t i, int lane, T state) { work_.state[int64_t(i) * width + lane] = state; });
    if (warm_) certificate_.set_weights();
  }
  ~BlockTraining() { data_.clear_sides(b_, work_.sides); }
  BlockTraining(const BlockTraining&) = delete;

  // seed: for the order of the rows. An interrupt ends training early.
  BlockResult train(uint64_t seed) {
    if constexpr (Loss::smooth) {
      if (method_ == Method::newton) return by_newton({});
      const BlockResult result = by_dual(seed);
      return slow_ ? by_newton(result) : result;
    }
    return by_dual(seed);
  }

  // The trained variables that are not 0.
  BlockVariables<T> variables() const {
    const uint32_t real = (1u << block_.many()) - 1;  // lanes that are problems
    return BlockVariables<T>::packed(work_.rows, work_.state.data(), [&](vec<T> state, int32_t i) {
      return nonzero_lanes<T>(Loss::variable(state, data_.C[i]) * signs(i)) & real;
    });
  }

  // Copies the trained weights to a dense model: Newton's, or those of the variables, rounded, as the last
  // certificate has set them.
  void copy_weights(ModelColumns<T>& model) const {
    if (by_weights_)
      copy_weights(model, work_.newton->weights(), [&](int32_t i) { return work_.newton->own_weight(i); });
    else
      copy_weights(model, work_.W.data(), [&](int32_t i) { return certificate_.single_coefficients(i); });
  }

 private:
  static constexpr int width = Lanes<T>::count;
  using Loss = BinaryLoss<loss>;

  // The gap after a pass is estimated to be at least this share of the gap that the pass has seen.
  static constexpr double most_trusted = 0.2;
  // A pass over at least this share of the rows is enough to ask for a certificate.
  static constexpr double nearly_all = 0.7;
  // Visit resting rows again when the active ones see this share of the gap last seen over all rows.
  static constexpr double wake = 0.2;
  // From `judged_at` passes on, the dual is judged by the number of further passes over all rows that it
  // seems to need, at its pace since pass `judged_from`. Beyond `most_before_it`, Newton's method takes over.
  static constexpr int64_t judged_from = 10, judged_at = 30;
  static constexpr double most_before_it = 60;

  // After a pass: the passes so far, the rows visited so far (in units of all rows), and gap over objective.
  struct Seen {
    int64_t epochs = 0;
    double visited = 0, gap = 0;
  };

  // Whether Newton's method should take over. (Not if the target is a violation, which Newton's method
  // measures differently.)
  bool seems_slow(const Seen& then, const Seen& now, double tol) const {
    if (method_ != Method::either || !rule_.by_gap || now.epochs < judged_at) return false;
    const double gained = std::log(then.gap / now.gap), left = std::log(now.gap / tol) / gained;
    return !(gained > 0 && left * (now.visited - then.visited) <= most_before_it &&
             left * double(now.epochs - then.epochs) <= double(rule_.limit - now.epochs));
  }

  BlockResult by_dual(uint64_t seed) {
    BlockResult result;
    double last = 0, last_of_all = 0;  // the gap seen by the last pass, and by the last one over all rows
    work_.active = work_.rows;
    double tol = rule_.tol;
    Seen then;
    double objective = 0;
    const Stopwatch watch;
    for (int64_t epoch = 0;; ++epoch) {
      const double share = work_.rows.empty() ? 1 : double(work_.active.size()) / double(work_.rows.size());
      shuffle(work_.active, scramble(seed ^ scramble(b_ * 0x10001 + epoch)));
      result.visited += share;
      // The logistic loss leaves smaller violations for later; the gap is of the order of their squares.
      const T rest = static_cast<T>(rule_.by_gap ? 0.2 * std::sqrt(tol) : 0.5 * tol);
      const BlockSums sums = visit_rows(rest);
      ++result.epochs;
      // A pass measures each row before its step, so the gap after it is smaller: by about the same factor as
      // from the last pass to this one.
      const double left = sums.gap * (last > 0 ? std::max(most_trusted, sums.gap / last) : 1.0);
      last = sums.gap;
      if (share == 1) last_of_all = sums.gap;
      const bool quiet = rule_.by_gap ? left <= tol * (sums.loss + sums.norm / 2) : sums.violation <= tol;
      const bool out_of_epochs =
          result.epochs >= rule_.limit || interrupt_.requested() || cut_short(result, watch);
      if (share == 1) objective = sums.loss + sums.norm / 2;
      if (!quiet && !out_of_epochs) {
        const Seen now{result.epochs, result.visited, sums.gap / objective};
        if (then.epochs < judged_from)
          then = now;
        else if ((slow_ = seems_slow(then, now, tol)))
          return result;
      }
      if ((quiet && share >= (rule_.by_gap ? nearly_all : 1)) || out_of_epochs) {
        result.certificate = certificate_.of_variables();
        result.done = rule_.met(result.certificate);
        if (result.done || out_of_epochs) return result;
        tol /= 2;
      }
      if (quiet || sums.gap <= wake * last_of_all)
        work_.active = work_.rows;
      else
        work_.active.resize(sums.kept);
    }
  }

  // Whether the block has to end early so that others can still begin in time.
  bool cut_short(BlockResult& result, const Stopwatch& watch) const {
    result.cut = result.epochs >= 3 && interrupt_.hurries(watch.seconds() / result.visited);
    return result.cut;
  }

  // Starts from the weights of the current variables. result: that of the dual so far.
  BlockResult by_newton(BlockResult result) {
    if (!work_.newton || block_.pairs) work_.newton.emplace(rows_, data_.C, work_.rows);
    Newton<T>& newton = *work_.newton;
    by_weights_ = true;
    const auto signs_of = [&](int64_t i) { return signs(i); };
    for (int32_t f : work_.features)
      std::copy_n(work_.W.data() + int64_t(f) * width, width, newton.weights() + int64_t(f) * width);
    const bool begun = warm_ || slow_;
    for (int32_t i : work_.rows) newton.set_own_weight(i, begun ? variable(i) * signs(i) : vec<T>{});
    const Stopwatch watch;
    const double visited = result.visited;
    const int64_t epochs = result.epochs++;
    auto at = newton.template start<loss>(signs_of);
    double tol = warm_ ? rule_.tol : rule_.tol / 2;
    for (;;) {
      bool active[width] = {};
      for (int64_t l = 0; l < block_.many(); ++l)
        active[l] = rule_.by_gap ? !gap_met(at.primal[l], at.dual[l], tol) : at.steepest[l] > tol;
      const bool quiet = std::none_of(active, active + width, [](bool a) { return a; });
      result.visited = visited + static_cast<double>(result.epochs - epochs);
      const bool out_of_epochs =
          result.epochs >= rule_.limit || interrupted(interrupt_) || cut_short(result, watch);
      if (quiet || out_of_epochs) {
        result.certificate = certificate_.of_weights();
        result.done = rule_.met(result.certificate);
        if (result.done || out_of_epochs) return result;
        tol /= 2;
        ++result.epochs;  // a certificate reads all rows too; also ends the loop if rounding stalls progress
        continue;
      }
      at = newton.template advance<loss>(at, active, result.epochs, signs_of);
    }
  }

  vec<T> variable(int64_t i) const {
    return Loss::variable(load(work_.state.data() + i * width), data_.C[i]);
  }

  // The rows and features of the block; in one-vs-rest these are all rows and features.
  void choose_rows() {
    if (!block_.pairs) {
      if (!work_.rows.empty()) return;
      work_.rows = data_.filled;
      work_.features.resize(rows_.heads());
      std::iota(work_.features.begin(), work_.features.end(), 0);
      return;
    }
    work_.rows.clear();
    for (int32_t c : block_.classes())
      for (int32_t i : data_.members(c))
        if (rows_.norm[i] != 0) work_.rows.push_back(i);
    std::sort(work_.rows.begin(), work_.rows.end());
    work_.seen.assign(rows_.heads(), false);
    for (int32_t i : work_.rows)
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
        work_.seen[rows_.head_index[h]] = true;
    work_.features.clear();
    for (int64_t f = 0; f < rows_.heads(); ++f)
      if (work_.seen[f]) work_.features.push_back(static_cast<int32_t>(f));
  }

  vec<T> signs(int64_t i) const { return work_.sides.template signs<T>(i); }

  BlockSums visit_rows(T rest) {
    const uint16_t* positive = work_.sides.positive.data();
    if (block_.pairs) return visit_rows(PairSides<T>{work_.sides}, rest);
    if (data_.kept.all()) return visit_rows(LabelSides<T>{positive}, rest);
    return visit_rows(ReducedSides<T>{{positive}, data_.kept, block_.problem[0]}, rest);
  }
  template <class Sides>
  BlockSums visit_rows(const Sides& sides, T rest) {
    const VisitedRows<T, Sides> on{rows_,          data_.C,           sides, work_.active, block_.many(),
                                   work_.W.data(), work_.state.data()};
    return step_rows<loss>(on, rest, [this] { return interrupted(interrupt_); });
  }

  // single(i): by problem, the weights of features that only row i has, divided by their values.
  void copy_weights(ModelColumns<T>& model, const T* W, auto single) const {
    const int64_t many = block_.many();
    for (int32_t f : work_.features)
      std::copy_n(W + int64_t(f) * width, many, model.at(rows_.head_features[f], b_));
    for (int32_t i : work_.rows) {
      if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
      const auto coef = single(i);
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
        T* weights = model.at(rows_.single_index[j], b_);
        for (int64_t l = 0; l < many; ++l) weights[l] = static_cast<T>(coef[l] * rows_.single_value[j]);
      }
    }
  }

  const BinaryData<T>& data_;
  const Layout<T>& rows_;
  const int64_t b_;
  const BinaryBlock<T>& block_;
  const Method method_;
  const TrainingRule& rule_;
  BlockWork<T>& work_;
  Interrupt& interrupt_;
  const BinaryCertificate<T, loss> certificate_;
  const bool warm_;
  bool slow_ = false;        // the dual was given up
  bool by_weights_ = false;  // Newton's method has the result
};

}  // namespace manyclass
