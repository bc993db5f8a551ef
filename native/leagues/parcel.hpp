// A league packed for sending to another worker: its non-zero weights, and the sums of variables of its rows.
// A frequent feature has one bit per class, then its non-zero weights; a rare one has its number of classes,
// their places in 2 or 4 bytes each, and the weights.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "leagues/league.hpp"
#include "rows/array_checks.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

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
    put_all(league.sums.data(), std::ssize(league.sums));
    size_ = static_cast<size_t>(to_ - begin);
  }

  Memory& memory() { return memory_; }
  size_t size() const { return size_; }

  // Unpacks into a league that has been started. Checks everything, since the bytes come from another
  // process.
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
      check_finite("weights of a league", std::span(values, size));
    }
    in.expect(league.sums.size() * sizeof(T));
    in.take_all(league.sums.data(), std::ssize(league.sums));
    check_finite("sums of a league", league.sums);
    if (in.at != in.end) throw std::invalid_argument("the weights of a league do not belong to this problem");
  }

 private:
  static constexpr int lanes = Lanes<T>::count;
  static constexpr size_t mask_bytes = lanes / 8;

  static bool narrow(const League<T>& league) { return league.size() <= 65536; }

  // An upper bound; pages that are never written take no memory. compress_lanes may write one vector more.
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

  // Callers check the remaining length with `expect` once per feature, not once per weight.
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

  // seen stays 0 as long as all weights are finite.
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
