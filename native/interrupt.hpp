// How a long call is asked to stop: by Ctrl-C or because its time is up.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>

namespace manyclass {

class Interrupt {
 public:
  // `listen` is called now and then from the thread that started the work; it may call `request`.
  std::function<void()> listen;

  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  void stop_after(double seconds) {
    limited_ = true;
    deadline_ =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  }

  // For thread 0 of a team; the others only read `requested`.
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
  std::atomic<bool> requested_{false};
  bool limited_ = false;
  clock::time_point deadline_, heard_;
};

}  // namespace manyclass
