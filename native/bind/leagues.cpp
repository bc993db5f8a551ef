#include "bind/leagues.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_leagues(nb::module_& m) {
  bind_leagues<float>(m, "32");
  bind_leagues<double>(m, "64");
}

}  // namespace manyclass
