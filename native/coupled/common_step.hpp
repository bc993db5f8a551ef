// The step length theta <= 1 that all rows of a wave have in common.
//
// The rows of a wave are solved at the weights from before the wave, independently of each other. Let delta_i
// be the change of row i's coefficients, and gain_i the slope of the dual along it. Moving all rows by theta
// changes the dual by
//     theta sum_i gain_i - theta^2 / 2 Q,     Q = sum_{i,i'} (x_i . x_i') (delta_i . delta_i'),
// so theta = min(1, sum_i gain_i / Q) is the best common step and never lowers the dual. (This also cuts
// relaxed steps back to the best common one; exempting them gained nothing on WordNet.) Rows of text share
// few features, and even fewer of the classes they change, so theta is nearly always 1.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "coupled/step.hpp"
#include "coupled/waves.hpp"
#include "rows/layout.hpp"
#include "rows/products.hpp"

namespace manyclass {

template <class T>
class CommonStep {
 public:
  CommonStep(const Layout<T>& rows, const std::vector<int32_t>& labels, int64_t classes, int64_t wave)
      : rows_(rows),
        y_(labels),
        K_(classes),
        latest_(classes + 1, -1),
        mark_(rows.heads() + rows.tails(), T(0)),
        overlap_(wave * wave) {}

  // theta for the first `size` places of the wave. relax: the factor of over-relaxation of each row's step.
  T of(const WavePlaces<RowStep<T>>& steps, int64_t size, T relax) {
    if (size == 1) return 1;
    double gain = 0, Q = 0;
    std::fill(overlap_.begin(), overlap_.begin() + size * size, 0.0);
    changes_.clear();
    for (int64_t r = 0; r < size; ++r) {
      const RowStep<T>& step = steps[r];
      if (!step.changed) continue;
      double square = 0;
      step.for_each_change(y_[step.row], K_, [&](int32_t c, T change) {
        // sum_c (delta_c - mean)(delta'_c - mean') = sum_c delta_c delta'_c - K mean mean'
        const double weighted = c == K_ ? -double(K_) * change : double(change);
        square += weighted * change;
        for (int32_t p = latest_[c]; p >= 0; p = changes_[p].previous)
          overlap_[changes_[p].row * size + r] += weighted * changes_[p].value;
        changes_.push_back({c, static_cast<int32_t>(r), latest_[c], change});
        latest_[c] = static_cast<int32_t>(changes_.size()) - 1;
      });
      const double own = rows_.norm[step.row] * square;
      Q += own;
      gain += std::max(step.gain, own / relax);  // a lower bound that rounding may violate near the optimum
    }
    for (const auto& change : changes_) latest_[change.cls] = -1;
    for (int64_t r = 0; r < size; ++r) {
      const double* overlap = overlap_.data() + r * size;
      if (std::all_of(overlap, overlap + size, [](double o) { return o == 0; })) continue;
      const RowProducts<T> products(rows_, steps[r].row, mark_);
      for (int64_t q = r + 1; q < size; ++q)
        if (overlap[q] != 0) Q += 2 * products.with(steps[q].row) * overlap[q];
    }
    return Q > gain ? static_cast<T>(gain / Q) : T(1);
  }

 private:
  struct Change {
    int32_t cls, row, previous;
    T value;
  };

  const Layout<T>& rows_;
  const std::vector<int32_t>& y_;
  const int64_t K_;
  std::vector<Change> changes_;  // of the wave, chained by class
  std::vector<int32_t> latest_;  // the last change of each class, and of the mean
  std::vector<T> mark_;
  std::vector<double> overlap_;  // delta_i . delta_i'
};

}  // namespace manyclass
