// The blocks of binary_problems.hpp, each alone over its rows. One row, all problems of the block at once, is
// a step of coordinate ascent on the duals of binary_loss.hpp.
//
// A row rests for a block after a visit that changed none of its variables (to speak of, where the loss has
// no bounds to rest at); before a block is done all rows are visited again, and its certificate covers every
// variable in float64. The smooth losses can also be trained by Newton's method on the primal (newton.hpp),
// one-vs-rest.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "binary_certificate.hpp"
#include "binary_loss.hpp"
#include "binary_problems.hpp"
#include "block_variables.hpp"
#include "certificate.hpp"
#include "feature_weights.hpp"
#include "interrupt.hpp"
#include "kept_weights.hpp"
#include "layout.hpp"
#include "model_columns.hpp"
#include "newton.hpp"
#include "shuffle.hpp"
#include "team.hpp"
#include "vector.hpp"
#include "wide.hpp"

namespace manyclass {

// When a block is done: relative gap or largest violation at most `tol`.
struct BlockRule {
  bool by_gap;
  double tol;
  int64_t max_epochs;
};

struct BlockResult {
  Certificate certificate;
  int64_t epochs = 0;
  double visited = 0;  // rows visited, in units of all rows
  bool done = false;
  bool cut = false;  // it may not be where it would have ended without an interrupt
};

template <class T>
class BinaryBlocks {
 public:
  static constexpr int width = Lanes<T>::count;

  // `keep_variables`: also of a loss whose variables are all in use and that could do without.
  BinaryBlocks(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
               int64_t features, Binary loss, bool pairs, bool newton, bool reduced, bool keep_variables)
      : shared_(new BinaryData<T>{
            std::move(layout), std::move(labels), std::move(C), {}, std::vector<double>(classes, 0.0)}),
        problems_(classes, pairs),
        loss_(loss),
        newton_(newton),
        dense_(!pairs && (loss == Binary::logistic || newton ||
                          features * classes * static_cast<int64_t>(sizeof(T)) <= small_model)),
        keep_variables_(keep_variables || !dense_),
        members_(pairs ? classes : 0),
        alpha_(problems_.blocks().size()),
        held_(problems_.blocks().size(), true) {
    if (newton && (pairs || loss == Binary::hinge))
      throw std::logic_error("Newton's method is not for this loss");
    if (reduced && (pairs || newton))
      throw std::logic_error("feature reduction is for one-vs-rest, by the dual");
    const Layout<T>& rows = data_.rows;
    if (rows.tails() != 0) throw std::logic_error("this solver wants every shared feature in the head");
    if (reduced) data_.kept = KeptWeights(rows, data_.y, classes);
    for (int64_t i = 0; i < rows.n; ++i) {
      if (rows.norm[i] == 0) {
        data_.empty_C[data_.y[i]] += data_.C[i];
        continue;
      }
      filled_.push_back(static_cast<int32_t>(i));
      if (pairs) members_[data_.y[i]].push_back(static_cast<int32_t>(i));
    }
    if (!dense_) return;
    model_ = ModelColumns<T>(problems_, features);
    model_.hold(held_);
  }

  // Another one on the same rows, which can train at the same time; it holds no blocks yet.
  explicit BinaryBlocks(const BinaryBlocks* other)
      : shared_(other->shared_),
        problems_(other->problems_),
        loss_(other->loss_),
        newton_(other->newton_),
        dense_(other->dense_),
        keep_variables_(other->keep_variables_),
        filled_(other->filled_),
        members_(other->members_),
        alpha_(problems_.blocks().size()),
        held_(problems_.blocks().size(), false) {
    if (dense_) model_ = ModelColumns<T>(problems_, other->model_.features());
  }
  BinaryBlocks(const BinaryBlocks&) = delete;

  int64_t blocks() const { return static_cast<int64_t>(alpha_.size()); }
  int64_t problems() const { return problems_.count(); }
  const std::vector<int32_t>& problems_of(int64_t b) const { return problems_.blocks()[b].problem; }

