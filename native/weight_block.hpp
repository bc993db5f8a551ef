// The weights of a few neighbouring classes in float64, straight from the dual variables:
//     w_c = sum_i coef_ic x_i.
// Certificates and the final model come from here, never from the weights that training has added to.
#pragma once
#include <cstdint>
#include <vector>

#include "layout.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
class WeightBlock {
 public:
  static constexpr int width = 16;

  explicit WeightBlock(const Layout<T>& rows) : rows_(rows), W_((rows.heads() + rows.tails()) * width) {}

  void clear() {
    std::fill(W_.data(), W_.data() + W_.size(), 0.0);
    single_exact_ = single_rounded_ = 0;
  }

  // w_lane += coef x_i
  void add(int64_t i, int lane, double coef) {
    rows_.for_each_shared(i, [&](int64_t f, T x) { W_[f * width + lane] += coef * x; });
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j) {
      const double w = coef * rows_.single_value[j], r = static_cast<T>(w);
      single_exact_ += w * w;
      single_rounded_ += r * r;
    }
  }

  struct Norms {
    double exact, rounded;  // sum_c |w_c|^2 of the float64 weights, and of the weights as the model stores them
  };

  // Rounds the weights to the model's type.
  Norms finish() {
    double exact[width] = {}, rounded[width] = {};
    for (int64_t f = 0; f < W_.size(); f += width)
      for (int l = 0; l < width; ++l) {
        const double w = W_[f + l], r = static_cast<T>(w);
        exact[l] += w * w;
        rounded[l] += r * r;
        W_[f + l] = r;
      }
    Norms norms{single_exact_, single_rounded_};
    for (int l = 0; l < width; ++l) {
      norms.exact += exact[l];
      norms.rounded += rounded[l];
    }
    return norms;
  }

  // Scores of row i, but for the features of this row alone: see `single_score`.
  void score(int64_t i, double* s) const {
    vec<double> a = {}, b = {};
    rows_.for_each_shared(i, [&](int64_t f, T x) {
      a += double(x) * load(W_.data() + f * width);
      b += double(x) * load(W_.data() + f * width + 8);
    });
    store(s, a);
    store(s + 8, b);
  }

  // What features of row i alone add to its score for a class in which it has this coefficient.
  double single_score(int64_t i, double coef) const {
    double s = 0;
    for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
      s += double(rows_.single_value[j]) * static_cast<T>(coef * rows_.single_value[j]);
    return s;
  }

  const double* feature(int64_t f) const { return W_.data() + f * width; }
  int64_t shared_features() const { return W_.size() / width; }

 private:
  const Layout<T>& rows_;
  Buffer<double> W_;
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
