// A team of threads that go through a sequence of short steps together.
//
// Each thread has its own share of the tasks of a step, the same in every step, so that the data it has
// written stay in its caches. Threads that finish early take over tasks of the others. A waiting thread first
// spins, for about as long as a step takes when every core is free, and then sleeps: if another program has
// taken the core of one thread, the others should not burn theirs.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "parallel/interrupt.hpp"
#include "parallel/tasks.hpp"

namespace manyclass {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Team {
 public:
  explicit Team(int threads) : threads_(threads), missing_(threads), taken_(threads) {}

  // A barrier: the last thread to arrive resets the task counters for the next step. If a thread has left
  // because of an exception, the others leave too.
  void meet() {
    if (threads_ == 1) {
      taken_[0].count.store(0, std::memory_order_relaxed);
      return;
    }
    const uint32_t now = generation_.load(std::memory_order_acquire);
    if (one_has_left_.load(std::memory_order_relaxed)) throw Left();
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      missing_.store(threads_, std::memory_order_relaxed);
      for (auto& share : taken_) share.count.store(0, std::memory_order_relaxed);
      // Release order would let this store move past the load of sleepers_, and a thread that falls asleep
      // just then would never be woken.
      generation_.store(now + 1, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
      return;
    }
    for (int spin = 0; spin < 2000; ++spin) {
      if (generation_.load(std::memory_order_acquire) != now) return leave_with_others();
      pause_briefly();
    }
    const auto begin = std::chrono::steady_clock::now();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (generation_.load(std::memory_order_seq_cst) == now) generation_.wait(now);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    const auto slept = std::chrono::steady_clock::now() - begin;
    nanoseconds_asleep_.fetch_add(std::chrono::nanoseconds(slept).count(), std::memory_order_relaxed);
    leave_with_others();
  }

  // The number of the calling thread in its team; the thread that called `run` is 0.
  static int my_number() { return my_number_; }

  // Calls body(me) on every thread, and rethrows the first exception when all have ended.
  //
  // These are not OpenMP's threads, which spin for milliseconds after their work, on a core that the thread
  // reading the next rows may need.
  void run(auto body) {
    std::atomic<int> start{waiting};
    std::vector<std::jthread> others;
    try {
      for (int me = 1; me < threads_; ++me)
        others.emplace_back([&, me] {
          start.wait(waiting);
          my_number_ = me;
          if (start.load() == all_are_here) work(body, me);
        });
    } catch (...) {  // the system is out of threads: release those that have started
      start_all(start, some_are_missing);
      throw;
    }
    start_all(start, all_are_here);
    work(body, 0);
    others.clear();
    error_.rethrow();
  }

  // Summed over the threads; large if the machine has no free core for one of them.
  double seconds_asleep() const { return 1e-9 * static_cast<double>(nanoseconds_asleep_.load()); }

  // Calls task(t) for those of the tasks 0..count-1 that no other thread has taken; thread `me` starts with
  // its own share. If a task throws, its thread leaves the team, and the others leave before their next step.
  void share_out(int64_t count, int me, auto task) {
    leave_with_others();
    for (int helped = 0; helped < threads_; ++helped) {
      const int owner = (me + helped) % threads_;
      const int64_t first = owner * count / threads_, last = (owner + 1) * count / threads_;
      for (int64_t t; (t = first + taken_[owner].count.fetch_add(1, std::memory_order_relaxed)) < last;)
        task(t);
    }
  }

 private:
  enum { waiting, all_are_here, some_are_missing };
  static inline thread_local int my_number_ = 0;

  struct Left {};  // thrown in threads whose team has lost a member

  void leave_with_others() const {
    if (one_has_left_.load(std::memory_order_relaxed)) throw Left();
  }

  void work(auto& body, int me) noexcept {
    try {
      body(me);
    } catch (...) {
      error_.keep();
      one_has_left_.store(true, std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_release);
      generation_.notify_all();
    }
  }

  static void start_all(std::atomic<int>& start, int how) {
    start.store(how);
    start.notify_all();
  }

  const int threads_;
  FirstError error_;
  std::atomic<bool> one_has_left_{false};
  alignas(64) std::atomic<int> missing_;
  alignas(64) std::atomic<uint32_t> generation_{0};
  struct alignas(64) Share {
    std::atomic<int64_t> count{0};
  };
  std::vector<Share> taken_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int64_t> nanoseconds_asleep_{0};
};

// Calls task(t, scratch) for the tasks 0..count-1 on a team of at most `threads` threads. Each makes its own
// scratch with `make`.
void team_tasks(int64_t count, int threads, auto make, auto task) {
  Team team(static_cast<int>(std::clamp<int64_t>(count, 1, threads)));
  team.run([&](int me) {
    auto scratch = make();
    team.share_out(count, me, [&](int64_t t) { task(t, scratch); });
  });
}
void team_tasks(int64_t count, int threads, auto task) {
  team_tasks(count, threads, [] { return 0; }, [&](int64_t t, int) { task(t); });
}

// Whether long work should end. Only thread 0 of a team listens for Ctrl-C.
inline bool interrupted(Interrupt& interrupt) {
  return Team::my_number() == 0 ? interrupt.poll() : interrupt.requested();
}

}  // namespace manyclass