  // Trains these blocks, going on from the dual variables they have. After an interrupt the blocks under way
  // end as they are, and those not begun have no epochs.
  std::vector<BlockResult> train(const std::vector<int64_t>& chosen, const BlockRule& rule, uint64_t seed,
                                 int threads, Interrupt& interrupt) {
    const int64_t count = static_cast<int64_t>(check_held(chosen).size());
    std::vector<BlockResult> results(count);
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, count)));
    std::atomic<int64_t> next{0};
    std::atomic<int> working{threads};
    while (static_cast<int>(work_.size()) < threads) work_.emplace_back(data_.rows);
    Team team(threads);
    team.run([&](int me) {
      for (int64_t k; (k = next.fetch_add(1)) < count && !interrupt.requested();) {
        results[k] = newton_ ? with_smooth_loss([&]<Binary loss>() {
          return newton_block<loss>(chosen[k], rule, work_[me], interrupt);
        })
                             : train_block(chosen[k], rule, seed, work_[me], interrupt);
        results[k].cut = interrupt.requested();
      }
      --working;
      // The thread that hears Ctrl-C stays awake while others work.
      if (me == 0)
        while (working.load() > 0) {
          interrupt.poll();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    return results;
  }

  // `release`: the variables are not needed here any more.
  VariablesByRow<T> by_rows(bool release = false) {
    return {alpha_, data_.y, problems_, !data_.kept.all(), release};
  }

  // As `by_rows` gives them.
  void set_alpha(const int64_t* ptr, const int32_t* problem, const T* values) {
    divide_variables(problems_, data_.rows.n, ptr, problem, values, alpha_);
  }

  // Variables and weights of these blocks only; all others lose theirs, and are not to be trained.
  void hold(const std::vector<int64_t>& chosen) {
    held_.assign(blocks(), false);
    for (int64_t b : check(chosen)) held_[b] = true;
    for (int64_t b = 0; b < blocks(); ++b)
      if (!held_[b]) alpha_[b] = {};
    if (dense_) model_.hold(held_);
  }

  // What training has made of some blocks, for another object of the same problem.
  PackedVariables<T> variables_of(const std::vector<int64_t>& chosen) const {
    return {alpha_, check(chosen)};
  }
  void set_variables(const std::vector<int64_t>& chosen, const int64_t* counts, int64_t rows,
                     const int32_t* row, const uint16_t* lanes, int64_t entries, const T* values) {
    also_hold(chosen);
    unpack_variables(problems_, data_.rows.n, chosen, counts, rows, row, lanes, entries, values, alpha_);
  }
  int64_t features() const { return model_.features(); }
  int64_t columns(const std::vector<int64_t>& chosen) const { return model_.count(check(chosen)); }
  void copy_columns(const std::vector<int64_t>& chosen, T* out) { model_.copy_to(out, check_held(chosen)); }
  void set_columns(const std::vector<int64_t>& chosen, const T* in) {
    also_hold(chosen);
    if (dense_) model_.copy_from(in, chosen);
  }

  // Training is over: makes room for the model.
  void release() {
    work_.clear();
    if (shared_.use_count() == 1) data_.rows = {};
  }

  // features x problems: where all weights are in use, or few enough.
  bool has_dense_model() const { return dense_; }
  Buffer<T> take_dense_model() {
    model_.hold(std::vector<bool>(blocks(), true));
    return model_.take();
  }

  int64_t dual_bytes() const {
    int64_t total = 0;
    for (const auto& a : alpha_) total += a.bytes();
    return total;
  }
  const Layout<T>& rows() const { return data_.rows; }

 private:
  using Block = BinaryBlock<T>;
  using Work = BlockWork<T>;

  // How much smaller than seen a gap is taken to be, at most.
  static constexpr double most_trusted = 0.2;
  // From this share of the rows on a pass tells enough for a certificate.
  static constexpr double nearly_all = 0.7;
  // Resting rows are visited again when the others see this share of the gap that all have seen last.
  static constexpr double wake = 0.2;

  const std::vector<int64_t>& check(const std::vector<int64_t>& chosen) const {
    for (int64_t b : chosen)
      if (b < 0 || b >= blocks()) throw std::out_of_range("there is no such block");
    return chosen;
  }

  const std::vector<int64_t>& check_held(const std::vector<int64_t>& chosen) const {
    for (int64_t b : check(chosen))
      if (!held_[b]) throw std::logic_error("a block that is not held here");
    return chosen;
  }

  void also_hold(const std::vector<int64_t>& chosen) {
    for (int64_t b : check(chosen)) held_[b] = true;
    if (dense_) model_.hold(held_);
  }

  struct Sums {
    double loss = 0, gap = 0, norm = 0, violation = 0;
    int64_t kept = 0;
  };

  BlockResult train_block(int64_t b, const BlockRule& rule, uint64_t seed, Work& work, Interrupt& interrupt) {
    const Block& block = problems_.blocks()[b];
    const BinaryCertificate<T> certificate(data_, block, work);
    BlockResult result;
    double last = 0, last_of_all = 0;  // gaps that passes have seen
    if (start(b, work)) with_loss([&]<Binary loss>() { certificate.template set_weights<loss>(); });
    work.active = work.rows;
    double tol = rule.tol;
    for (int64_t epoch = 0;; ++epoch) {
      const double share = work.rows.empty() ? 1 : double(work.active.size()) / double(work.rows.size());
      shuffle(work.active, scramble(seed ^ scramble(b * 0x10001 + epoch)));
      result.visited += share;
      // A step of the logistic loss by less than this is left for later: its share of the gap is its square.
      const T rest = static_cast<T>(rule.by_gap ? 0.2 * std::sqrt(tol) : 0.5 * tol);
      const Sums sums = with_loss([&]<Binary loss>() {
        return block.pairs ? epoch_over<loss, true>(block, work, rest, interrupt)
                           : epoch_over<loss, false>(block, work, rest, interrupt);
      });
      ++result.epochs;
      // A pass sees each row before its step. What it leaves is less: by as much as this pass saw less than
      // the last one, or nearly so.
      const double left = sums.gap * (last > 0 ? std::max(most_trusted, sums.gap / last) : 1.0);
      last = sums.gap;
      if (share == 1) last_of_all = sums.gap;
      const bool quiet = rule.by_gap ? left <= tol * (sums.loss + sums.norm / 2) : sums.violation <= tol;
      const bool out_of_epochs = result.epochs >= rule.max_epochs || interrupt.requested();
      if ((quiet && share >= (rule.by_gap ? nearly_all : 1)) || out_of_epochs) {
        result.certificate =
            with_loss([&]<Binary loss>() { return certificate.template of_variables<loss>(); });
        result.done = met(rule, result.certificate);
        if (result.done || out_of_epochs) {
          if (keep_variables_) keep(b, work);
          store_weights(b, work);
          return result;
        }
        tol /= 2;
      }
      if (quiet || sums.gap <= wake * last_of_all)
        work.active = work.rows;
      else
        work.active.resize(sums.kept);
    }
  }

  template <Binary loss>
  BlockResult newton_block(int64_t b, const BlockRule& rule, Work& work, Interrupt& interrupt) {
    using Loss = BinaryLoss<loss>;
    const Block& block = problems_.blocks()[b];
    const BinaryCertificate<T> certificate(data_, block, work);
    const bool warm = start(b, work);
    if (!work.newton) work.newton.emplace(data_.rows, data_.C, work.rows);
    Newton<T>& newton = *work.newton;
    const auto signs = [&](vec<T> v, int64_t i) { return v * block.signs(data_.y[i]); };
    if (warm) certificate.template set_weights<loss>();
    std::copy_n(work.W.data(), work.W.size(), newton.weights());
    for (int32_t i : work.rows) {
      const vec<T> state = load(work.state.data() + int64_t(i) * width);
      newton.set_own_weight(i, warm ? signs(Loss::variable(state, data_.C[i]), i) : vec<T>{});
    }
    BlockResult result;
    auto at = newton.template start<loss>(signs);
    double tol = warm ? rule.tol : rule.tol / 2;
    for (result.epochs = 1;;) {
      bool active[width] = {};
      for (int64_t l = 0; l < block.many(); ++l)
        active[l] = rule.by_gap ? at.primal[l] - at.dual[l] > tol * at.primal[l] : at.steepest[l] > tol;
      const bool quiet = std::none_of(active, active + width, [](bool a) { return a; });
      const bool out_of_epochs = result.epochs >= rule.max_epochs ||
                                 (omp_get_thread_num() == 0 ? interrupt.poll() : interrupt.requested());
      if (quiet || out_of_epochs) {
        result.certificate = certificate.template of_weights<loss>();
        result.done = met(rule, result.certificate);
        if (result.done || out_of_epochs) break;
        tol /= 2;
        ++result.epochs;  // a certificate reads all rows, too; and where rounding hides the rest, passes end
        continue;
      }
      at = newton.template advance<loss>(at, active, result.epochs, signs);
    }
    result.visited = static_cast<double>(result.epochs);
    if (keep_variables_) keep(b, work);
    copy_to_model(b, newton.weights());
    for (int32_t i : work.rows)
      store_single_weights(i, b, [own = newton.own_weight(i)](int64_t l, T x) { return own[l] * x; });
    return result;
  }

  static bool met(const BlockRule& rule, const Certificate& c) {
    return rule.by_gap ? c.primal - c.dual <= rule.tol * std::abs(c.primal) : c.violation <= rule.tol;
  }

  // Sets rows, state and W of a block; whether there are variables to go on from, whose weights W has not
  // yet.
  bool start(int64_t b, Work& work) const {
    const Block& block = problems_.blocks()[b];
    if (block.pairs) {
      choose_rows(block, work);
    } else if (work.rows.empty()) {
      work.rows = filled_;
      work.features.resize(data_.rows.heads());
      std::iota(work.features.begin(), work.features.end(), 0);
    }
    for (int32_t f : work.features) std::fill_n(work.W.data() + int64_t(f) * width, width, T(0));
    with_loss([&]<Binary loss>() {
      const vec<T> nothing = vec<T>{} + static_cast<T>(BinaryLoss<loss>::start);
      for (int32_t i : work.rows) store(work.state.data() + int64_t(i) * width, nothing);
      alpha_[b].for_each([&](int32_t i, int lane, T a) {
        work.state[int64_t(i) * width + lane] = BinaryLoss<loss>::state(vec<T>{} + a, data_.C[i])[0];
      });
    });
    return !alpha_[b].row.empty();
  }

  void choose_rows(const Block& block, Work& work) const {
    const Layout<T>& rows = data_.rows;
    work.rows.clear();
    for (int32_t c : block.classes())
      work.rows.insert(work.rows.end(), members_[c].begin(), members_[c].end());
    std::sort(work.rows.begin(), work.rows.end());
    work.seen.assign(rows.heads(), false);
    for (int32_t i : work.rows)
      for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h) work.seen[rows.head_index[h]] = true;
    work.features.clear();
    for (int64_t f = 0; f < rows.heads(); ++f)
      if (work.seen[f]) work.features.push_back(static_cast<int32_t>(f));
  }

  void keep(int64_t b, const Work& work) {
    const Block& block = problems_.blocks()[b];
    const uint32_t real = (1u << block.many()) - 1;  // lanes that are problems
    alignas(64) T a[width];
    const auto lanes_of = [&](int64_t i) {
      const vec<T> state = load(work.state.data() + i * width);
      const vec<T> value =
          with_loss([&]<Binary loss>() { return BinaryLoss<loss>::variable(state, data_.C[i]); });
      store(a, value);
      return nonzero_lanes<T>(value * block.signs(data_.y[i])) & real;
    };
    size_t with_any = 0, values = 0;
    for (int32_t i : work.rows) {
      const uint32_t lanes = lanes_of(i);
      with_any += lanes != 0;
      values += __builtin_popcount(lanes);
    }
    BlockVariables<T> kept;
    kept.row.reserve(with_any);
    kept.lanes.reserve(with_any);
    kept.values.reserve(values);
    for (int32_t i : work.rows) {
      const uint32_t lanes = lanes_of(i);
      if (lanes == 0) continue;
      kept.row.push_back(i);
      kept.lanes.push_back(static_cast<uint16_t>(lanes));
      for (uint32_t left = lanes; left != 0; left &= left - 1) kept.values.push_back(a[__builtin_ctz(left)]);
    }
    alpha_[b] = std::move(kept);
  }

  // The weights of the dual variables, rounded, as the last certificate has left them, where the model is
  // dense in any case.
  void store_weights(int64_t b, Work& work) {
    if (!has_dense_model()) return;
    copy_to_model(b, work.W.data());
    const BinaryCertificate<T> certificate(data_, problems_.blocks()[b], work);
    with_loss([&]<Binary loss>() {
      for (int32_t i : work.rows) {
        if (data_.rows.single_ptr[i] == data_.rows.single_ptr[i + 1]) continue;
        const Wide<T> coef = certificate.template single_coefficients<loss>(i);
        store_single_weights(i, b, [&](int64_t l, T x) { return coef[l] * x; });
      }
    });
  }

  void copy_to_model(int64_t b, const T* W) {
    const int64_t many = problems_.blocks()[b].many();
    for (int64_t f = 0; f < data_.rows.heads(); ++f)
      std::copy_n(W + f * width, many, model_.at(data_.rows.head_features[f], b));
  }

  // f(lane, value of the feature): the weight of a feature of row i alone
  template <class F>
  void store_single_weights(int64_t i, int64_t b, F f) {
    const Layout<T>& rows = data_.rows;
    const int64_t many = problems_.blocks()[b].many();
    for (int64_t j = rows.single_ptr[i]; j < rows.single_ptr[i + 1]; ++j) {
      T* weights = model_.at(rows.single_index[j], b);
      for (int64_t l = 0; l < many; ++l) weights[l] = static_cast<T>(f(l, rows.single_value[j]));
    }
  }

  // f<loss>()
  template <class F>
  decltype(auto) with_loss(F f) const {
    switch (loss_) {
      case Binary::hinge:
        return f.template operator()<Binary::hinge>();
      case Binary::squared_hinge:
        return f.template operator()<Binary::squared_hinge>();
      default:
        return f.template operator()<Binary::logistic>();
    }
  }

  template <class F>
  decltype(auto) with_smooth_loss(F f) const {
    if (loss_ == Binary::squared_hinge) return f.template operator()<Binary::squared_hinge>();
    return f.template operator()<Binary::logistic>();
  }

  static double lane_sum(vec<T> v, int64_t lanes) {
    double sum = 0;
    for (int64_t l = 0; l < lanes; ++l) sum += v[l];
    return sum;
  }

  template <Binary loss, bool pairs>
  Sums epoch_over(const Block& block, Work& work, T rest, Interrupt& interrupt) {
    using Loss = BinaryLoss<loss>;
    const Layout<T>& rows = data_.rows;
    const KeptWeights& kept = data_.kept;
    T* W = work.W.data();
    int32_t* active = work.active.data();
    const int64_t count = static_cast<int64_t>(work.active.size());
    Sums sums;
    vec<T> losses = {}, gaps = {}, norms = {}, worst = {};
    const vec<T> zero = {};
    for (int64_t r = 0; r < count; ++r) {
      if (r % 1024 == 0 && (omp_get_thread_num() == 0 ? interrupt.poll() : interrupt.requested())) break;
      const int64_t i = active[r];
      const T C = data_.C[i];
      if (r + 2 < count) prefetch(active[r + 2], work);
      const int64_t b = rows.head_ptr[i], e = rows.head_ptr[i + 1];
      vec<T> s = {};
      for (int64_t h = b; h < e; ++h) s += rows.head_value[h] * load(W + int64_t(rows.head_index[h]) * width);
      const vec<T> state = load(work.state.data() + i * width), a = Loss::variable(state, C);
      const vec<T> t = block.template signs<pairs>(data_.y[i]);
      const vec<T> m = s * t + rows.tail_norm[i] * (kept.all() ? a : block.own_lane(data_.y[i], a));
      auto seen = Loss::measure(state, m, C);
      vec<T> next = Loss::best(state, m, rows.norm[i], C);
      if constexpr (!Loss::sparse) next = larger<T>(next - state, state - next) > rest ? next : state;
      vec<T> product = a * m;
      if constexpr (pairs) {
        const vec<T> part = t * t;
        seen = {part * seen.loss, part * seen.gain, part * seen.violation};
        product *= part;
        next = part > zero ? next : state;
      }
      losses += seen.loss;
      gaps += seen.loss - seen.gain + product;
      norms += product;
      worst = larger<T>(worst, seen.violation);
      if (!any_nonzero<T>(next - state)) continue;
      active[sums.kept++] = static_cast<int32_t>(i);
      store(work.state.data() + i * width, next);
      const vec<T> change = t * (Loss::variable(next, C) - a);
      if (!kept.all()) {
        for (int64_t h = b; h < e; ++h) {
          T* w = W + int64_t(rows.head_index[h]) * width;
          store(w, load(w) +
                       kept.where_kept<T>(rows.head_index[h], block.problem[0], rows.head_value[h] * change));
        }
        continue;
      }
      for (int64_t h = b; h < e; ++h) {
        T* w = W + int64_t(rows.head_index[h]) * width;
        store(w, load(w) + rows.head_value[h] * change);
      }
    }
    sums.loss = lane_sum(losses, block.many());
    sums.gap = lane_sum(gaps, block.many());
    sums.norm = lane_sum(norms, block.many());
    for (int64_t l = 0; l < block.many(); ++l) sums.violation = std::max<double>(sums.violation, worst[l]);
    return sums;
  }

  void prefetch(int64_t i, const Work& work) const {
    __builtin_prefetch(work.state.data() + i * width);
    for (int64_t h = data_.rows.head_ptr[i]; h < data_.rows.head_ptr[i + 1]; ++h)
      __builtin_prefetch(work.W.data() + int64_t(data_.rows.head_index[h]) * width);
  }

  std::shared_ptr<BinaryData<T>> shared_;
  BinaryData<T>& data_ = *shared_;
  BinaryProblems<T> problems_;
  Binary loss_;
  bool newton_, dense_, keep_variables_;
  std::vector<int32_t> filled_;                // the rows that have features
  std::vector<std::vector<int32_t>> members_;  // one-vs-one: these by class
  std::vector<BlockVariables<T>> alpha_;       // by block
  std::vector<bool> held_;                     // by block
  ModelColumns<T> model_;                      // where it is dense
  std::vector<Work> work_;                     // by thread
};

}  // namespace manyclass
