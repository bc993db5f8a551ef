// Sums over the rows visited in a pass, each measured just before its own step: an estimate of the
// certificate at no extra cost.
#pragma once
#include <algorithm>
#include <cstdint>

namespace manyclass {

struct PassStats {
  double loss = 0;       // sum_i C_i loss_i
  double gap = 0;        // sum_i (C_i loss_i + sum_c alpha_ic g_ic): the duality gap as a sum over rows
  double alpha_sum = 0;  // sum_ic alpha_ic
  double violation = 0;  // the largest
  int64_t waves = 0;
  double theta = 0;   // sum of the common steps of the waves
  double asleep = 0;  // seconds that threads slept, waiting for each other

  void add(const PassStats& o) {
    loss += o.loss;
    gap += o.gap;
    alpha_sum += o.alpha_sum;
    violation = std::max(violation, o.violation);
    waves += o.waves;
    theta += o.theta;
  }
};

}  // namespace manyclass
