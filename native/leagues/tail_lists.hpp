// Short lists of classes and weights, one list per rare feature. All lists share one piece of memory; a list
// that outgrows its room moves to the end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dual/weight_lists.hpp"

namespace manyclass {

template <class T>
class TailLists {
 public:
  struct List {
    const int32_t* classes;
    const T* values;
    int32_t size;
  };

  TailLists() = default;
  explicit TailLists(int64_t lists) : places_(lists) {}

  void clear(int64_t lists) {
    places_.assign(lists, {});
    classes_.clear();
    values_.clear();
    unused_ = 0;
  }

  int64_t lists() const { return std::ssize(places_); }
  int64_t entries() const {
    return total_of(places_, [](const Place& p) { return p.size; });
  }
  List operator[](int64_t l) const {
    const Place& p = places_[l];
    return {classes_.data() + p.begin, values_.data() + p.begin, p.size};
  }
  T find(int64_t l, int32_t c) const {
    const int32_t at = position(places_[l], c);
    return at < 0 ? T(0) : values_[places_[l].begin + at];
  }

  void add(int64_t l, int32_t c, T value) {
    Place& p = places_[l];
    const int32_t at = position(p, c);
    if (at >= 0) {
      values_[p.begin + at] += value;
      return;
    }
    if (p.size == p.room) grow(p);
    classes_[p.begin + p.size] = c;
    values_[p.begin + p.size++] = value;
  }

  // Replaces list l by one of `size` entries, and returns where to write its classes and weights.
  std::pair<int32_t*, T*> assign(int64_t l, int32_t size) {
    Place& p = places_[l];
    if (size > p.room) move_to_end(p, size);
    p.size = size;
    return {classes_.data() + p.begin, values_.data() + p.begin};
  }
  void reserve(int64_t entries) {
    classes_.reserve(entries);
    values_.reserve(entries);
  }

  int64_t bytes() const {
    return static_cast<int64_t>(places_.capacity() * sizeof(Place) + classes_.capacity() * sizeof(int32_t) +
                                values_.capacity() * sizeof(T));
  }

 private:
  struct Place {
    int64_t begin = 0;
    int32_t size = 0, room = 0;
  };

  int32_t position(const Place& p, int32_t c) const {
    return position_in(classes_.data() + p.begin, p.size, c);
  }

  void grow(Place& p) {
    const int64_t from = p.begin;
    move_to_end(p, std::max(4, p.room * 2));
    std::copy_n(classes_.data() + from, p.size, classes_.data() + p.begin);
    std::copy_n(values_.data() + from, p.size, values_.data() + p.begin);
    if (unused_ > std::ssize(values_) / 2) close_gaps();
  }

  void move_to_end(Place& p, int32_t room) {
    unused_ += p.room;
    p.begin = std::ssize(values_);
    p.room = room;
    classes_.resize(p.begin + room);
    values_.resize(p.begin + room);
  }

  void close_gaps() {
    TailLists tidy(lists());
    tidy.reserve(std::ssize(values_) - unused_);
    for (int64_t l = 0; l < lists(); ++l) {
      const Place& p = places_[l];
      if (p.room == 0) continue;
      tidy.move_to_end(tidy.places_[l], p.room);
      const auto [classes, values] = tidy.assign(l, p.size);
      std::copy_n(classes_.data() + p.begin, p.size, classes);
      std::copy_n(values_.data() + p.begin, p.size, values);
    }
    *this = std::move(tidy);
  }

  std::vector<Place> places_;
  std::vector<int32_t> classes_;
  std::vector<T> values_;
  int64_t unused_ = 0;  // entries that belong to no list
};

}  // namespace manyclass
