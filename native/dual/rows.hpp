// Sparse dual variables: for each row i, the classes c != y_i with alpha_ic > 0 and their values, and the
// variable of the row's own class if the loss has one.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "simd/memory.hpp"

namespace manyclass {

template <class T>
class DualRows {
 public:
  struct Row {
    const int32_t* classes;
    const T* values;
    int32_t size;
    T sum;  // of the values
    T own;
  };

  explicit DualRows(int64_t n) : rows_(n) {}
  DualRows(const DualRows&) = delete;
  ~DualRows() { reset(0); }

  // Starts over with n rows whose variables are all 0.
  void reset(int64_t n) {
    for (auto& row : rows_) std::free(row.memory);
    rows_.assign(n, {});
  }

  Row operator[](int64_t i) const {
    const Slot& r = rows_[i];
    const auto* classes = static_cast<const int32_t*>(r.memory);
    return {classes, reinterpret_cast<const T*>(classes + r.room), r.size, r.sum, r.own};
  }

  // Prefetch the slot of row i, and, once that has arrived, its variables.
  void prefetch_place(int64_t i) const { __builtin_prefetch(&rows_[i]); }
  void prefetch(int64_t i) const {
    const Slot& r = rows_[i];
    const auto* classes = static_cast<const int32_t*>(r.memory);
    __builtin_prefetch(classes);
    __builtin_prefetch(classes + r.room);
  }

  int64_t n() const { return std::ssize(rows_); }

  // Stores those of the m values that are positive. Different threads may assign different rows.
  void assign(int64_t i, const int32_t* classes, const T* values, int64_t m, T own = 0) {
    Slot& r = rows_[i];
    int32_t size = 0;
    for (int64_t e = 0; e < m; ++e) size += values[e] > 0;
    if (size > r.room || size < r.room / 4) {
      const int32_t room = (size + 3) / 4 * 4 + (size > 16 ? size / 8 / 4 * 4 : 0);
      void* memory = room ? std::malloc(static_cast<size_t>(room) * (sizeof(int32_t) + sizeof(T))) : nullptr;
      if (room && !memory) throw std::bad_alloc();
      std::free(r.memory);
      r.memory = memory;
      r.room = room;
    }
    auto* to_class = static_cast<int32_t*>(r.memory);
    auto* to_value = reinterpret_cast<T*>(to_class + r.room);
    double sum = 0;
    for (int64_t e = 0; e < m; ++e) {
      if (!(values[e] > 0)) continue;
      *to_class++ = classes[e];
      *to_value++ = values[e];
      sum += values[e];
    }
    r.size = size;
    r.sum = static_cast<T>(sum);
    r.own = own;
  }

  // Stores all rows, given as CSR arrays.
  void assign_rows(const int64_t* ptr, const int32_t* classes, const T* values) {
    for (int64_t i = 0; i < n(); ++i) assign(i, classes + ptr[i], values + ptr[i], ptr[i + 1] - ptr[i]);
  }

  int64_t entries() const {
    return total_of(rows_, [](const Slot& r) { return r.size + (r.own > 0); });
  }
  int64_t bytes() const {
    return total_of(rows_, [](const Slot& r) {
      return static_cast<int64_t>(sizeof(Slot) + r.room * (sizeof(int32_t) + sizeof(T)));
    });
  }

 private:
  struct Slot {
    void* memory = nullptr;  // room classes, then room values
    int32_t size = 0, room = 0;
    T sum = 0, own = 0;
  };
  std::vector<Slot> rows_;
};

}  // namespace manyclass
