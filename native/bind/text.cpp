#include "bind/text.hpp"

#include "bind/bindings.hpp"
#include "bind/planes.hpp"

namespace manyclass {

void bind_text(nb::module_& m) {
  bind_text_formats(m);
  bind_planes(m);
}

}  // namespace manyclass
