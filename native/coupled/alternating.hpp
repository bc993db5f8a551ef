// The published algorithm for LLW, for comparison. Given the mean of the weight vectors, the classes are
// independent and are trained one variable at a time,
//     a_ic <- clip(a_ic + (1 + s_ic) / k_i, 0, C_i),   w_c -= (change) x_i     for c != y_i,
// and after every tenth of a pass the mean is subtracted from all weights.
//
// Threads and processes share the classes. The mean is summed over chunks of classes in a fixed order; the
// chunks depend on the problem only, and so the result does not depend on threads or processes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dual/pass_stats.hpp"
#include "dual/rows.hpp"
#include "parallel/processes.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T>
struct AlternatingPass {
  const Layout<T>& rows;
  const std::vector<int32_t>& y;
  const std::vector<T>& C;
  const int64_t K;
  const Processes& processes;
  const std::vector<int64_t>& chunks;  // their boundaries, from 0 to K; each is in the range of one process
  DualRows<T>& alpha;
  Buffer<T>& W;                 // heads x wide: centred weights of this process's classes, all features
  const int64_t columns, wide;  // columns: this process's classes, padded

  // During a pass:
  Buffer<T> a_{};                  // the variables, rows x columns
  std::vector<PassStats> seen_{};  // by vector of classes
  std::vector<double> sums_{};     // of the weights, heads x chunks

  // One pass over the given rows.
  PassStats run(const int64_t* order, int64_t count, int threads) {
    constexpr int64_t rounds = 10;
    const int64_t vectors = columns / L;
    threads = static_cast<int>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, vectors)));
    expand();
    seen_.assign(vectors, {});
    sums_.assign(rows.heads() * chunk_count(), 0.0);
    Team team(threads);
    team.run([&](int me) {
      const int64_t low = me * vectors / threads * L, high = (me + 1) * vectors / threads * L;
      const int64_t first = me * rows.heads() / threads, last = (me + 1) * rows.heads() / threads;
      for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t r = round * count / rounds; r < (round + 1) * count / rounds; ++r)
          if (rows.norm[order[r]] > 0) visit(order[r], low, high);
        team.meet();
        for (int64_t h = first; h < last; ++h) add_up(h);
        team.meet();
        if (!processes.alone()) {
          team.share_out(1, me, [&](int64_t) { tell_sums(); });
          team.meet();
        }
        for (int64_t h = first; h < last; ++h) take_mean(h);
        team.meet();
      }
    });
    return finish(order, count);
  }

 private:
  static constexpr int L = Lanes<T>::count;
  int64_t low() const { return processes.mine().low; }
  int64_t chunk_count() const { return std::ssize(chunks) - 1; }

  void expand() {
    a_.reset(rows.n * columns);
    for (int64_t i = 0; i < rows.n; ++i)
      for (int32_t e = 0; e < alpha[i].size; ++e)
        if (processes.mine().has(alpha[i].classes[e]))
          a_[i * columns + alpha[i].classes[e] - low()] = alpha[i].values[e];
  }

  void visit(int64_t i, int64_t from, int64_t to) {
    const int64_t b = rows.head_ptr[i], e = rows.head_ptr[i + 1];
    for (int64_t c = from; c < to; c += L) {
      vec<T> s = {};
      for (int64_t h = b; h < e; ++h)
        s += rows.head_value[h] * load(W.data() + int64_t(rows.head_index[h]) * wide + c);
      const vec<T> old = load(a_.data() + i * columns + c), zero = {};
      vec<T> excess = 1 + s, cap = zero + C[i];
      for (int l = 0; l < L; ++l)
        if (low() + c + l >= processes.mine().high || low() + c + l == y[i]) cap[l] = excess[l] = 0;
      vec<T> next = old + excess * (1 / rows.norm[i]);
      next = next > zero ? (next < cap ? next : cap) : zero;
      PassStats& stats = seen_[c / L];
      for (int l = 0; l < L; ++l) {
        const double loss = C[i] * std::max<double>(0, excess[l]);
        const T violation =
            excess[l] > 0 ? (old[l] < cap[l] ? excess[l] : T(0)) : (old[l] > 0 ? -excess[l] : T(0));
        stats.loss += loss;
        stats.gap += loss - double(old[l]) * excess[l];
        stats.alpha_sum += old[l];
        stats.violation = std::max<double>(stats.violation, violation);
      }
      const vec<T> step = next - old;
      store(a_.data() + i * columns + c, next);
      for (int64_t h = b; h < e; ++h) {
        T* w = W.data() + int64_t(rows.head_index[h]) * wide + c;
        store(w, load(w) - rows.head_value[h] * step);
      }
    }
  }

  void for_each_chunk(const ClassRange& of, auto f) const {
    for (int64_t k = 0; k < chunk_count(); ++k)
      if (chunks[k] < chunks[k + 1] && of.has(chunks[k])) f(k);
  }

  void add_up(int64_t h) {
    for_each_chunk(processes.mine(), [&](int64_t k) {
      double sum = 0;
      for (int64_t c = chunks[k]; c < chunks[k + 1]; ++c) sum += W[h * wide + c - low()];
      sums_[h * chunk_count() + k] = sum;
    });
  }

  void tell_sums() {
    processes.exchange([&](int of, auto piece) {
      for (int64_t h = 0; h < rows.heads(); ++h)
        for_each_chunk(processes.ranges[of],
                       [&](int64_t k) { piece(sums_.data() + h * chunk_count() + k, 1); });
    });
  }

  void take_mean(int64_t h) {
    double sum = 0;
    for (int64_t k = 0; k < chunk_count(); ++k) sum += sums_[h * chunk_count() + k];
    const T mean = static_cast<T>(sum / double(K));
    for (int64_t c = 0; c < processes.mine().size(); ++c) W[h * wide + c] -= mean;
  }

  // Gathers the variables and statistics of all processes, in the order of the classes.
  PassStats finish(const int64_t* order, int64_t count) {
    BytesOut out;
    out.put(std::ssize(seen_));
    out.put(seen_.data(), std::ssize(seen_));
    std::vector<int32_t> classes;
    std::vector<T> values;
    for (int64_t r = 0; r < count; ++r) {
      classes.clear();
      values.clear();
      for (int64_t c = 0; c < processes.mine().size(); ++c)
        if (a_[order[r] * columns + c] > 0) {
          classes.push_back(static_cast<int32_t>(low() + c));
          values.push_back(a_[order[r] * columns + c]);
        }
      out.put(static_cast<int32_t>(values.size()));
      out.put(classes.data(), std::ssize(classes));
      out.put(values.data(), std::ssize(values));
    }
    const auto all =
        processes.alone() ? std::vector<Bytes>{std::move(out.bytes)} : processes.gather(out.bytes);
    std::vector<BytesIn> in(all.begin(), all.end());
    PassStats total;
    for (auto& from : in)
      for (int64_t left = from.template take<int64_t>(); left > 0; --left)
        total.add(from.template take<PassStats>());
    for (int64_t r = 0; r < count; ++r) {
      classes.clear();
      values.clear();
      for (auto& from : in) {
        const int32_t size = from.template take<int32_t>();
        const size_t held = values.size();
        classes.resize(held + size);
        values.resize(held + size);
        from.take(classes.data() + held, size);
        from.take(values.data() + held, size);
      }
      alpha.assign(order[r], classes.data(), values.data(), std::ssize(values));
    }
    return total;
  }
};

}  // namespace manyclass
