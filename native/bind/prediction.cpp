#include "bind/prediction.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_prediction(nb::module_& m) {
  bind_scorer<float>(m, "Scorer32");
  bind_scorer<double>(m, "Scorer64");
}

}  // namespace manyclass
