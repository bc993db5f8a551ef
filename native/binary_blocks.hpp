// Many binary problems on the same rows, a vector of them at a time: each block of neighbouring problems
// alone over its rows. One row, all problems of the block at once, is a step of coordinate ascent on the
// duals of binary_loss.hpp.
//
//   one-vs-rest   problem c: the rows of class c against all others; a block is a vector of classes
//   one-vs-one    problem (a, b), a < b: the rows of class a against those of class b, all pairs of a in a
//   row; a
//                 block is a class a and a vector of classes b. A row of class a takes part in all of them, a
//                 row of class b in one.
//
// A row rests for a block after a visit that changed none of its variables (to speak of, where the loss has
// no bounds to rest at); before a block is done all rows are visited again, and its certificate covers every
// variable in float64.
//
// The smooth losses can also be trained by Newton's method on the primal (newton.hpp), one-vs-rest. Their
// certificate is the gap to the dual variables that the margins ask for, and the largest part of the
// gradient.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "binary_loss.hpp"
#include "certificate.hpp"
#include "feature_weights.hpp"
#include "interrupt.hpp"
#include "kept_weights.hpp"
#include "layout.hpp"
#include "newton.hpp"
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
};

template <class T>
class BinaryBlocks {
 public:
  static constexpr int width = Lanes<T>::count;
  static_assert(width <= 16);

  // `keep_variables`: also of a loss whose variables are all in use and that could do without.
  BinaryBlocks(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
               int64_t features, Binary loss, bool pairs, bool newton, bool reduced, bool keep_variables)
      : rows_(std::move(layout)),
        y_(std::move(labels)),
        C_(std::move(C)),
        K_(classes),
        loss_(loss),
        pairs_(pairs),
        newton_(newton),
        dense_(!pairs && (loss == Binary::logistic || newton ||
                          features * classes * static_cast<int64_t>(sizeof(T)) <= small_model)),
        keep_variables_(keep_variables || !dense_),
        members_(classes),
        empty_C_(classes, 0.0) {
    if (newton && (pairs || loss == Binary::hinge))
      throw std::logic_error("Newton's method is not for this loss");
    if (reduced && (pairs || newton))
      throw std::logic_error("feature reduction is for one-vs-rest, by the dual");
    if (reduced) kept_ = KeptWeights(rows_, y_, K_);
    if (rows_.tails() != 0) throw std::logic_error("this solver wants every shared feature in the head");
    for (int64_t i = 0; i < rows_.n; ++i) {
      if (rows_.norm[i] == 0) {
        empty_C_[y_[i]] += C_[i];
        continue;
      }
      filled_.push_back(static_cast<int32_t>(i));
      if (pairs) members_[y_[i]].push_back(static_cast<int32_t>(i));
    }
    for (int64_t c = 0; c < K_; ++c) {
      first_problem_.push_back(pairs ? c * (2 * K_ - c - 1) / 2 : c);
      if (pairs)
        for (int64_t b = c + 1; b < K_; b += width)
          blocks_.push_back({b, std::min<int64_t>(width, K_ - b), first_problem_[c] + b - c - 1, c});
      else if (c % width == 0)
        blocks_.push_back({c, std::min<int64_t>(width, K_ - c), c, -1});
    }
    first_problem_.push_back(pairs ? K_ * (K_ - 1) / 2 : K_);
    alpha_.resize(blocks_.size());
    if (has_dense_model()) model_.reset(features * problems());
  }
  BinaryBlocks(const BinaryBlocks&) = delete;

  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t problems() const { return first_problem_.back(); }
  // The problems of a block: [first, first + many)
  std::pair<int64_t, int64_t> problems_of(int64_t b) const { return {blocks_[b].problem, blocks_[b].many}; }

