// A league: some classes with their weights. Frequent features have a dense row of weights, one value a
// class; rare ones (the layout's tail) a short list of those classes that have one; features of a single row
// none: their part of a score follows from that row's own variables.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "array_checks.hpp"
#include "layout.hpp"
#include "vector.hpp"

namespace manyclass {

// Short lists of classes with a weight each, one list a rare feature. All lie in one piece of memory, where a
// list that grows moves to the end.
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

  int64_t lists() const { return static_cast<int64_t>(places_.size()); }
  int64_t entries() const {
    int64_t total = 0;
    for (const Place& p : places_) total += p.size;
    return total;
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

  // A new list; what list l held is gone. Room for `size` classes and weights, to be written.
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
    const int32_t* classes = classes_.data() + p.begin;
    int32_t at = -1;
#pragma omp simd reduction(max : at)
    for (int32_t e = 0; e < p.size; ++e) at = std::max(at, classes[e] == c ? e : -1);
    return at;
  }

  void grow(Place& p) {
    const int64_t from = p.begin;
    move_to_end(p, std::max(4, p.room * 2));
    std::copy_n(classes_.data() + from, p.size, classes_.data() + p.begin);
    std::copy_n(values_.data() + from, p.size, values_.data() + p.begin);
    if (unused_ > static_cast<int64_t>(values_.size()) / 2) close_gaps();
  }

  void move_to_end(Place& p, int32_t room) {
    unused_ += p.room;
    p.begin = static_cast<int64_t>(values_.size());
    p.room = room;
    classes_.resize(p.begin + room);
    values_.resize(p.begin + room);
  }

  void close_gaps() {
    TailLists tidy(lists());
    tidy.reserve(static_cast<int64_t>(values_.size()) - unused_);
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
  int64_t unused_ = 0;  // entries that no list has
};

// What a league that has gone leaves behind.
template <class T>
struct LeagueMemory {
  Buffer<T> W;
  TailLists<T> tail;
};

template <class T>
struct League {
  std::vector<int32_t> classes, members;  // its classes; the rows of these classes
  int64_t stride = 0;
  bool here = false;  // weights may be with another worker
  Buffer<T> W;        // heads x stride
  TailLists<T> tail;
  std::vector<T> sums;  // by member: the sum of its variables

  int64_t size() const { return static_cast<int64_t>(classes.size()); }

  void start(const Layout<T>& rows) {
    W.reset(rows.heads() * stride);
    tail.clear(rows.tails());
    sums.assign(members.size(), T(0));
    here = true;
  }

  // The same where all weights are about to be written, in memory that another league has left, if that is
  // enough.
  void start_in(LeagueMemory<T> left, const Layout<T>& rows) {
    if (left.W.size() < rows.heads() * stride) {
      start(rows);
      return;
    }
    W = std::move(left.W);
    tail = std::move(left.tail);
    tail.clear(rows.tails());
    sums.assign(members.size(), T(0));
    here = true;
  }

  int64_t bytes() const { return W.bytes() + tail.bytes() + static_cast<int64_t>(sums.size() * sizeof(T)); }
};

// What travels: the weights that are not 0, and the sums. A frequent feature has a bit for each class and
// then its weights, a rare one the places of its classes, in as few bytes as they need.
template <class T>
class LeagueParcel {
 public:
  LeagueParcel(const League<T>& league, int64_t heads) : memory_(most_bytes(league, heads)) {
    to_ = static_cast<uint8_t*>(memory_.data());
    const uint8_t* const begin = to_;
    for (int64_t h = 0; h < heads; ++h) put_head(league.W.data() + h * league.stride, league.stride);
    for (int64_t l = 0; l < league.tail.lists(); ++l) {
      const auto list = league.tail[l];
      put(list.size);
      if (narrow(league))
        for (int32_t e = 0; e < list.size; ++e) put(static_cast<uint16_t>(list.classes[e]));
      else
        put_all(list.classes, list.size);
      put_all(list.values, list.size);
    }
    put_all(league.sums.data(), static_cast<int64_t>(league.sums.size()));
    size_ = static_cast<size_t>(to_ - begin);
  }

  Memory& memory() { return memory_; }
  size_t size() const { return size_; }

