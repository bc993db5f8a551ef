// Runs independent tasks on OpenMP threads. No exception may leave these threads, so the first one is kept
// and rethrown after all tasks have been tried.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>

namespace manyclass {

class FirstError {
 public:
  void catching(auto f) noexcept {
    try {
      f();
    } catch (...) {
      keep();
    }
  }

  // To be called from a catch block.
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

// Calls work(t, scratch) for the tasks 0..count-1, handed out `chunk` at a time. Each thread makes its own
// scratch with `make`.
void parallel_tasks(int64_t count, int64_t chunk, int threads, auto make, auto work) {
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
