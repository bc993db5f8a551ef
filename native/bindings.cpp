// The module. This file and the bind_*.hpp are all that knows Python: arrays in, arrays out, the GIL released
// while a kernel runs.
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "bind_blocks.hpp"
#include "bind_leagues.hpp"
#include "bind_planes.hpp"
#include "bind_prediction.hpp"
#include "bind_rows.hpp"
#include "bind_streams.hpp"
#include "bind_text.hpp"
#include "interrupt.hpp"

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
      .def_prop_ro("requested", &Interrupt::requested);
}

template <class T>
void bind_all(nb::module_& m, const std::string& suffix) {
  bind_rows<T>(m, suffix);
  bind_streams<T>(m, suffix);
  bind_leagues<T>(m, suffix);
  bind_blocks<T>(m, suffix);
  bind_predictions<T>(m);
}

}  // namespace

NB_MODULE(CORE_NAME, m) {
  m.def("supported_builds", &supported_builds, "The builds that this processor can run.");
  bind_interrupt(m);
  bind_places(m);
  bind_all<float>(m, "32");
  bind_all<double>(m, "64");
  bind_text_formats(m);
  bind_planes(m);
}
