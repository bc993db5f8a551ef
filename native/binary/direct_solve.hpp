// Small symmetric positive definite systems, one per lane, solved in float64 by the factors L D L':
//
//   (I + sum_i c_i x_i x_i') s = b
//
// Newton's method uses this instead of conjugate gradients if those converge slowly and there are few
// features.
#pragma once
#include <algorithm>
#include <cstdint>

#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

template <class T>
class DirectSolve {
 public:
  static constexpr int width = Lanes<T>::count, L = Wide<T>::L, parts = Wide<T>::parts;
  // Beyond this, the matrices take too much memory and too long to fill.
  static constexpr int64_t most_unknowns = 256;

  // Starts with the identity.
  void reset(int64_t unknowns) {
    unknowns_ = unknowns;
    lower_.reserve(unknowns * (unknowns + 1) / 2 * width);
    row_.reserve(unknowns * width);
    std::fill_n(lower_.data(), unknowns * (unknowns + 1) / 2 * width, 0.0);
    for (int64_t f = 0; f < unknowns; ++f) std::fill_n(at(f, f), width, 1.0);
  }

  // += c x_f x_g for features f and g of a row; to be called once for each unordered pair.
  void add(int64_t f, int64_t g, double product, const Wide<T>& c) {
    c.add_to(at(std::max(f, g), std::min(f, g)), product);
  }

  // Replaces the matrix by L, with D on the diagonal.
  void factor() {
    for (int64_t f = 0; f < unknowns_; ++f) {
      for (int64_t g = 0; g <= f; ++g)
        for (int v = 0; v < parts; ++v) {
          vec<double> left = load(at(f, g) + v * L);
          for (int64_t k = 0; k < g; ++k) left -= load(row(k) + v * L) * load(at(g, k) + v * L);
          store(row(g) + v * L, left);
          store(at(f, g) + v * L, g < f ? left / load(at(g, g) + v * L) : left);
        }
    }
  }

  // Replaces b (unknowns x lanes) by s.
  void solve(double* b) const {
    for (int v = 0; v < parts; ++v) {
      const auto unknown = [&](int64_t f) { return b + f * width + v * L; };
      for (int64_t f = 0; f < unknowns_; ++f)
        for (int64_t k = 0; k < f; ++k)
          store(unknown(f), load(unknown(f)) - load(at(f, k) + v * L) * load(unknown(k)));
      for (int64_t f = 0; f < unknowns_; ++f) store(unknown(f), load(unknown(f)) / load(at(f, f) + v * L));
      for (int64_t f = unknowns_ - 1; f >= 0; --f)
        for (int64_t k = 0; k < f; ++k)
          store(unknown(k), load(unknown(k)) - load(at(f, k) + v * L) * load(unknown(f)));
    }
  }

 private:
  double* at(int64_t f, int64_t g) { return lower_.data() + (f * (f + 1) / 2 + g) * width; }
  const double* at(int64_t f, int64_t g) const { return lower_.data() + (f * (f + 1) / 2 + g) * width; }
  double* row(int64_t g) { return row_.data() + g * width; }

  int64_t unknowns_ = 0;
  Buffer<double> lower_;  // the lower triangle by rows
  Buffer<double> row_;    // L D of the current row
};

}  // namespace manyclass
