#include "bind/streams.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_streams(nb::module_& m) {
  bind_places(m);
  bind_streams<float>(m, "32");
  bind_streams<double>(m, "64");
}

}  // namespace manyclass
