// The only file that knows Python: arrays in, arrays out, the GIL released while a kernel runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace nb = nanobind;

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

}  // namespace

NB_MODULE(CORE_NAME, m) {
  m.def("supported_builds", &supported_builds, "The builds that this processor can run.");
}
