// Deliberate faults, only built with sanitizers, to check that these detect them.
#include <limits>
#include <thread>
#include <vector>

extern "C" {

__attribute__((visibility("default"))) int fault_address(int place) {
  const std::vector<int> numbers(4);
  return numbers.data()[place];
}

__attribute__((visibility("default"))) int fault_undefined(int number) {
  return std::numeric_limits<int>::max() - 4 + number;
}

__attribute__((visibility("default"))) int fault_thread(int number) {
  const auto add = [&] { ++number; };
  std::thread other(add);
  add();
  other.join();
  return number;
}

__attribute__((visibility("default"))) int fault_openmp(int number) {
#pragma omp parallel num_threads(2)
  ++number;
  return number;
}
}
