// The published algorithm for LLW, kept as a reference: for fixed mean vector the classes are independent,
// one variable a step; the mean is taken out of all weights after every tenth of a pass.
//     a_ic <- clip(a_ic + (1 + s_ic) / k_i, 0, C_i),   w_c -= (change) x_i     for c != y_i
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dual_rows.hpp"
#include "layout.hpp"
#include "pass_stats.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace manyclass {

// One pass over the given rows. W (heads x stride) holds centred weights of all features; alpha is read and
// written.
template <class T>
PassStats alternate(const Layout<T>& rows, const std::vector<int32_t>& y, const std::vector<T>& C, int64_t K,
                    int64_t stride, const int64_t* order, int64_t count, DualRows<T>& alpha, Buffer<T>& W,
                    int threads) {
  constexpr int L = Lanes<T>::count;
  constexpr int64_t rounds = 10;
  const int64_t vectors = padded<T>(K) / L;
  threads = static_cast<int>(std::min<int64_t>(threads, vectors));
  Buffer<T> a(rows.n * stride);
  for (int64_t i = 0; i < rows.n; ++i)
    for (int32_t e = 0; e < alpha[i].size; ++e) a[i * stride + alpha[i].classes[e]] = alpha[i].values[e];
  std::vector<PassStats> seen(vectors);  // by classes, so that sums do not depend on who has which
  Team team(threads);
  team.run([&](int me) {
    const int64_t low = me * vectors / threads * L, high = (me + 1) * vectors / threads * L;
    for (int64_t round = 0; round < rounds; ++round) {
      for (int64_t r = round * count / rounds; r < (round + 1) * count / rounds; ++r) {
        const int64_t i = order[r], b = rows.head_ptr[i], e = rows.head_ptr[i + 1];
        if (rows.norm[i] == 0) continue;
        for (int64_t c = low; c < high; c += L) {
          vec<T> s = {};
          for (int64_t h = b; h < e; ++h)
            s += rows.head_value[h] * load(W.data() + int64_t(rows.head_index[h]) * stride + c);
          const vec<T> old = load(a.data() + i * stride + c), zero = {};
          vec<T> excess = 1 + s, cap = zero + C[i];
          for (int l = 0; l < L; ++l)
            if (c + l >= K || c + l == y[i]) cap[l] = excess[l] = 0;
          vec<T> next = old + excess * (1 / rows.norm[i]);
          next = next > zero ? (next < cap ? next : cap) : zero;
          PassStats& stats = seen[c / L];
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
          store(a.data() + i * stride + c, next);
          for (int64_t h = b; h < e; ++h) {
            T* w = W.data() + int64_t(rows.head_index[h]) * stride + c;
            store(w, load(w) - rows.head_value[h] * step);
          }
        }
      }
      team.meet();
      for (int64_t h = me * rows.heads() / threads; h < (me + 1) * rows.heads() / threads; ++h) {
        T* w = W.data() + h * stride;
        double sum = 0;
        for (int64_t c = 0; c < K; ++c) sum += w[c];
        const T mean = static_cast<T>(sum / double(K));
        for (int64_t c = 0; c < K; ++c) w[c] -= mean;
      }
      team.meet();
    }
  });
  PassStats total;
  for (const auto& part : seen) total.add(part);
  std::vector<int32_t> classes;
  std::vector<T> values;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t i = order[r];
    classes.clear();
    values.clear();
    for (int64_t c = 0; c < K; ++c)
      if (a[i * stride + c] > 0) {
        classes.push_back(static_cast<int32_t>(c));
        values.push_back(a[i * stride + c]);
      }
    alpha.assign(i, classes.data(), values.data(), static_cast<int64_t>(classes.size()));
  }
  return total;
}

}  // namespace manyclass