  // Trains the blocks [first, last), going on from the dual variables they have. After an interrupt the
  // blocks under way end as they are, and those not begun have no epochs.
  std::vector<BlockResult> train(int64_t first, int64_t last, const BlockRule& rule, uint64_t seed,
                                 int threads, Interrupt& interrupt) {
    std::vector<BlockResult> results(last - first);
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, last - first)));
    std::atomic<int64_t> next{first};
    std::atomic<int> working{threads};
    while (static_cast<int>(work_.size()) < threads) work_.emplace_back(*this);
    Team team(threads);
    team.run([&](int me) {
      for (int64_t b; (b = next.fetch_add(1)) < last && !interrupt.requested();)
        results[b - first] = newton_ ? with_smooth_loss([&]<Binary loss>() {
          return newton_block<loss>(b, rule, work_[me], interrupt);
        })
                                     : train_block(b, rule, seed, work_[me], interrupt);
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

  // The dual variables by rows, and as coefficients of the weights: t_i a_i.
  struct ByRows {
    std::vector<int64_t> ptr;
    std::vector<int32_t> problem;  // ascending within a row
    std::vector<T> values;
    const std::vector<int32_t>& labels;
    const std::vector<int64_t>& first_problem;

    bool is_reduced;

    static constexpr bool centred() { return false; }
    bool reduced() const { return is_reduced; }
    int32_t label(int64_t i) const { return labels[i]; }
    int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
    template <class F>
    void for_each(int64_t i, F f) const {
      const int64_t from = first_problem[labels[i]], to = first_problem[labels[i] + 1];
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
        const double a = values[e];
        f(problem[e], problem[e] >= from && problem[e] < to ? a : -a);
      }
    }
  };

  // `release`: the variables are not needed here any more.
  ByRows by_rows(bool release = false) {
    ByRows out{std::vector<int64_t>(rows_.n + 1, 0), {}, {}, y_, first_problem_, !kept_.all()};
    for (const auto& block : alpha_)
      for (size_t r = 0; r < block.row.size(); ++r)
        out.ptr[block.row[r] + 1] += __builtin_popcount(block.lanes[r]);
    for (int64_t i = 0; i < rows_.n; ++i) out.ptr[i + 1] += out.ptr[i];
    out.problem.resize(out.ptr[rows_.n]);
    out.values.resize(out.ptr[rows_.n]);
    std::vector<int64_t> next(out.ptr.begin(), out.ptr.end() - 1);
    for (int64_t b = 0; b < blocks(); ++b) {
      alpha_[b].for_each([&](int32_t i, int lane, T a) {
        out.problem[next[i]] = static_cast<int32_t>(blocks_[b].problem + lane);
        out.values[next[i]++] = a;
      });
      if (release) alpha_[b] = {};
    }
    return out;
  }

  // As `by_rows` gives them.
  void set_alpha(const int64_t* ptr, const int32_t* problem, const T* values) {
    std::vector<int32_t> block_of(problems());
    for (int64_t b = 0; b < blocks(); ++b)
      for (int64_t l = 0; l < blocks_[b].many; ++l)
        block_of[blocks_[b].problem + l] = static_cast<int32_t>(b);
    for (auto& block : alpha_) block = {};
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
        const int32_t b = block_of[problem[e]];
        Variables& block = alpha_[b];
        if (block.row.empty() || block.row.back() != i) {
          block.row.push_back(static_cast<int32_t>(i));
          block.lanes.push_back(0);
        }
        block.lanes.back() |= static_cast<uint16_t>(1u << (problem[e] - blocks_[b].problem));
        block.values.push_back(values[e]);
      }
  }

  // Training is over: makes room for the model.
  void release() {
    work_.clear();
    rows_ = {};
  }

  // features x problems: where all weights are in use, or few enough.
  bool has_dense_model() const { return dense_; }
  Buffer<T> take_dense_model() { return std::move(model_); }

  int64_t dual_bytes() const {
    int64_t total = 0;
    for (const auto& a : alpha_)
      total += static_cast<int64_t>(a.row.capacity() * sizeof(int32_t) +
                                    a.lanes.capacity() * sizeof(uint16_t) + a.values.capacity() * sizeof(T));
    return total;
  }
  const Layout<T>& rows() const { return rows_; }

 private:
  struct Block {
    int64_t first, many;  // the classes of its lanes: [first, first + many)
    int64_t problem;      // of the first lane
    int64_t against;  // one-vs-one: the class that all lanes are trained against, their positive one; else -1
  };

  // The variables of a block that are not 0: for each row that has any, which lanes and their values.
  struct Variables {
    std::vector<int32_t> row;
    std::vector<uint16_t> lanes;
    std::vector<T> values;

    // f(row, lane, value)
    template <class F>
    void for_each(F f) const {
      const T* value = values.data();
      for (size_t r = 0; r < row.size(); ++r)
        for (uint32_t left = lanes[r]; left != 0; left &= left - 1) f(row[r], __builtin_ctz(left), *value++);
    }
  };

  // One block at a time, one of these a thread.
  struct Work {
    explicit Work(const BinaryBlocks& s)
        : W(s.rows_.heads() * width), state(s.rows_.n * width), exact(s.rows_.heads() * width) {}
    Buffer<T> W, state;             // state: see binary_loss.hpp
    Buffer<double> exact;           // W as the certificate makes it
    std::vector<int32_t> rows;      // of the block, those that have features
    std::vector<int32_t> features;  // of these rows, in the head
    std::vector<char> seen;         // one-vs-one: whether a feature of the head is among them
    std::vector<int32_t> active;
    std::optional<Newton<T>> newton;
  };

  struct Sums {
    double loss = 0, gap = 0, norm = 0, violation = 0;
    int64_t kept = 0;
  };

  // v times t: +1 where the row is on the positive side, -1 on the negative one, 0 where it takes no part.
  template <class V>
  V with_signs(V v, int64_t i, const Block& block) const {
    const int64_t lane = y_[i] - block.first;
    const bool listed = lane >= 0 && lane < block.many;
    if (block.against < 0) {
      v = -v;
      if (listed) v[lane] = -v[lane];
      return v;
    }
    if (y_[i] == block.against) return v;
    V out = {};
    if (listed) out[lane] = -v[lane];
    return out;
  }
  Wide<T> with_signs(Wide<T> v, int64_t i, const Block& block) const {
    const int64_t lane = y_[i] - block.first;
    const bool listed = lane >= 0 && lane < block.many;
    if (block.against >= 0 && y_[i] == block.against) return v;
    if (block.against >= 0) {
      Wide<T> out;
      if (listed) out[lane] = -v[lane];
      return out;
    }
    for (auto& part : v.part) part = -part;
    if (listed) v[lane] = -v[lane];
    return v;
  }

  // v where the lane is the row's own class, else 0.
  template <class V>
  V own_lane(int64_t i, const Block& block, const V& v) const {
    const int64_t lane = y_[i] - block.first;
    V out = {};
    if (lane >= 0 && lane < block.many) out[lane] = v[lane];
    return out;
  }

  // The only lane that the row takes part in, or -1 for all.
  int64_t only_lane(int64_t i, const Block& block) const {
    return block.against >= 0 && y_[i] != block.against ? y_[i] - block.first : -1;
  }

  // In float64 and from the dual variables alone. The weights of the block become those of the dual
  // variables, rounded as the model will store them.
  template <Binary loss>
  Certificate certify(const Block& block, Work& work) const {
    using Loss = BinaryLoss<loss>;
    constexpr int L = Wide<T>::L, parts = Wide<T>::parts;
    Wide<T> exact, rounded, losses, gains, worst;
    // t_i a_i
    const auto coefficients = [&](int64_t i) {
      Wide<T> a(work.state.data() + i * width);
      for (auto& part : a.part) part = Loss::variable(part, double(C_[i]));
      return with_signs(a, i, block);
    };
    // of the weights of features that only row i has
    const auto of_singles = [&](int64_t i, const Wide<T>& coef) {
      return kept_.all() ? coef : own_lane(i, block, coef);
    };
    // a weight of a feature that only row i has, rounded
    const auto single_weight = [&](vec<double> coef, double x) {
      alignas(64) T stored[L];
      store_as<double>(stored, coef * x);
      return load_as<double>(stored);
    };

    for (int32_t f : work.features) std::fill_n(work.exact.data() + int64_t(f) * width, width, 0.0);
    for (int32_t i : work.rows) {
      if (Loss::sparse && !any_nonzero(load(work.state.data() + int64_t(i) * width))) continue;
      const Wide<T> coef = coefficients(i);
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        double* w = work.exact.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v)
          store(w + v * L, load(w + v * L) + double(rows_.head_value[h]) * coef.part[v]);
      }
      const Wide<T> single = of_singles(i, coef);
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int v = 0; v < parts; ++v) {
          const vec<double> w = single.part[v] * double(rows_.single_value[j]);
          const vec<double> stored = single_weight(single.part[v], rows_.single_value[j]);
          exact.part[v] += w * w;
          rounded.part[v] += stored * stored;
        }
    }
    for (int32_t f : work.features)
      for (int v = 0; v < parts; ++v) {
        const int64_t at = int64_t(f) * width + v * L;
        vec<double> w = load(work.exact.data() + at);
        if (!kept_.all()) w = kept_.where_kept<double>(f, block.first + v * L, w);
        store_as<double>(work.W.data() + at, w);
        const vec<double> stored = load_as<double>(work.W.data() + at);
        exact.part[v] += w * w;
        rounded.part[v] += stored * stored;
      }
    for (int32_t i : work.rows) {
      Wide<T> s;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        const T* w = work.W.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v) s.part[v] += double(rows_.head_value[h]) * load_as<double>(w + v * L);
      }
      if (rows_.single_ptr[i] != rows_.single_ptr[i + 1]) {
        const Wide<T> coef = of_singles(i, coefficients(i));
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          for (int v = 0; v < parts; ++v)
            s.part[v] += double(rows_.single_value[j]) * single_weight(coef.part[v], rows_.single_value[j]);
      }
      const Wide<T> state(work.state.data() + int64_t(i) * width), m = with_signs(s, i, block);
      const int64_t only = only_lane(i, block);
      for (int v = 0; v < parts; ++v) {
        const auto seen = Loss::measure(state.part[v], m.part[v], double(C_[i]));
        if (only >= 0) {
          if (only / L != v) continue;
          losses[only] += seen.loss[only % L];
          gains[only] += seen.gain[only % L];
          worst[only] = std::max(worst[only], seen.violation[only % L]);
          continue;
        }
        losses.part[v] += seen.loss;
        gains.part[v] += seen.gain;
        worst.part[v] = larger<double>(worst.part[v], seen.violation);
      }
    }
    const double empty = empty_loss<loss>(block);
    const int64_t many = block.many;
    return {rounded.sum(many) / 2 + losses.sum(many) + empty, gains.sum(many) - exact.sum(many) / 2 + empty,
            worst.largest(many)};
  }

  static uint64_t scramble(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  static void shuffle(std::vector<int32_t>& v, uint64_t state) {
    for (size_t j = v.size(); j > 1; --j) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      std::swap(v[j - 1], v[(static_cast<unsigned __int128>(state) * j) >> 64]);
    }
  }

  BlockResult train_block(int64_t b, const BlockRule& rule, uint64_t seed, Work& work, Interrupt& interrupt) {
    const Block& block = blocks_[b];
    const auto certificate = [&] {
      return with_loss([&]<Binary loss>() { return certify<loss>(block, work); });
    };
    BlockResult result;
    if (start(b, work)) {
      result.certificate = certificate();
      result.done = met(rule, result.certificate);
      if (result.done) {
        store_weights(block, work);
        return result;
      }
    }
    work.active = work.rows;
    double tol = rule.tol;
    for (int64_t epoch = 0;; ++epoch) {
      const bool all = work.active.size() == work.rows.size();
      shuffle(work.active, scramble(seed ^ scramble(b * 0x10001 + epoch)));
      result.visited += work.rows.empty() ? 0 : double(work.active.size()) / double(work.rows.size());
      // A step of the logistic loss by less than this is left for later: its share of the gap is its square.
      const T rest = static_cast<T>(rule.by_gap ? 0.2 * std::sqrt(tol) : 0.5 * tol);
      const Sums sums =
          with_loss([&]<Binary loss>() { return epoch_over<loss>(block, work, rest, interrupt); });
      ++result.epochs;
      const bool quiet = rule.by_gap ? sums.gap <= tol * (sums.loss + sums.norm / 2) : sums.violation <= tol;
      const bool out_of_epochs = result.epochs >= rule.max_epochs || interrupt.requested();
      if ((quiet && all) || out_of_epochs) {
        result.certificate = certificate();
        result.done = met(rule, result.certificate);
        if (result.done || out_of_epochs) {
          if (keep_variables_) keep(b, work);
          store_weights(block, work);
          return result;
        }
        tol /= 2;
      }
      if (quiet)
        work.active = work.rows;
      else
        work.active.resize(sums.kept);
    }
  }

  template <Binary loss>
  BlockResult newton_block(int64_t b, const BlockRule& rule, Work& work, Interrupt& interrupt) {
    using Loss = BinaryLoss<loss>;
    const Block& block = blocks_[b];
    const bool warm = start(b, work);
    if (!work.newton) work.newton.emplace(rows_, C_, work.rows);
    Newton<T>& newton = *work.newton;
    const auto signs = [&](vec<T> v, int64_t i) { return with_signs(v, i, block); };
    if (warm) certify<loss>(block, work);  // sets W
    std::copy_n(work.W.data(), work.W.size(), newton.weights());
    for (int32_t i : work.rows)
      newton.set_own_weight(
          i, warm ? signs(Loss::variable(load(work.state.data() + int64_t(i) * width), C_[i]), i) : vec<T>{});
    BlockResult result;
    auto at = newton.template start<loss>(signs);
    double tol = warm ? rule.tol : rule.tol / 2;
    for (result.epochs = 1;;) {
      bool active[width] = {};
      for (int64_t l = 0; l < block.many; ++l)
        active[l] = rule.by_gap ? at.primal[l] - at.dual[l] > tol * at.primal[l] : at.steepest[l] > tol;
      const bool quiet = std::none_of(active, active + width, [](bool a) { return a; });
      const bool out_of_epochs = result.epochs >= rule.max_epochs ||
                                 (omp_get_thread_num() == 0 ? interrupt.poll() : interrupt.requested());
      if (quiet || out_of_epochs) {
        result.certificate = certify_weights<loss>(block, work);
        result.done = met(rule, result.certificate);
        if (result.done || out_of_epochs) break;
        tol /= 2;
        ++result.epochs;  // a certificate reads all rows, too; and where rounding hides the rest, passes must
                          // end
        continue;
      }
      at = newton.template advance<loss>(at, active, result.epochs, signs);
    }
    result.visited = static_cast<double>(result.epochs);
    if (keep_variables_) keep(b, work);
    for (int64_t f = 0; f < rows_.heads(); ++f)
      std::copy_n(newton.weights() + f * width, block.many,
                  model_.data() + rows_.head_features[f] * problems() + block.problem);
    for (int32_t i : work.rows)
      store_single_weights(i, block, [own = newton.own_weight(i)](int64_t l, T x) { return own[l] * x; });
    return result;
  }

  // Of the weights that Newton's method has. The state becomes what their margins ask for.
  template <Binary loss>
  Certificate certify_weights(const Block& block, Work& work) const {
    using Loss = BinaryLoss<loss>;
    constexpr int L = Wide<T>::L, parts = Wide<T>::parts;
    Newton<T>& newton = *work.newton;
    Wide<T> norm, dual_norm, losses, gains, steepest;
    const auto see = [&](int v, vec<double> w, vec<double> of_dual) {
      norm.part[v] += w * w;
      dual_norm.part[v] += of_dual * of_dual;
      steepest.part[v] = larger<double>(steepest.part[v], larger<double>(w - of_dual, of_dual - w));
    };
    for (int32_t f : work.features) std::fill_n(work.exact.data() + int64_t(f) * width, width, 0.0);
    for (int32_t i : work.rows) {
      Wide<T> s;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        const T* w = newton.weights() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v) s.part[v] += double(rows_.head_value[h]) * load_as<double>(w + v * L);
      }
      const vec<T> own = newton.own_weight(i);
      alignas(64) T stored[width];
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
        store(stored, own * rows_.single_value[j]);
        for (int v = 0; v < parts; ++v)
          s.part[v] += double(rows_.single_value[j]) * load_as<double>(stored + v * L);
      }
      Wide<T> m = with_signs(s, i, block), a;
      for (int v = 0; v < parts; ++v) {
        const vec<double> state = Loss::at_margin(m.part[v], double(C_[i]));
        const auto seen = Loss::measure(state, m.part[v], double(C_[i]));
        store_as<double>(work.state.data() + int64_t(i) * width + v * L, state);
        losses.part[v] += seen.loss;
        gains.part[v] += seen.gain;
        a.part[v] = Loss::variable(state, double(C_[i]));
      }
      a = with_signs(a, i, block);
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        double* w = work.exact.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v)
          store(w + v * L, load(w + v * L) + double(rows_.head_value[h]) * a.part[v]);
      }
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
        store(stored, own * rows_.single_value[j]);
        for (int v = 0; v < parts; ++v)
          see(v, load_as<double>(stored + v * L), double(rows_.single_value[j]) * a.part[v]);
      }
    }
    for (int32_t f : work.features)
      for (int v = 0; v < parts; ++v) {
        const int64_t at = int64_t(f) * width + v * L;
        see(v, load_as<double>(newton.weights() + at), load(work.exact.data() + at));
      }
    const double empty = empty_loss<loss>(block);
    const int64_t many = block.many;
    return {norm.sum(many) / 2 + losses.sum(many) + empty, gains.sum(many) - dual_norm.sum(many) / 2 + empty,
            steepest.largest(many)};
  }

  // A row without features has margin 0 whatever the weights: its loss is what its dual value can reach.
  template <Binary loss>
  double empty_loss(const Block& block) const {
    double empty = 0;
    for (int64_t c = 0; c < K_; ++c) {
      if (block.against < 0 || c == block.against)
        empty += double(block.many) * empty_C_[c];
      else if (c >= block.first && c < block.first + block.many)
        empty += empty_C_[c];
    }
    return loss == Binary::logistic ? empty * std::log(2.0) : empty;
  }

  static bool met(const BlockRule& rule, const Certificate& c) {
    return rule.by_gap ? c.primal - c.dual <= rule.tol * std::abs(c.primal) : c.violation <= rule.tol;
  }

  // Sets rows, state and W of a block; whether there is anything to go on from, for which W comes with the
  // certificate.
  bool start(int64_t b, Work& work) const {
    const Block& block = blocks_[b];
    if (block.against < 0) {
      if (work.rows.empty()) {
        work.rows = filled_;
        work.features.resize(rows_.heads());
        std::iota(work.features.begin(), work.features.end(), 0);
      }
    } else {
      work.rows = members_[block.against];
      for (int64_t c = block.first; c < block.first + block.many; ++c)
        work.rows.insert(work.rows.end(), members_[c].begin(), members_[c].end());
      std::sort(work.rows.begin(), work.rows.end());
      work.seen.assign(rows_.heads(), false);
      for (int32_t i : work.rows)
        for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
          work.seen[rows_.head_index[h]] = true;
      work.features.clear();
      for (int64_t f = 0; f < rows_.heads(); ++f)
        if (work.seen[f]) work.features.push_back(static_cast<int32_t>(f));
    }
    for (int32_t f : work.features) std::fill_n(work.W.data() + int64_t(f) * width, width, T(0));
    with_loss([&]<Binary loss>() {
      const vec<T> nothing = vec<T>{} + static_cast<T>(BinaryLoss<loss>::start);
      for (int32_t i : work.rows) store(work.state.data() + int64_t(i) * width, nothing);
      alpha_[b].for_each([&](int32_t i, int lane, T a) {
        work.state[int64_t(i) * width + lane] = BinaryLoss<loss>::state(vec<T>{} + a, C_[i])[0];
      });
    });
    return !alpha_[b].row.empty();
  }

  void keep(int64_t b, const Work& work) {
    const Block& block = blocks_[b];
    const uint32_t real = (1u << block.many) - 1;  // lanes that are problems
    alignas(64) T a[width];
    const auto lanes_of = [&](int64_t i) {
      const vec<T> state = load(work.state.data() + i * width);
      store(a, with_loss([&]<Binary loss>() { return BinaryLoss<loss>::variable(state, C_[i]); }));
      const int64_t only = only_lane(i, block);
      return nonzero_lanes(a) & (only >= 0 ? 1u << only : real);
    };
    size_t with_any = 0, values = 0;
    for (int32_t i : work.rows) {
      const uint32_t lanes = lanes_of(i);
      with_any += lanes != 0;
      values += __builtin_popcount(lanes);
    }
    Variables kept;
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
  void store_weights(const Block& block, const Work& work) {
    if (!has_dense_model()) return;
    for (int64_t f = 0; f < rows_.heads(); ++f)
      std::copy_n(work.W.data() + f * width, block.many,
                  model_.data() + rows_.head_features[f] * problems() + block.problem);
    for (int32_t i : work.rows) {
      if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
      Wide<T> a(work.state.data() + int64_t(i) * width);
      for (auto& part : a.part)
        part = with_loss([&]<Binary loss>() { return BinaryLoss<loss>::variable(part, double(C_[i])); });
      const Wide<T> coef = with_signs(a, i, block);
      store_single_weights(i, block, [coef = kept_.all() ? coef : own_lane(i, block, coef)](int64_t l, T x) {
        return coef[l] * x;
      });
    }
  }

  // f(lane, value of the feature): the weight of a feature of row i alone
  template <class F>
  void store_single_weights(int64_t i, const Block& block, F f) {
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      for (int64_t l = 0; l < block.many; ++l)
        model_[rows_.single_index[j] * problems() + block.problem + l] =
            static_cast<T>(f(l, rows_.single_value[j]));
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

  static uint32_t nonzero_lanes(const T* p) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return _mm512_cmp_ps_mask(_mm512_load_ps(p), _mm512_setzero_ps(), _CMP_NEQ_UQ);
#endif
    uint32_t lanes = 0;
    for (int l = 0; l < width; ++l) lanes |= static_cast<uint32_t>(p[l] != 0) << l;
    return lanes;
  }

  static bool any_nonzero(vec<T> v) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0;
#endif
    bool any = false;
    for (int l = 0; l < width; ++l) any |= v[l] != T(0);
    return any;
  }

  static double lane_sum(vec<T> v, int64_t lanes) {
    double sum = 0;
    for (int64_t l = 0; l < lanes; ++l) sum += v[l];
    return sum;
  }

  template <Binary loss>
  Sums epoch_over(const Block& block, Work& work, T rest, Interrupt& interrupt) {
    using Loss = BinaryLoss<loss>;
    T* W = work.W.data();
    int32_t* active = work.active.data();
    const int64_t count = static_cast<int64_t>(work.active.size());
    Sums sums;
    vec<T> losses = {}, gaps = {}, norms = {}, worst = {};
    for (int64_t r = 0; r < count; ++r) {
      if (r % 1024 == 0 && (omp_get_thread_num() == 0 ? interrupt.poll() : interrupt.requested())) break;
      const int64_t i = active[r];
      if (r + 2 < count) prefetch(active[r + 2], work);
      const int64_t b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
      vec<T> s = {};
      for (int64_t h = b; h < e; ++h)
        s += rows_.head_value[h] * load(W + int64_t(rows_.head_index[h]) * width);
      const vec<T> state = load(work.state.data() + i * width), a = Loss::variable(state, C_[i]);
      const vec<T> m =
          with_signs(s, i, block) + rows_.tail_norm[i] * (kept_.all() ? a : own_lane(i, block, a));
      const auto seen = Loss::measure(state, m, C_[i]);
      vec<T> next = Loss::best(state, m, rows_.norm[i], C_[i]);
      if constexpr (!Loss::sparse) next = larger<T>(next - state, state - next) > rest ? next : state;
      const int64_t only = only_lane(i, block);
      if (only < 0) {
        losses += seen.loss;
        gaps += seen.loss - seen.gain + a * m;
        norms += a * m;
        worst = larger<T>(worst, seen.violation);
      } else {
        losses[only] += seen.loss[only];
        gaps[only] += seen.loss[only] - seen.gain[only] + a[only] * m[only];
        norms[only] += a[only] * m[only];
        worst[only] = std::max(worst[only], seen.violation[only]);
        vec<T> alone = state;
        alone[only] = next[only];
        next = alone;
      }
      if (!any_nonzero(next - state)) continue;
      active[sums.kept++] = static_cast<int32_t>(i);
      store(work.state.data() + i * width, next);
      const vec<T> change = with_signs(Loss::variable(next, C_[i]) - a, i, block);
      if (!kept_.all()) {
        for (int64_t h = b; h < e; ++h) {
          T* w = W + int64_t(rows_.head_index[h]) * width;
          store(w, load(w) +
                       kept_.where_kept<T>(rows_.head_index[h], block.first, rows_.head_value[h] * change));
        }
        continue;
      }
      for (int64_t h = b; h < e; ++h) {
        T* w = W + int64_t(rows_.head_index[h]) * width;
        store(w, load(w) + rows_.head_value[h] * change);
      }
    }
    sums.loss = lane_sum(losses, block.many);
    sums.gap = lane_sum(gaps, block.many);
    sums.norm = lane_sum(norms, block.many);
    for (int64_t l = 0; l < block.many; ++l) sums.violation = std::max<double>(sums.violation, worst[l]);
    return sums;
  }

  void prefetch(int64_t i, const Work& work) const {
    __builtin_prefetch(work.state.data() + i * width);
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
      __builtin_prefetch(work.W.data() + int64_t(rows_.head_index[h]) * width);
  }

  Layout<T> rows_;
  std::vector<int32_t> y_;
  std::vector<T> C_;
  int64_t K_;
  Binary loss_;
  bool pairs_, newton_, dense_, keep_variables_;
  std::vector<int32_t> filled_;                // the rows that have features
  std::vector<std::vector<int32_t>> members_;  // one-vs-one: these by class
  std::vector<double> empty_C_;                // sum of C_i over the other rows, by class
  KeptWeights kept_;
  std::vector<Block> blocks_;
  std::vector<int64_t>
      first_problem_;             // a row is on the positive side of the problems that begin at its class
  std::vector<Variables> alpha_;  // by block
  Buffer<T> model_;               // features x problems
  std::vector<Work> work_;        // by thread
};

}  // namespace manyclass
