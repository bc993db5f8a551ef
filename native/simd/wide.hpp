// Sums in float64, one for each lane of a vector of T.
#pragma once
#include <algorithm>
#include <cstdint>

#include "simd/vector.hpp"

namespace manyclass {

template <class T>
struct Wide {
  static constexpr int L = Lanes<double>::count, parts = Lanes<T>::count / L;
  vec<double> part[parts] = {};

  Wide() = default;
  explicit Wide(const T* p) {
    for (int v = 0; v < parts; ++v) part[v] = load_as<double>(p + v * L);
  }
  explicit Wide(vec<T> v) {
    alignas(64) T values[Lanes<T>::count];
    store(values, v);
    *this = Wide(values);
  }
  double& operator[](int64_t lane) { return reinterpret_cast<double*>(part)[lane]; }
  double operator[](int64_t lane) const { return reinterpret_cast<const double*>(part)[lane]; }

  // += a b
  void add_product(const T* a, const T* b) {
    for (int v = 0; v < parts; ++v) part[v] += load_as<double>(a + v * L) * load_as<double>(b + v * L);
  }
  void add(vec<T> a) {
    const Wide wide(a);
    for (int v = 0; v < parts; ++v) part[v] += wide.part[v];
  }
  // += x w, with w as a vector of T
  void add_scaled(double x, const T* w) {
    for (int v = 0; v < parts; ++v) part[v] += x * load_as<double>(w + v * L);
  }
  // sums += x of this
  void add_to(double* sums, double x) const {
    for (int v = 0; v < parts; ++v) store(sums + v * L, load(sums + v * L) + x * part[v]);
  }
  vec<T> rounded() const {
    alignas(64) T out[Lanes<T>::count];
    for (int v = 0; v < parts; ++v) store_as<double>(out + v * L, part[v]);
    return load(out);
  }
  double sum(int64_t lanes) const {
    double total = 0;
    for (int64_t l = 0; l < lanes; ++l) total += (*this)[l];
    return total;
  }
  double largest(int64_t lanes) const {
    double most = 0;
    for (int64_t l = 0; l < lanes; ++l) most = std::max(most, (*this)[l]);
    return most;
  }
};

}  // namespace manyclass
