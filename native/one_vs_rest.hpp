// One-vs-rest SVMs, a vector of classes at a time, each block of classes alone over all rows.
//
//   For class c, with t_i = +1 for its rows and -1 for the others:
//     min 1/2 |w|^2 + sum_i C_i loss(t_i w.x_i),   loss(m) = max(0, 1 - m) or max(0, 1 - m)^2
//   Dual: max sum_i (a_i - D_i a_i^2 / 2) - 1/2 |w|^2,  w = sum_i t_i a_i x_i,  0 <= a_i <= U_i
//     hinge: U_i = C_i, D_i = 0;  squared hinge: U_i = infinity, D_i = 1 / (2 C_i)
//   One row, all classes of the block at once:
//     a <- clip(a - (t s - 1 + D a) / (k + D), 0, U)
//
// A row rests for a block after a visit that changed none of its variables; before a block is done all rows
// are visited again, and its certificate covers every variable in float64.
#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "certificate.hpp"
#include "interrupt.hpp"
#include "layout.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace manyclass {

enum class Binary { hinge, squared_hinge };

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
class OneVsRestSolver {
 public:
  static constexpr int width = Lanes<T>::count;

  OneVsRestSolver(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
                  Binary loss)
      : rows_(std::move(layout)), y_(std::move(labels)), C_(std::move(C)), K_(classes), loss_(loss) {
    alpha_.resize(blocks());
    if (rows_.tails() != 0) throw std::logic_error("one-vs-rest wants every shared feature in the head");
    for (int64_t i = 0; i < rows_.n; ++i)
      if (rows_.norm[i] > 0)
        filled_.push_back(static_cast<int32_t>(i));
      else
        empty_C_ += C_[i];
  }

  OneVsRestSolver(const OneVsRestSolver&) = delete;

  int64_t blocks() const { return (K_ + width - 1) / width; }

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
    std::vector<int32_t> classes;  // ascending within a row
    std::vector<T> values;
    const std::vector<int32_t>& labels;

