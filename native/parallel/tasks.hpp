// Tasks that do not depend on each other, on the threads of OpenMP. An exception must not leave these
// threads: the first one comes out when all tasks were tried.
#pragma once
#include <omp.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>

namespace manyclass {

// Keeps the first exception that any thread throws.
class FirstError {
 public:
  template <class F>
  void catching(F f) noexcept {
    try {
      f();
    } catch (...) {
      keep();
    }
  }

  // To be called while an exception is handled.
  void keep() noexcept {
    const std::lock_guard<std::mutex> guard(lock_);
    if (!thrown_) thrown_ = std::current_exception();
  }

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::mutex lock_;
  std::exception_ptr thrown_;
};

// work(t, scratch) for the tasks 0..count-1, handed out `chunk` at a time; each thread has a scratch of its
// own, which `make` gives it.
template <class Make, class Work>
void parallel_tasks(int64_t count, int64_t chunk, int threads, Make make, Work work) {
  FirstError error;
#pragma omp parallel num_threads(threads)
  {
    std::optional<decltype(make())> scratch;
    error.catching([&] { scratch.emplace(make()); });
#pragma omp for schedule(dynamic, chunk)
    for (int64_t t = 0; t < count; ++t)
      error.catching([&] {
        if (scratch) work(t, *scratch);
      });
  }
  error.rethrow();
}

}  // namespace manyclass
