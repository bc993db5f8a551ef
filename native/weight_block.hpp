// The weights of a few neighbouring classes in float64, straight from the dual variables:
//     w_c = sum_i coef_ic x_i.
// Certificates and the final model come from here, never from the weights that training has added to.
#pragma once
#include <cstdint>
#include <vector>

#include "layout.hpp"
#include "vector.hpp"

namespace manyclass {

// A number for each class of a block: scores, or coefficients of a row.
struct Scores {
  vec<double> low, high;

  double& operator[](int64_t l) { return reinterpret_cast<double*>(this)[l]; }
  double operator[](int64_t l) const { return reinterpret_cast<const double*>(this)[l]; }
};

template <class T>
class WeightBlock {
 public:
  static constexpr int width = 16;

  explicit WeightBlock(const Layout<T>& rows)
      : rows_(rows), sums_((rows.heads() + rows.tails()) * width), W_(sums_.size()) {}

  void clear() {
    std::fill(sums_.data(), sums_.data() + sums_.size(), 0.0);
    single_exact_ = single_rounded_ = 0;
  }

  // w += x_i coef'
  void add(int64_t i, const Scores& coef) {
    rows_.for_each_shared(i, [&](int64_t f, T x) {
      double* w = sums_.data() + f * width;
      store(w, load(w) + double(x) * coef.low);
      store(w + 8, load(w + 8) + double(x) * coef.high);
    });
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      for (int l = 0; l < width; ++l) {
        const double w = coef[l] * rows_.single_value[j], r = static_cast<T>(w);
        single_exact_ += w * w;
        single_rounded_ += r * r;
      }
  }

  struct Norms {
    double exact,
        rounded;  // sum_c |w_c|^2 of the float64 weights, and of the weights as the model stores them
  };

  // Rounds the weights to the model's type; from here on they are what scores are made of.
  Norms finish() {
    double exact[width] = {}, rounded[width] = {};
    for (int64_t f = 0; f < sums_.size(); f += width)
      for (int l = 0; l < width; ++l) {
        const double w = sums_[f + l];
        const T r = static_cast<T>(w);
        exact[l] += w * w;
        rounded[l] += double(r) * double(r);
        W_[f + l] = r;
      }
    Norms norms{single_exact_, single_rounded_};
    for (int l = 0; l < width; ++l) {
      norms.exact += exact[l];
      norms.rounded += rounded[l];
    }
    return norms;
  }

  // Scores of row i in float64, but for the features of this row alone: see `single_score`.
  Scores score(int64_t i) const {
    Scores s = {};
    rows_.for_each_shared(i, [&](int64_t f, T x) {
      const T* w = W_.data() + f * width;
      s.low += double(x) * widened(w);
      s.high += double(x) * widened(w + 8);
    });
    return s;
  }

  // What features of row i alone add to its score for a class in which it has this coefficient.
  double single_score(int64_t i, double coef) const {
    double s = 0;
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      s += double(rows_.single_value[j]) * static_cast<T>(coef * rows_.single_value[j]);
    return s;
  }

  const T* feature(int64_t f) const { return W_.data() + f * width; }
  int64_t shared_features() const { return W_.size() / width; }

 private:
  static vec<double> widened(const T* w) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return (vec<double>)_mm512_cvtps_pd(_mm256_load_ps(w));
#endif
    typedef T Eight __attribute__((vector_size(8 * sizeof(T))));
    return __builtin_convertvector(*reinterpret_cast<const Eight*>(w), vec<double>);
  }

  const Layout<T>& rows_;
  Buffer<double> sums_;
  Buffer<T> W_;
  double single_exact_ = 0, single_rounded_ = 0;
};

// What every fit ends with. The values cover all variables.
struct Certificate {
  double primal = 0, dual = 0, violation = 0;

  void add(const Certificate& o) {
    primal += o.primal;
    dual += o.dual;
    violation = std::max(violation, o.violation);
  }
};

}  // namespace manyclass
