// An array that grows without ever copying what it holds and gives memory back while it is read out: the peak
// is the data plus one block, where a doubling vector would need up to three times the data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace manyclass {

template <class T>
class GrowingArray {
 public:
  std::int64_t size() const { return size_; }

  void push_back(T value) { append(&value, 1); }

  template <class U>
  void append(const U* values, std::int64_t count) {
    while (count > 0) {
      if (room_ == 0) {
        blocks_.push_back(std::make_unique_for_overwrite<T[]>(block_size));
        room_ = block_size;
      }
      const std::int64_t fits = std::min(count, room_);
      T* const to = blocks_.back().get() + (block_size - room_);
      for (std::int64_t k = 0; k < fits; ++k) to[k] = static_cast<T>(values[k]);
      values += fits;
      count -= fits;
      room_ -= fits;
      size_ += fits;
    }
  }

  // Hand every element to `take(block, count)` in order, freeing each block after it; the array is then
  // empty.
  template <class Take>
  void drain(Take take) {
    for (auto& block : blocks_) {
      const std::int64_t count = std::min(block_size, size_);
      take(block.get(), count);
      size_ -= count;
      block.reset();
    }
    blocks_.clear();
    room_ = 0;
  }

 private:
  static constexpr std::int64_t block_size = std::int64_t{1} << 17;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::int64_t room_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace manyclass
