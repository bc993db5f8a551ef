#include "bind/max_margin.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_max_margin(nb::module_& m) {
  bind_max_margin<float>(m, "32");
  bind_max_margin<double>(m, "64");
}

}  // namespace manyclass
