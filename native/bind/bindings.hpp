// The parts of the module. Each is compiled on its own, so that a change in one kernel rebuilds only its
// part.
#pragma once
#include <string>

#include "bind/arrays.hpp"

namespace manyclass {

using ModulePart = void(nb::module_& m);
ModulePart bind_layouts, bind_coupled, bind_maximum_entropy, bind_streams, bind_leagues, bind_blocks,
    bind_labels, bind_max_margin, bind_prediction, bind_metrics, bind_label_tree, bind_text;

// Makes the classes of a kernel for float32 and float64, whose names end in 32 and 64. bind(class) adds the
// members.
template <template <class> class Kernel, class Bind>
void bind_both(nb::module_& m, const std::string& name, Bind bind) {
  bind(nb::class_<Kernel<float>>(m, (name + "32").c_str()));
  bind(nb::class_<Kernel<double>>(m, (name + "64").c_str()));
}

}  // namespace manyclass
