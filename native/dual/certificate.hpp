// The primal and dual objectives and the largest violation of the optimality conditions, over all variables.
// Every fit ends with one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace manyclass {

struct Certificate {
  double primal = 0, dual = 0, violation = 0;

  void add(const Certificate& o) {
    primal += o.primal;
    dual += o.dual;
    violation = std::max(violation, o.violation);
  }
};

// Whether a gap is at most `tol`, relative to the primal. (Relative to the larger of |P| and |D| only gaps
// above |P| would differ, since D <= P: no `tol` below 1 accepts those.)
inline bool gap_met(double primal, double dual, double tol) {
  return primal - dual <= tol * std::abs(primal);
}

// A block or a label is done when its relative gap, or its largest violation, is at most `tol`.
struct TrainingRule {
  bool by_gap;
  double tol;
  int64_t limit;  // of the passes over a block, or of the rounds of a label

  bool met(const Certificate& c) const {
    return by_gap ? gap_met(c.primal, c.dual, tol) : c.violation <= tol;
  }
};

}  // namespace manyclass
