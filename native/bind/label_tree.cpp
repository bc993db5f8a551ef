#include "bind/label_tree.hpp"

#include "bind/bindings.hpp"

namespace manyclass {

void bind_label_tree(nb::module_& m) {
  bind_label_trees<float>(m, "LabelTree32");
  bind_label_trees<double>(m, "LabelTree64");
}

}  // namespace manyclass
