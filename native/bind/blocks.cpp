#include "bind/blocks.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_blocks(nb::module_& m) {
  bind_blocks<float>(m, "32");
  bind_blocks<double>(m, "64");
}

}  // namespace manyclass
