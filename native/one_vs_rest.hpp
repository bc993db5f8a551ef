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

#include "coefficients.hpp"
#include "interrupt.hpp"
#include "layout.hpp"
#include "vector.hpp"
#include "weight_block.hpp"

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
  static_assert(WeightBlock<T>::width % width == 0);

  OneVsRestSolver(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, int64_t classes,
                  Binary loss)
      : rows_(std::move(layout)), y_(std::move(labels)), C_(std::move(C)), K_(classes), loss_(loss) {
    alpha_.by_class.resize(classes);
    if (rows_.tails() != 0) throw std::logic_error("one-vs-rest wants every shared feature in the head");
    for (int64_t i = 0; i < rows_.n; ++i)
      if (rows_.norm[i] > 0) filled_.push_back(static_cast<int32_t>(i));
  }

  int64_t blocks() const { return (K_ + width - 1) / width; }

  // Trains the blocks [first, last), going on from the dual variables they have. After an interrupt the
  // blocks under way end as they are, and those not begun have no epochs.
  std::vector<BlockResult> train(int64_t first, int64_t last, const BlockRule& rule, uint64_t seed,
                                 int threads, Interrupt& interrupt) {
    std::vector<BlockResult> results(last - first);
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, last - first)));
    std::atomic<int64_t> next{first};
    std::atomic<int> working{threads};
#pragma omp parallel num_threads(threads)
    {
      {
        Work work(*this);
        for (int64_t b; (b = next.fetch_add(1)) < last && !interrupt.requested();)
          results[b - first] = train_block(b, rule, seed, work, interrupt);
      }
      --working;
      // The thread that hears Ctrl-C stays awake while others work.
      if (omp_get_thread_num() == 0)
        while (working.load() > 0) {
          interrupt.poll();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return results;
  }

  // The dual variables as coefficients of the weights, with their signs: w_c = sum_i coef_ic x_i.
  struct Variables {
    struct OfClass {
      std::vector<int32_t> row;
      std::vector<T> value;  // t_i a_i
    };
    std::vector<OfClass> by_class;

    int64_t classes() const { return static_cast<int64_t>(by_class.size()); }
    ClassCoefficients<T> of(int64_t c) const {
      return {by_class[c].row.data(), by_class[c].value.data(), static_cast<int64_t>(by_class[c].row.size())};
    }
  };
  const Variables& variables() const { return alpha_; }

  void set_coefficients(const int64_t* ptr, const int32_t* row, const T* value) {
    for (int64_t c = 0; c < K_; ++c) {
      alpha_.by_class[c].row.assign(row + ptr[c], row + ptr[c + 1]);
      alpha_.by_class[c].value.assign(value + ptr[c], value + ptr[c + 1]);
    }
  }

  // Of the classes [first, last), in float64, at the weights as the model will store them.
  Certificate certificate(int64_t first, int64_t last) const {
    return loss_ == Binary::hinge ? certify<Binary::hinge>(first, last)
                                  : certify<Binary::squared_hinge>(first, last);
  }

  int64_t dual_bytes() const {
    int64_t total = 0;
    for (const auto& a : alpha_.by_class)
      total += static_cast<int64_t>(a.row.capacity() * (sizeof(int32_t) + sizeof(T)));
    return total;
  }
  const Layout<T>& rows() const { return rows_; }
  int64_t classes() const { return K_; }

 private:
  // One block of classes at a time, one of these a thread.
  struct Work {
    explicit Work(const OneVsRestSolver& s) : W(s.rows_.heads() * width), alpha(s.rows_.n * width) {}
    Buffer<T> W, alpha;
    std::vector<int32_t> active;
  };

  struct Sums {
    double loss = 0, gap = 0, norm = 0, violation = 0;
    int64_t kept = 0;
  };

  template <Binary loss>
  Certificate certify(int64_t first, int64_t last) const {
    constexpr bool squared = loss == Binary::squared_hinge;
    BlockOfClasses<T, Variables> block(rows_, alpha_);
    Certificate total;
    const vec<double> zero = {};
    for (int64_t c = first; c < last; c += block.width) {
      const auto norms = block.load_classes(c, last);
      total.primal += norms.rounded / 2;
      total.dual -= norms.exact / 2;
      const int64_t many = block.last() - block.first();
      vec<double> losses = {}, worst = {};
      const auto empty = [&](int64_t i) {  // margin 0 whatever the weights: loss and dual value are both C_i
        total.primal += C_[i] * double(many);
        total.dual += C_[i] * double(many);
      };
      block.for_each_row(
          y_,
          [&](int64_t i, const Scores& s) {  // t = -1, alpha = 0
            if (rows_.norm[i] == 0) return empty(i);
            const vec<double> low = larger<double>(1 + s.low, zero), high = larger<double>(1 + s.high, zero);
            losses += double(C_[i]) * (squared ? low * low + high * high : low + high);
            worst = larger<double>(worst, larger<double>(low, high));
          },
          [&](int64_t i, const Scores& s, const Scores& coef) {
            if (rows_.norm[i] == 0) return empty(i);
            const double Ci = C_[i];
            for (int64_t l = 0; l < many; ++l) {
              const double t = c + l == y_[i] ? 1 : -1, a = t * coef[l], h = 1 - t * s[l];
              const double hp = std::max(0.0, h), g = squared ? -h + a / (2 * Ci) : -h;
              total.primal += Ci * (squared ? hp * hp : hp);
              total.dual += squared ? a - a * a / (4 * Ci) : a;
              const double v = g < 0 ? (squared || a < Ci ? -g : 0.0) : (a > 0 ? g : 0.0);
              total.violation = std::max(total.violation, v);
            }
          });
      for (int l = 0; l < 8; ++l) {
        total.primal += losses[l];
        total.violation = std::max(total.violation, worst[l]);
      }
    }
    return total;
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
    if (start(first, last, work)) {
      result.certificate = certificate(first, last);
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
        keep(first, last, work);
        result.certificate = certificate(first, last);
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

  // Sets alpha and W of a block; whether there is anything to go on from.
  bool start(int64_t first, int64_t last, Work& work) const {
    bool any = false;
    std::fill(work.W.data(), work.W.data() + work.W.size(), T(0));
    std::fill(work.alpha.data(), work.alpha.data() + work.alpha.size(), T(0));
    for (int64_t c = first; c < last; ++c)
      for (int64_t e = 0; e < alpha_.of(c).size; ++e) {
        const int64_t i = alpha_.of(c).row[e];
        const T coef = alpha_.of(c).value[e];
        any = true;
        work.alpha[i * width + c - first] = std::abs(coef);
        for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
          work.W[rows_.head_index[h] * width + c - first] += coef * rows_.head_value[h];
      }
    return any;
  }

  void keep(int64_t first, int64_t last, const Work& work) {
    for (int64_t c = first; c < last; ++c) {
      const T* a = work.alpha.data() + (c - first);
      size_t many = 0;
      for (int64_t i = 0; i < rows_.n; ++i) many += a[i * width] > 0;
      auto& out = alpha_.by_class[c];
      out.row.clear();
      out.value.clear();
      out.row.reserve(many);
      out.value.reserve(many);
      for (int64_t i = 0; i < rows_.n; ++i)
        if (a[i * width] > 0) {
          out.row.push_back(static_cast<int32_t>(i));
          out.value.push_back(y_[i] == c ? a[i * width] : -a[i * width]);
        }
    }
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
  Variables alpha_;
  std::vector<int32_t> filled_;  // the rows that have features
};

}  // namespace manyclass
