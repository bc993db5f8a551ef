// The Python module. Only this folder knows Python: it takes and returns arrays, and releases the GIL while a
// kernel runs.
#include "bind/bindings.hpp"

#include <nanobind/nanobind.h>

#include "parallel/interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace manyclass;

namespace {

// Runs Python's signal handlers during a long call. A handler that raises counts as a request to stop.
void bind_interrupt(nb::module_& m) {
  nb::class_<Interrupt>(m, "Interrupt")
      .def("__init__",
           [](Interrupt* self) {
             new (self) Interrupt();
             self->listen = [self] {
               nb::gil_scoped_acquire gil;
               if (PyErr_CheckSignals() != 0) {
                 PyErr_Clear();
                 self->request();
               }
             };
           })
      .def("request", &Interrupt::request)
      .def("stop_after", &Interrupt::stop_after, "seconds"_a)
      .def("set_waiting", &Interrupt::set_waiting, "pieces"_a)
      .def_prop_ro("requested", &Interrupt::requested);
}

}  // namespace

NB_MODULE(CORE_NAME, m) {
  bind_interrupt(m);
  bind_layouts(m);
  bind_coupled(m);
  bind_maximum_entropy(m);
  bind_streams(m);
  bind_leagues(m);
  bind_blocks(m);
  bind_labels(m);
  bind_max_margin(m);
  bind_prediction(m);
  bind_checks(m);
  bind_metrics(m);
  bind_label_tree(m);
  bind_text(m);
}
