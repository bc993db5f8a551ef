// The parts of the module. Each is compiled on its own, so that a change in one kernel rebuilds only its
// part.
#pragma once
#include <nanobind/nanobind.h>

namespace manyclass {

void bind_layouts(nanobind::module_& m);
void bind_coupled(nanobind::module_& m);
void bind_maximum_entropy(nanobind::module_& m);
void bind_streams(nanobind::module_& m);
void bind_leagues(nanobind::module_& m);
void bind_blocks(nanobind::module_& m);
void bind_labels(nanobind::module_& m);
void bind_max_margin(nanobind::module_& m);
void bind_prediction(nanobind::module_& m);
void bind_checks(nanobind::module_& m);
void bind_metrics(nanobind::module_& m);
void bind_label_tree(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace manyclass
