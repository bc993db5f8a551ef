// Zeroed memory that starts on a 64-byte boundary, as vector loads and stores need.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace manyclass {

// Large allocations are mapped, so that the system gets them back as soon as they are freed. Very large ones
// ask for huge pages: scattered reads of weight rows would otherwise miss the TLB on nearly every row.
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes) {
    if (bytes < large) {
      begin_ = std::aligned_alloc(64, (std::max<size_t>(bytes, 1) + 63) / 64 * 64);
      if (!begin_) throw std::bad_alloc();
      std::memset(begin_, 0, bytes);
      return;
    }
    const size_t border = bytes >= 2 * huge ? huge : 0;
    mapped_ = bytes + border;
    begin_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin_ == MAP_FAILED) {
      mapped_ = 0;
      begin_ = nullptr;
      throw std::bad_alloc();
    }
#if defined(MADV_HUGEPAGE)
    if (border) madvise(begin_, mapped_, MADV_HUGEPAGE);  // only a hint: a failure does no harm
#endif
  }
  Memory(Memory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Memory() {
    if (mapped_)
      munmap(begin_, mapped_);
    else
      std::free(begin_);
  }

  void* data() const {
    const auto address = reinterpret_cast<uintptr_t>(begin_);
    return mapped_ >= 3 * huge ? reinterpret_cast<void*>((address + huge - 1) / huge * huge) : begin_;
  }

 private:
  static constexpr size_t large = size_t(1) << 20, huge = size_t(1) << 21;
  void* begin_ = nullptr;
  size_t mapped_ = 0;
};

// An array that can be viewed from outside: `owner` keeps its memory alive when the buffer is reset or moved.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t n) { reset(n); }
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    std::swap(memory_, taken.memory_);
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    return *this;
  }
  void reset(int64_t n) {
    *this = Buffer();  // frees the old memory first, and leaves an empty buffer if there is no more
    memory_ = std::make_shared<const Memory>(sizeof(T) * static_cast<size_t>(n));
    data_ = static_cast<T*>(memory_->data());
    size_ = n;
  }
  void reserve(int64_t n) {
    if (n > size_) reset(n);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  const std::shared_ptr<const Memory>& owner() const { return memory_; }

 private:
  std::shared_ptr<const Memory> memory_;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

// The sum of of(one) over all elements, for example of their bytes.
int64_t total_of(const auto& all, auto of) {
  int64_t total = 0;
  for (const auto& one : all) total += of(one);
  return total;
}

}  // namespace manyclass
