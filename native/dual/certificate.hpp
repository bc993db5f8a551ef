// The primal and dual objectives and the largest violation of the optimality conditions, over all variables.
// Every fit ends with one.
#pragma once
#include <algorithm>

namespace manyclass {

struct Certificate {
  double primal = 0, dual = 0, violation = 0;

  void add(const Certificate& o) {
    primal += o.primal;
    dual += o.dual;
    violation = std::max(violation, o.violation);
  }
};

}  // namespace manyclass