  // Into a league that has been started.
  static void unpack(const uint8_t* from, size_t size, League<T>& league, const Layout<T>& rows) {
    Reader in{from, from + size};
    vec<T> seen = {};
    for (int64_t h = 0; h < rows.heads(); ++h)
      take_head(in, league.W.data() + h * league.stride, league, seen);
    streamed();
    for (int l = 0; l < lanes; ++l)
      if (seen[l] != 0) throw std::invalid_argument("a weight of a league is NaN or infinite");
    league.tail.clear(rows.tails());
    const size_t place_bytes = narrow(league) ? sizeof(uint16_t) : sizeof(int32_t);
    league.tail.reserve(
        static_cast<int64_t>(static_cast<size_t>(in.end - in.at) / (place_bytes + sizeof(T))));
    for (int64_t l = 0; l < league.tail.lists(); ++l) {
      const int32_t size = in.count(place_bytes);
      const auto [classes, values] = league.tail.assign(l, size);
      if (narrow(league))
        for (int32_t e = 0; e < size; ++e) classes[e] = in.template take<uint16_t>();
      else
        in.take_all(classes, size);
      int32_t least = 0, most = 0;
      for (int32_t e = 0; e < size; ++e) {
        least = std::min(least, classes[e]);
        most = std::max(most, classes[e]);
      }
      if (least < 0 || most >= league.size()) throw std::invalid_argument("a league has no such class");
      in.take_all(values, size);
      check_finite("weights of a league", std::span<const T>(values, size));
    }
    in.expect(league.sums.size() * sizeof(T));
    in.take_all(league.sums.data(), static_cast<int64_t>(league.sums.size()));
    check_finite("sums of a league", std::span<const T>(league.sums));
    if (in.at != in.end) throw std::invalid_argument("the weights of a league are not of this problem");
  }

 private:
  static constexpr int lanes = Lanes<T>::count;
  static constexpr size_t mask_bytes = lanes / 8;

  static bool narrow(const League<T>& league) { return league.size() <= 65536; }

  // Of it only what is written to is ever given to the process; compress_lanes may write a vector more.
  static size_t most_bytes(const League<T>& league, int64_t heads) {
    const int64_t weights = heads * league.stride;
    return static_cast<size_t>(weights / 8) + static_cast<size_t>(weights) * sizeof(T) +
           static_cast<size_t>(league.tail.lists()) * sizeof(int32_t) +
           static_cast<size_t>(league.tail.entries()) * (sizeof(int32_t) + sizeof(T)) +
           league.sums.size() * sizeof(T) + sizeof(vec<T>);
  }

  template <class V>
  void put(V v) {
    std::memcpy(to_, &v, sizeof(V));
    to_ += sizeof(V);
  }

  template <class V>
  void put_all(const V* v, int64_t count) {
    if (count == 0) return;
    std::memcpy(to_, v, static_cast<size_t>(count) * sizeof(V));
    to_ += static_cast<size_t>(count) * sizeof(V);
  }

  void put_head(const T* w, int64_t stride) {
    uint8_t* mask_at = to_;
    to_ += stride / 8;
    for (int64_t c = 0; c < stride; c += lanes, mask_at += mask_bytes) {
      const vec<T> v = load(w + c);
      const uint32_t found = nonzero_lanes<T>(v);
      std::memcpy(mask_at, &found, mask_bytes);
      compress_lanes<T>(to_, found, v);
      to_ += static_cast<size_t>(__builtin_popcount(found)) * sizeof(T);
    }
  }

  // What is left is compared with what is wanted once a feature, not once a weight.
  struct Reader {
    const uint8_t *at, *end;
    void expect(size_t bytes) const {
      if (static_cast<size_t>(end - at) < bytes)
        throw std::invalid_argument("the weights of a league are cut short");
    }
    template <class V>
    V take() {
      V v;
      std::memcpy(&v, at, sizeof(V));
      at += sizeof(V);
      return v;
    }
    template <class V>
    void take_all(V* to, int64_t count) {
      if (count == 0) return;
      std::memcpy(to, at, static_cast<size_t>(count) * sizeof(V));
      at += static_cast<size_t>(count) * sizeof(V);
    }
    int32_t count(size_t index_bytes) {
      expect(sizeof(int32_t));
      const auto found = take<int32_t>();
      expect(static_cast<size_t>(static_cast<uint32_t>(found)) * (index_bytes + sizeof(T)));
      return found;
    }
  };

  // seen: stays 0 while all weights are finite.
  static void take_head(Reader& in, T* w, const League<T>& league, vec<T>& seen) {
    const size_t masks = static_cast<size_t>(league.stride / 8);
    in.expect(masks);
    const uint8_t* mask_at = in.at;
    in.at += masks;
    for (int64_t c = 0; c < league.stride; c += lanes, mask_at += mask_bytes) {
      uint32_t found = 0;
      std::memcpy(&found, mask_at, mask_bytes);
      if (c + lanes > league.size() && found >> (league.size() - c))
        throw std::invalid_argument("a league has no such class");
      const size_t bytes = static_cast<size_t>(__builtin_popcount(found)) * sizeof(T);
      in.expect(bytes);
      const vec<T> weights = expand_lanes<T>(in.at, found);
      seen += weights * T(0);
      stream(w + c, weights);
      in.at += bytes;
    }
  }

  Memory memory_;
  uint8_t* to_ = nullptr;
  size_t size_ = 0;
};

}  // namespace manyclass
