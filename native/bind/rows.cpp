#include "bind/rows.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_rows(nb::module_& m) {
  bind_rows<float>(m, "32");
  bind_rows<double>(m, "64");
}

}  // namespace manyclass
