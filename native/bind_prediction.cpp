#include "bind_prediction.hpp"

#include "bindings.hpp"

namespace manyclass {

void bind_prediction(nb::module_& m) {
  bind_predictions<float>(m);
  bind_predictions<double>(m);
}

}  // namespace manyclass
