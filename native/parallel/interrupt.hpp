// Asks a long call to stop, because of Ctrl-C or because its time is up.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>

namespace manyclass {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point begin_ = clock::now();
};

class Interrupt {
 public:
  // Called every now and then by the thread that started the work; may call `request`.
  std::function<void()> listen;

  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  void stop_after(double seconds) {
    limited_ = true;
    deadline_ =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  }

  // The number of pieces of work that each thread still has to begin, on average.
  void set_waiting(double pieces) { waiting_.store(pieces, std::memory_order_relaxed); }
  // Whether the current piece of work should end as it is, so that all waiting pieces can start before the
  // deadline: each needs `passes_for_each` passes, plus `seconds_around` to begin and end.
  bool hurries(double seconds_per_pass) const {
    const double waiting = waiting_.load(std::memory_order_relaxed);
    if (!limited_ || waiting <= 0) return false;
    const double left = std::chrono::duration<double>(deadline_ - clock::now()).count();
    return left < (passes_for_each * seconds_per_pass + seconds_around) * waiting;
  }

  // Called by thread 0 of a team only; the others read `requested`.
  bool poll() {
    const auto now = clock::now();
    if (limited_ && now >= deadline_) request();
    if (listen && now - heard_ > std::chrono::milliseconds(50)) {
      heard_ = now;
      listen();
    }
    return requested();
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr double passes_for_each = 4, seconds_around = 5e-3;
  std::atomic<bool> requested_{false};
  std::atomic<double> waiting_{0};
  bool limited_ = false;
  clock::time_point deadline_, heard_;
};

}  // namespace manyclass
