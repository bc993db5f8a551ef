// The module. This file and those named bind_* are all that knows Python: arrays in, arrays out, the GIL
// released while a kernel runs.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace manyclass;

namespace {

std::vector<std::string> supported_builds() {
  std::vector<std::string> names{"baseline"};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) names.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    names.push_back("avx512");
#endif
  return names;
}

// Runs Python's signal handlers from within a long call. A handler that raises counts as a request to stop.
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
  m.def("supported_builds", &supported_builds, "The builds that this processor can run.");
  bind_interrupt(m);
  bind_rows(m);
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
