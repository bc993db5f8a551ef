#include "bind/labels.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_labels(nb::module_& m) {
  bind_labels<float>(m, "32");
  bind_labels<double>(m, "64");
}

}  // namespace manyclass
