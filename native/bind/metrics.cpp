#include "bind/metrics.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_metrics(nb::module_& m) { bind_measures(m); }

}  // namespace manyclass
