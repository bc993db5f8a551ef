// Sparse weights of rare features: for each feature a list of classes and weights, which grows as the dual
// variables of more classes become positive.
//
// Each weight is a sum in the order of its additions, so results do not depend on the position of a class in
// its list. Different threads may change lists of different features.
#pragma once
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "rows/layout.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The position of class c in a list in which it occurs at most once, or -1.
inline int32_t position_in(const int32_t* classes, int32_t size, int32_t c) {
  int32_t at = -1;
#pragma omp simd reduction(max : at)
  for (int32_t e = 0; e < size; ++e) at = std::max(at, classes[e] == c ? e : -1);
  return at;
}

template <class T>
class WeightLists {
 public:
  struct List {
    const int32_t* classes;
    T* values;
    int32_t size;
  };

  explicit WeightLists(int64_t features) : slots_(features) {}
  WeightLists(const WeightLists&) = delete;
  ~WeightLists() { clear(); }

  int64_t features() const { return std::ssize(slots_); }
  List operator[](int64_t f) const {
    const Slot& s = slots_[f];
    return {s.classes(), s.values(), s.size};
  }

  void add(int64_t f, int32_t c, T value) {
    Slot& s = slots_[f];
    const int32_t at = position_in(s.classes(), s.size, c);
    if (at >= 0)
      s.values()[at] += value;
    else
      append(f, c, value);
  }

  // For a class that is not in the list yet.
  void append(int64_t f, int32_t c, T value) {
    Slot& s = slots_[f];
    if (s.size == s.room) grow(s, s.size + std::max(4, s.size / 4));
    s.classes()[s.size] = c;
    s.values()[s.size++] = value;
  }

  // Adds x times `count` non-zero changes of distinct classes. by_class: the same changes, indexed by class,
  // and 0 elsewhere.
  template <class V>
  void add_changes(int64_t f, T x, const int32_t* classes, const V* changes, int64_t count,
                   const V* by_class) {
    Slot& s = slots_[f];
    int64_t missing = count;
    if (count > 8) {
      T* values = s.values();
      const int32_t* listed = s.classes();
      for (int32_t e = 0; e < s.size; ++e) {
        const T change = by_class[listed[e]];
        values[e] += x * change;
        missing -= change != 0;
      }
      if (missing == 0) return;
    }
    const int32_t before = s.size;
    for (int64_t q = 0; q < count; ++q) {
      const int32_t at = position_in(s.classes(), before, classes[q]);
      if (at < 0)
        append(f, classes[q], x * changes[q]);
      else if (count <= 8)
        s.values()[at] += x * changes[q];
    }
  }

  // Adds the contribution of the rare features of row i to its scores s. (noipa: GCC 12 would otherwise
  // conclude that this function has no effect, and drop the calls.)
  template <class A>
  [[gnu::noipa]] void score(const Layout<T>& rows, int64_t i, A* s) const {
    for (int64_t t = rows.tail_ptr[i]; t < rows.tail_ptr[i + 1]; ++t) {
      const Slot& slot = slots_[rows.tail_index[t]];
      const int32_t* classes = slot.classes();
      const T* values = slot.values();
      const A x = rows.tail_value[t];
      for (int32_t e = 0; e < slot.size; ++e) s[classes[e]] += x * values[e];
    }
  }

  void reserve(int64_t f, int32_t room) {
    if (room > slots_[f].room) grow(slots_[f], room);
  }
  void clear(int64_t f) {
    std::free(slots_[f].memory);
    slots_[f] = {};
  }
  void clear() {
    for (int64_t f = 0; f < features(); ++f) clear(f);
  }

  int64_t entries() const {
    return total_of(slots_, [](const Slot& s) { return s.size; });
  }
  int64_t bytes() const {
    int64_t total = features() * static_cast<int64_t>(sizeof(Slot));
    for (const Slot& s : slots_)
      if (s.memory) total += static_cast<int64_t>(malloc_usable_size(s.memory) + sizeof(size_t));
    return total;
  }

 private:
  struct Slot {
    void* memory = nullptr;  // room classes, then room values
    int32_t size = 0, room = 0;

    int32_t* classes() const { return static_cast<int32_t*>(memory); }
    T* values() const { return reinterpret_cast<T*>(classes() + room); }
  };

  static void grow(Slot& s, int32_t room) {
    room = (room + 3) / 4 * 4;  // aligns the values to 16 bytes
    Slot larger{std::malloc(static_cast<size_t>(room) * (sizeof(int32_t) + sizeof(T))), s.size, room};
    if (!larger.memory) throw std::bad_alloc();
    std::copy_n(s.classes(), s.size, larger.classes());
    std::copy_n(s.values(), s.size, larger.values());
    std::free(s.memory);
    s = larger;
  }

  std::vector<Slot> slots_;
};

}  // namespace manyclass
