#include "bind_text.hpp"

#include "bind_planes.hpp"
#include "bindings.hpp"

namespace manyclass {

void bind_text(nb::module_& m) {
  bind_text_formats(m);
  bind_planes(m);
}

}  // namespace manyclass
