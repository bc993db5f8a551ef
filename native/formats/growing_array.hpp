// An array that grows without copying its elements, and frees its memory while it is read out. The peak is
// the data plus one block; a doubling vector would need up to three times the data.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace manyclass {

template <class T>
class GrowingArray {
 public:
  void push_back(T value) { append(&value, 1); }

  template <class U>
  void append(const U* values, int64_t count) {
    while (count > 0) {
      if (room_ == 0) {
        blocks_.push_back(new_block());
        room_ = block_size;
      }
      const int64_t fits = std::min(count, room_);
      T* const to = blocks_.back().get() + (block_size - room_);
      for (int64_t k = 0; k < fits; ++k) to[k] = static_cast<T>(values[k]);
      values += fits;
      count -= fits;
      room_ -= fits;
      size_ += fits;
    }
  }

  // Passes all elements to `take(block, count)` in order, and frees each block afterwards. Leaves the array
  // empty.
  void drain(auto take) {
    for (auto& block : blocks_) {
      const int64_t count = std::min(block_size, size_);
      take(block.get(), count);
      size_ -= count;
      block.reset();
    }
    blocks_.clear();
    room_ = 0;
  }

 private:
  static constexpr int64_t block_size = int64_t{1} << 20;
  static constexpr size_t block_bytes = block_size * sizeof(T);

  // Mapped, because malloc may keep freed blocks, and then the peak would be twice the data after all.
  struct Unmap {
    void operator()(T* block) const { munmap(block, block_bytes); }
  };
  using Block = std::unique_ptr<T, Unmap>;

  static Block new_block() {
    void* const memory =
        mmap(nullptr, block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return Block(static_cast<T*>(memory));
  }

  std::vector<Block> blocks_;
  int64_t room_ = 0;
  int64_t size_ = 0;
};

}  // namespace manyclass
