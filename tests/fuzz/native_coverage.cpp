// Tells libFuzzer which parts of the readers an input reaches: gcc calls a function at every branch, which
// counts for libFuzzer. Without libFuzzer, the functions called here do nothing.
#include <cstddef>
#include <cstdint>

extern "C" {
void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);
void __sanitizer_cov_pcs_init(const std::uintptr_t* begin, const std::uintptr_t* end);
}

namespace {

constexpr int kBits = 14;
constexpr std::size_t kCounters = std::size_t{1} << kBits;
std::uint8_t counters[kCounters];
// libFuzzer needs an address and flags for each counter, only to print them.
std::uintptr_t places[kCounters][2];

__attribute__((constructor)) void tell_libfuzzer() {
  for (std::size_t i = 0; i < kCounters; ++i) places[i][0] = reinterpret_cast<std::uintptr_t>(&counters[i]);
  __sanitizer_cov_8bit_counters_init(counters, counters + kCounters);
  __sanitizer_cov_pcs_init(&places[0][0], &places[0][0] + 2 * kCounters);
}

}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  ++counters[(place * 0x9E3779B97F4A7C15u) >> (64 - kBits)];
}

// gcc also reports comparisons of floating-point numbers, which libFuzzer does not use.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}
