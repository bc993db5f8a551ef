// A separate module, compiled for any processor, that tells which builds of the core can run on this one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace {

std::vector<std::string> supported_builds() {
  std::vector<std::string> names{"baseline"};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) names.insert(names.begin(), "avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    names.insert(names.begin(), "avx512");
#endif
  return names;
}

}  // namespace

NB_MODULE(processor, m) {
  m.def("supported_builds", &supported_builds, "The builds that this processor can run, the best one first.");
}