    int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
    template <class F>
    void for_each(int64_t i, F f) const {
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e)
        f(classes[e], classes[e] == labels[i] ? double(values[e]) : -double(values[e]));
    }
  };

  // `release`: the variables are not needed here any more.
  ByRows by_rows(bool release = false) {
    ByRows out{std::vector<int64_t>(rows_.n + 1, 0), {}, {}, y_};
    for (const auto& block : alpha_)
      for (size_t r = 0; r < block.row.size(); ++r)
        out.ptr[block.row[r] + 1] += __builtin_popcount(block.lanes[r]);
    for (int64_t i = 0; i < rows_.n; ++i) out.ptr[i + 1] += out.ptr[i];
    out.classes.resize(out.ptr[rows_.n]);
    out.values.resize(out.ptr[rows_.n]);
    std::vector<int64_t> next(out.ptr.begin(), out.ptr.end() - 1);
    for (int64_t b = 0; b < blocks(); ++b) {
      alpha_[b].for_each([&](int32_t i, int lane, T a) {
        out.classes[next[i]] = static_cast<int32_t>(b * width + lane);
        out.values[next[i]++] = a;
      });
      if (release) alpha_[b] = {};
    }
    return out;
  }

  // As `by_rows` gives them.
  void set_alpha(const int64_t* ptr, const int32_t* classes, const T* values) {
    for (auto& block : alpha_) block = {};
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
        Variables& block = alpha_[classes[e] / width];
        if (block.row.empty() || block.row.back() != i) {
          block.row.push_back(static_cast<int32_t>(i));
          block.lanes.push_back(0);
        }
        block.lanes.back() |= static_cast<uint16_t>(1u << (classes[e] % width));
        block.values.push_back(values[e]);
      }
  }

  // Training is over: makes room for the model.
  void release() {
    work_.clear();
    rows_ = {};
  }

  int64_t dual_bytes() const {
    int64_t total = 0;
    for (const auto& a : alpha_)
      total += static_cast<int64_t>(a.row.capacity() * sizeof(int32_t) +
                                    a.lanes.capacity() * sizeof(uint16_t) + a.values.capacity() * sizeof(T));
    return total;
  }
  const Layout<T>& rows() const { return rows_; }
  int64_t classes() const { return K_; }

 private:
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
  static_assert(width <= 16);

  // One block of classes at a time, one of these a thread.
  struct Work {
    explicit Work(const OneVsRestSolver& s)
        : W(s.rows_.heads() * width), alpha(s.rows_.n * width), exact(s.rows_.heads() * width) {}
    Buffer<T> W, alpha;
    Buffer<double> exact;  // W as the certificate makes it
    std::vector<int32_t> active;
  };

  struct Sums {
    double loss = 0, gap = 0, norm = 0, violation = 0;
    int64_t kept = 0;
  };

  // A number for each class of the block, in float64.
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

  // Of the classes [first, last), in float64 and from the dual variables alone. The weights of the block
  // become those of the dual variables, rounded as the model will store them.
  template <Binary loss>
  Certificate certify(int64_t first, int64_t last, Work& work) const {
    constexpr bool squared = loss == Binary::squared_hinge;
    constexpr int L = Lanes<double>::count, parts = Wide::parts;
    const int64_t many = last - first;
    const vec<double> zero = {};
    Wide exact, rounded, losses, duals, worst;
    // t_i a_i
    const auto coefficients = [&](int64_t i) {
      Wide coef(work.alpha.data() + i * width);
      for (auto& part : coef.part) part = -part;
      const int64_t own = y_[i] - first;
      if (own >= 0 && own < width) coef[own] = -coef[own];
      return coef;
    };
    // a weight of a feature that only row i has, rounded
    const auto single_weight = [&](vec<double> coef, double x) {
      alignas(64) T stored[L];
      store_as<double>(stored, coef * x);
      return load_as<double>(stored);
    };

    std::fill(work.exact.data(), work.exact.data() + work.exact.size(), 0.0);
    for (int32_t i : filled_) {
      if (!any_nonzero(load(work.alpha.data() + int64_t(i) * width))) continue;
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
    for (int32_t i : filled_) {
      Wide m;  // the scores, then the margins
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        const T* w = work.W.data() + int64_t(rows_.head_index[h]) * width;
        for (int v = 0; v < parts; ++v) m.part[v] += double(rows_.head_value[h]) * load_as<double>(w + v * L);
      }
      const Wide a(work.alpha.data() + int64_t(i) * width);
      if (rows_.single_ptr[i] != rows_.single_ptr[i + 1]) {
        const Wide coef = coefficients(i);
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          for (int v = 0; v < parts; ++v)
            m.part[v] += double(rows_.single_value[j]) * single_weight(coef.part[v], rows_.single_value[j]);
      }
      for (auto& part : m.part) part = -part;
      const int64_t own = y_[i] - first;
      if (own >= 0 && own < width) m[own] = -m[own];
      const double Ci = C_[i], D = squared ? 1 / (2 * Ci) : 0;
      for (int v = 0; v < parts; ++v) {
        const vec<double> h = 1 - m.part[v], hp = larger<double>(h, zero), av = a.part[v];
        losses.part[v] += Ci * (squared ? hp * hp : hp);
        duals.part[v] += squared ? av - D / 2 * av * av : av;
        const vec<double> g = squared ? D * av - h : -h;
        const vec<double> up = squared ? -g : (av < Ci ? -g : zero), down = av > zero ? g : zero;
        worst.part[v] = larger<double>(worst.part[v], larger<double>(up, down));
      }
    }
    // A row without features has margin 0 whatever the weights: loss and dual value are both C_i.
    const double empty = empty_C_ * double(many);
    return {rounded.sum(many) / 2 + losses.sum(many) + empty, duals.sum(many) - exact.sum(many) / 2 + empty,
            worst.largest(many)};
  }

  Certificate certificate(int64_t first, int64_t last, Work& work) const {
    return loss_ == Binary::hinge ? certify<Binary::hinge>(first, last, work)
                                  : certify<Binary::squared_hinge>(first, last, work);
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
    const int64_t first = b * width, last = std::min(K_, first + width);
    BlockResult result;
    if (start(b, work)) {
      result.certificate = certificate(first, last, work);
      result.done = met(rule, result.certificate);
      if (result.done) return result;
    }
    work.active = filled_;
    double tol = rule.tol;
    for (int64_t epoch = 0;; ++epoch) {
      const bool all = work.active.size() == filled_.size();
      shuffle(work.active, scramble(seed ^ scramble(b * 0x10001 + epoch)));
      result.visited += filled_.empty() ? 0 : double(work.active.size()) / double(filled_.size());
      const Sums sums = loss_ == Binary::hinge ? epoch_over<Binary::hinge>(first, work, interrupt)
                                               : epoch_over<Binary::squared_hinge>(first, work, interrupt);
      ++result.epochs;
      const bool quiet = rule.by_gap ? sums.gap <= tol * (sums.loss + sums.norm / 2) : sums.violation <= tol;
      const bool out_of_epochs = result.epochs >= rule.max_epochs || interrupt.requested();
      if ((quiet && all) || out_of_epochs) {
        keep(b, work);
        result.certificate = certificate(first, last, work);
        result.done = met(rule, result.certificate);
        if (result.done || out_of_epochs) return result;
        tol /= 2;
      }
      if (quiet)
        work.active = filled_;
      else
        work.active.resize(sums.kept);
    }
  }

  static bool met(const BlockRule& rule, const Certificate& c) {
    return rule.by_gap ? c.primal - c.dual <= rule.tol * std::abs(c.primal) : c.violation <= rule.tol;
  }

  // Sets alpha and W of a block; whether there is anything to go on from, for which W comes with the
  // certificate.
  bool start(int64_t b, Work& work) const {
    std::fill(work.W.data(), work.W.data() + work.W.size(), T(0));
    std::fill(work.alpha.data(), work.alpha.data() + work.alpha.size(), T(0));
    alpha_[b].for_each([&](int32_t i, int lane, T a) { work.alpha[int64_t(i) * width + lane] = a; });
    return !alpha_[b].row.empty();
  }

  void keep(int64_t b, const Work& work) {
    const uint32_t real = (1u << std::min<int64_t>(width, K_ - b * width)) - 1;  // lanes that are classes
    size_t with_any = 0, values = 0;
    for (int32_t i : filled_) {
      const uint32_t lanes = real & nonzero_lanes(work.alpha.data() + int64_t(i) * width);
      with_any += lanes != 0;
      values += __builtin_popcount(lanes);
    }
    Variables kept;
    kept.row.reserve(with_any);
    kept.lanes.reserve(with_any);
    kept.values.reserve(values);
    for (int32_t i : filled_) {
      const T* a = work.alpha.data() + int64_t(i) * width;
      const uint32_t lanes = real & nonzero_lanes(a);
      if (lanes == 0) continue;
      kept.row.push_back(i);
      kept.lanes.push_back(static_cast<uint16_t>(lanes));
      for (uint32_t left = lanes; left != 0; left &= left - 1) kept.values.push_back(a[__builtin_ctz(left)]);
    }
    alpha_[b] = std::move(kept);
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

  static double lane_sum(vec<T> v) {
    double sum = 0;
    for (int l = 0; l < width; ++l) sum += v[l];
    return sum;
  }

  template <Binary loss>
  Sums epoch_over(int64_t first, Work& work, Interrupt& interrupt) {
    constexpr bool squared = loss == Binary::squared_hinge;
    T* W = work.W.data();
    int32_t* active = work.active.data();
    const int64_t count = static_cast<int64_t>(work.active.size());
    Sums sums;
    vec<T> losses = {}, gaps = {}, norms = {}, worst = {};
    const vec<T> zero = {};
    for (int64_t r = 0; r < count; ++r) {
      if (r % 1024 == 0 && (omp_get_thread_num() == 0 ? interrupt.poll() : interrupt.requested())) break;
      const int64_t i = active[r];
      if (r + 2 < count) prefetch(active[r + 2], work);
      const int64_t b = rows_.head_ptr[i], e = rows_.head_ptr[i + 1];
      vec<T> s = {};
      for (int64_t h = b; h < e; ++h)
        s += rows_.head_value[h] * load(W + int64_t(rows_.head_index[h]) * width);
      const vec<T> a = load(work.alpha.data() + i * width);
      const int64_t own = y_[i] - first;
      const bool has_own = own >= 0 && own < width;
      vec<T> m = -s;
      if (has_own) m[own] = s[own];
      m += rows_.tail_norm[i] * a;

      const T Ci = C_[i], D = squared ? 1 / (2 * Ci) : T(0);
      const vec<T> h = 1 - m, hp = larger<T>(h, zero);
      const vec<T> g = squared ? D * a - h : -h;
      vec<T> next = larger<T>(a - g * (1 / (rows_.norm[i] + D)), zero);
      if constexpr (!squared) next = next < Ci ? next : zero + Ci;
      losses += squared ? Ci * hp * hp : Ci * hp;
      gaps += squared ? Ci * hp * hp - a * h + (D / 2) * a * a : Ci * hp - a * h;
      norms += a * m;
      const vec<T> step = next - a;
      if (!any_nonzero(step)) continue;
      const vec<T> down = squared ? -g : (a < Ci ? -g : zero);
      worst = larger<T>(worst, larger<T>(down, a > zero ? g : zero));
      active[sums.kept++] = static_cast<int32_t>(i);
      store(work.alpha.data() + i * width, next);
      vec<T> change = -step;
      if (has_own) change[own] = step[own];
      for (int64_t h = b; h < e; ++h) {
        T* w = W + int64_t(rows_.head_index[h]) * width;
        store(w, load(w) + rows_.head_value[h] * change);
      }
    }
    sums.loss = lane_sum(losses);
    sums.gap = lane_sum(gaps);
    sums.norm = lane_sum(norms);
    for (int l = 0; l < width; ++l) sums.violation = std::max<double>(sums.violation, worst[l]);
    return sums;
  }

  void prefetch(int64_t i, const Work& work) const {
    __builtin_prefetch(work.alpha.data() + i * width);
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
      __builtin_prefetch(work.W.data() + int64_t(rows_.head_index[h]) * width);
  }

  Layout<T> rows_;
  std::vector<int32_t> y_;
  std::vector<T> C_;
  int64_t K_;
  Binary loss_;
  std::vector<Variables> alpha_;  // by block
  std::vector<int32_t> filled_;   // the rows that have features
  double empty_C_ = 0;            // sum of C_i over the others
  std::vector<Work> work_;        // by thread
};

}  // namespace manyclass
