// Many binary problems on the same rows, a vector of them at a time: each block of neighbouring problems alone
// over its rows. One row, all problems of the block at once, is a step of coordinate ascent on the duals of
// binary_loss.hpp.
//
//   one-vs-rest   problem c: the rows of class c against all others; a block is a vector of classes
//   one-vs-one    problem (a, b), a < b: the rows of class a against those of class b, all pairs of a in a row; a
//                 block is a class a and a vector of classes b. A row of class a takes part in all of them, a row
//                 of class b in one.
//
// A row rests for a block after a visit that changed none of its variables (to speak of, where the loss has no
// bounds to rest at); before a block is done all rows are visited again, and its certificate covers every
// variable in float64.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "binary_loss.hpp"
#include "certificate.hpp"
#include "interrupt.hpp"
#include "layout.hpp"
#include "team.hpp"
#include "vector.hpp"

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
  BinaryBlocks(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes, int64_t features,
               Binary loss, bool pairs, bool keep_variables)
      : rows_(std::move(layout)),
        y_(std::move(labels)),
        C_(std::move(C)),
        K_(classes),
        loss_(loss),
        pairs_(pairs),
        keep_variables_(keep_variables || loss != Binary::logistic),
        members_(classes),
        empty_C_(classes, 0.0) {
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
    if (loss == Binary::logistic) model_.reset(features * problems());
  }
  BinaryBlocks(const BinaryBlocks&) = delete;

  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t problems() const { return first_problem_.back(); }
  // The problems of a block: [first, first + many)
  std::pair<int64_t, int64_t> problems_of(int64_t b) const { return {blocks_[b].problem, blocks_[b].many}; }

  // Trains the blocks [first, last), going on from the dual variables they have. After an interrupt the
  // blocks under way end as they are, and those not begun have no epochs.
  std::vector<BlockResult> train(int64_t first, int64_t last, const BlockRule& rule, uint64_t seed, int threads,
                                 Interrupt& interrupt) {
    std::vector<BlockResult> results(last - first);
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, last - first)));
    std::atomic<int64_t> next{first};
    std::atomic<int> working{threads};
    while (static_cast<int>(work_.size()) < threads) work_.emplace_back(*this);
    Team team(threads);
    team.run([&](int me) {
      for (int64_t b; (b = next.fetch_add(1)) < last && !interrupt.requested();)
        results[b - first] = train_block(b, rule, seed, work_[me], interrupt);
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

    static constexpr bool centred() { return false; }
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
    ByRows out{std::vector<int64_t>(rows_.n + 1, 0), {}, {}, y_, first_problem_};
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
      for (int64_t l = 0; l < blocks_[b].many; ++l) block_of[blocks_[b].problem + l] = static_cast<int32_t>(b);
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

  // features x problems, of losses whose weights are all in use.
  bool has_dense_model() const { return loss_ == Binary::logistic; }
  Buffer<T> take_dense_model() { return std::move(model_); }

  int64_t dual_bytes() const {
    int64_t total = 0;
    for (const auto& a : alpha_)
      total += static_cast<int64_t>(a.row.capacity() * sizeof(int32_t) + a.lanes.capacity() * sizeof(uint16_t) +
                                    a.values.capacity() * sizeof(T));
    return total;
  }
  const Layout<T>& rows() const { return rows_; }

 private:
  struct Block {
    int64_t first, many;  // the classes of its lanes: [first, first + many)
    int64_t problem;      // of the first lane
    int64_t against;      // one-vs-one: the class that all lanes are trained against, their positive one; else -1
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
    Buffer<T> W, state;        // state: see binary_loss.hpp
    Buffer<double> exact;      // W as the certificate makes it
    std::vector<int32_t> rows;  // of the block, those that have features
    std::vector<int32_t> active;
  };

  struct Sums {
    double loss = 0, gap = 0, norm = 0, violation = 0;
    int64_t kept = 0;
  };

  // A number for each problem of the block, in float64.
  struct Wide {
    static constexpr int parts = width / Lanes<double>::count;
    vec<double> part[parts] = {};

    explicit Wide(const T* p = nullptr) {
      if (p != nullptr)
        for (int v = 0; v < parts; ++v) part[v] = load_as<double>(p + v * Lanes<double>::count);
    }
    double& operator[](int64_t lane) { return reinterpret_cast<double*>(part)[lane]; }
    double sum(int64_t lanes) {
      double total = 0;
      for (int64_t l = 0; l < lanes; ++l) total += (*this)[l];
      return total;
    }
    double largest(int64_t lanes) {
      double most = 0;
      for (int64_t l = 0; l < lanes; ++l) most = std::max(most, (*this)[l]);
      return most;
    }
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
  Wide with_signs(Wide v, int64_t i, const Block& block) const {
    const int64_t lane = y_[i] - block.first;
    const bool listed = lane >= 0 && lane < block.many;
    if (block.against >= 0 && y_[i] == block.against) return v;
    if (block.against >= 0) {
      Wide out;
      if (listed) out[lane] = -v[lane];
      return out;
    }
    for (auto& part : v.part) part = -part;
    if (listed) v[lane] = -v[lane];
    return v;
  }

  // The only lane that the row takes part in, or -1 for all.
  int64_t only_lane(int64_t i, const Block& block) const {
    return block.against >= 0 && y_[i] != block.against ? y_[i] - block.first : -1;
  }

  // In float64 and from the dual variables alone. The weights of the block become those of the dual variables,
  // rounded as the model will store them.
  template <Binary loss>
  Certificate certify(const Block& block, Work& work) const {
    using Loss = BinaryLoss<loss>;
    constexpr int L = Lanes<double>::count, parts = Wide::parts;
    Wide exact, rounded, losses, gains, worst;
    // t_i a_i
    const auto coefficients = [&](int64_t i) {
      Wide a(work.state.data() + i * width);
      for (auto& part : a.part) part = Loss::variable(part, double(C_[i]));
      return with_signs(a, i, block);
    };
    // a weight of a feature that only row i has, rounded
    const auto single_weight = [&](vec<double> coef, double x) {
      alignas(64) T stored[L];
      store_as<double>(stored, coef * x);
      return load_as<double>(stored);
    };

    std::fill(work.exact.data(), work.exact.data() + work.exact.size(), 0.0);
    for (int32_t i : work.rows) {
      if (Loss::sparse && !any_nonzero(load(work.state.data() + int64_t(i) * width))) continue;
      const Wide coef = coefficients(i);
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        double* w = work.exact.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v)
          store(w + v * L, load(w + v * L) + double(rows_.head_value[h]) * coef.part[v]);
      }
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int v = 0; v < parts; ++v) {
          const vec<double> w = coef.part[v] * double(rows_.single_value[j]);
          const vec<double> stored = single_weight(coef.part[v], rows_.single_value[j]);
          exact.part[v] += w * w;
          rounded.part[v] += stored * stored;
        }
    }
    for (int64_t f = 0; f < work.exact.size(); f += width)
      for (int v = 0; v < parts; ++v) {
        const vec<double> w = load(work.exact.data() + f + v * L);
        store_as<double>(work.W.data() + f + v * L, w);
        const vec<double> stored = load_as<double>(work.W.data() + f + v * L);
        exact.part[v] += w * w;
        rounded.part[v] += stored * stored;
      }
    for (int32_t i : work.rows) {
      Wide s;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        const T* w = work.W.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v) s.part[v] += double(rows_.head_value[h]) * load_as<double>(w + v * L);
      }
      if (rows_.single_ptr[i] != rows_.single_ptr[i + 1]) {
        const Wide coef = coefficients(i);
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          for (int v = 0; v < parts; ++v)
            s.part[v] += double(rows_.single_value[j]) * single_weight(coef.part[v], rows_.single_value[j]);
      }
      const Wide state(work.state.data() + int64_t(i) * width), m = with_signs(s, i, block);
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
    // A row without features has margin 0 whatever the weights: its loss is what its dual value can reach.
    double empty = 0;
    for (int64_t c = 0; c < K_; ++c) {
      if (block.against < 0 || c == block.against)
        empty += double(block.many) * empty_C_[c];
      else if (c >= block.first && c < block.first + block.many)
        empty += empty_C_[c];
    }
    if (loss == Binary::logistic) empty *= std::log(2.0);
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

  static bool met(const BlockRule& rule, const Certificate& c) {
    return rule.by_gap ? c.primal - c.dual <= rule.tol * std::abs(c.primal) : c.violation <= rule.tol;
  }

  // Sets rows, state and W of a block; whether there is anything to go on from, for which W comes with the
  // certificate.
  bool start(int64_t b, Work& work) const {
    const Block& block = blocks_[b];
    if (block.against < 0) {
      if (work.rows.size() != filled_.size()) work.rows = filled_;
    } else {
      work.rows = members_[block.against];
      for (int64_t c = block.first; c < block.first + block.many; ++c)
        work.rows.insert(work.rows.end(), members_[c].begin(), members_[c].end());
      std::sort(work.rows.begin(), work.rows.end());
    }
    std::fill(work.W.data(), work.W.data() + work.W.size(), T(0));
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

  // The weights of the dual variables, rounded, as the last certificate has left them, where the model is dense
  // in any case.
  void store_weights(const Block& block, const Work& work) {
    if (!has_dense_model()) return;
    for (int64_t f = 0; f < rows_.heads(); ++f)
      std::copy_n(work.W.data() + f * width, block.many,
                  model_.data() + rows_.head_features[f] * problems() + block.problem);
    for (int32_t i : work.rows) {
      if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
      Wide a(work.state.data() + int64_t(i) * width);
      for (auto& part : a.part) part = BinaryLoss<Binary::logistic>::variable(part, double(C_[i]));
      Wide coef = with_signs(a, i, block);
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int64_t l = 0; l < block.many; ++l)
          model_[rows_.single_index[j] * problems() + block.problem + l] =
              static_cast<T>(coef[l] * rows_.single_value[j]);
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
      const vec<T> m = with_signs(s, i, block) + rows_.tail_norm[i] * a;
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
  bool pairs_, keep_variables_;
  std::vector<int32_t> filled_;                // the rows that have features
  std::vector<std::vector<int32_t>> members_;  // one-vs-one: these by class
  std::vector<double> empty_C_;                // sum of C_i over the other rows, by class
  std::vector<Block> blocks_;
  std::vector<int64_t> first_problem_;  // a row is on the positive side of the problems that begin at its class
  std::vector<Variables> alpha_;        // by block
  Buffer<T> model_;                     // features x problems
  std::vector<Work> work_;              // by thread
};

}  // namespace manyclass
