// Memory for large short-lived arrays: a new one reuses the memory of an old one. Getting cleared pages from
// the system takes as long as decoding the data that is written to them.
#pragma once
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "simd/memory.hpp"

namespace manyclass {

class Recycled {
 public:
  explicit Recycled(size_t size) : size_(size) {
    if (size < smallest || !take_spare()) memory_ = Memory(size);
  }
  Recycled(const Recycled&) = delete;
  Recycled& operator=(const Recycled&) = delete;

  ~Recycled() {
    if (size_ < smallest) return;
    const std::lock_guard<std::mutex> guard(mutex());
    auto& waiting = spares();
    if (waiting.size() == most_spares) waiting.erase(waiting.begin());
    waiting.emplace_back(size_, std::move(memory_));
  }

  void* data() const { return memory_.data(); }

 private:
  static constexpr size_t smallest = 1 << 18;  // smaller arrays are cheap to allocate
  static constexpr size_t most_spares = 4;     // indices and values of two blocks

  bool take_spare() {
    const std::lock_guard<std::mutex> guard(mutex());
    auto& waiting = spares();
    const auto fits = [&](const auto& spare) { return size_ <= spare.first && spare.first <= 2 * size_; };
    const auto found = std::find_if(waiting.begin(), waiting.end(), fits);
    if (found == waiting.end()) return false;
    size_ = found->first;
    memory_ = std::move(found->second);
    waiting.erase(found);
    return true;
  }

  // Never destroyed: Python may free arrays after static destructors have run.
  static std::vector<std::pair<size_t, Memory>>& spares() {
    static auto* waiting = new std::vector<std::pair<size_t, Memory>>();
    return *waiting;
  }
  static std::mutex& mutex() {
    static auto* lock = new std::mutex();
    return *lock;
  }

  size_t size_;
  Memory memory_;
};

}  // namespace manyclass
