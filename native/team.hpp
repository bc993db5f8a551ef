// A team of threads that work through a sequence of short steps together.
// Waiting first spins for a few microseconds (a step is about that long when every core is free) and then
// sleeps: a thread whose core is taken by somebody else must not make its partner burn another one.
#pragma once
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace manyclass {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Team {
 public:
  explicit Team(int threads) : threads_(threads), missing_(threads) {}

  int size() const { return threads_; }

  // All threads arrive; the last one resets the task counters of the step that begins.
  void meet() {
    if (threads_ == 1) {
      next_task_.store(0, std::memory_order_relaxed);
      return;
    }
    const uint32_t now = generation_.load(std::memory_order_acquire);
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      missing_.store(threads_, std::memory_order_relaxed);
      next_task_.store(0, std::memory_order_relaxed);
      generation_.store(now + 1, std::memory_order_release);
      if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
      return;
    }
    for (int spin = 0; spin < 400; ++spin) {
      if (generation_.load(std::memory_order_acquire) != now) return;
      pause_briefly();
    }
    const auto begin = std::chrono::steady_clock::now();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (generation_.load(std::memory_order_seq_cst) == now) generation_.wait(now);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    const auto slept = std::chrono::steady_clock::now() - begin;
    nanoseconds_asleep_.fetch_add(std::chrono::nanoseconds(slept).count(), std::memory_order_relaxed);
  }

  // Summed over the threads: large when the machine has no core left for one of them.
  double seconds_asleep() const { return 1e-9 * static_cast<double>(nanoseconds_asleep_.load()); }

  // The next task of this step that nobody has taken.
  int64_t take() { return next_task_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const int threads_;
  alignas(64) std::atomic<int> missing_;
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int64_t> next_task_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int64_t> nanoseconds_asleep_{0};
};

}  // namespace manyclass
