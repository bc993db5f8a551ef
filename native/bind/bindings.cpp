// The Python module. Only this folder knows Python: it takes and returns arrays, and releases the GIL while a
// kernel runs.
#include "bind/bindings.hpp"

#include "parallel/interrupt.hpp"

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
  for (ModulePart* bind :
       {bind_layouts, bind_coupled, bind_maximum_entropy, bind_streams, bind_leagues, bind_blocks,
        bind_labels, bind_max_margin, bind_prediction, bind_metrics, bind_label_tree, bind_text})
    bind(m);
}
