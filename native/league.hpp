// A league: some classes with their weights. Frequent features have a dense row of weights, one value a
// class; rare ones (the layout's tail) a short list of those classes that have one; features of a single row
// none: their part of a score follows from that row's own variables.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "layout.hpp"
#include "vector.hpp"

namespace manyclass {

template <class T>
struct League {
  struct TailWeight {
    int32_t cls;
    T value;
  };

  std::vector<int32_t> classes, members;  // its classes; the rows of these classes
  int64_t stride = 0;
  bool here = false;  // weights may be with another worker
  Buffer<T> W;        // heads x stride
  std::vector<std::vector<TailWeight>> tail;
  std::vector<T> sums;  // by member: the sum of its variables

  int64_t size() const { return static_cast<int64_t>(classes.size()); }

  void start(const Layout<T>& rows) {
    W.reset(rows.heads() * stride);
    tail.assign(rows.tails(), {});
    sums.assign(members.size(), T(0));
    here = true;
  }

  void leave() {
    W.reset(0);
    tail.clear();
    tail.shrink_to_fit();
    here = false;
  }

  static void add(std::vector<TailWeight>& list, int32_t c, T value) {
    for (auto& weight : list)
      if (weight.cls == c) {
        weight.value += value;
        return;
      }
    list.push_back({c, value});
  }

  int64_t bytes() const {
    int64_t total = W.bytes() + static_cast<int64_t>(sums.size() * sizeof(T) + tail.size() * sizeof(tail[0]));
    for (const auto& list : tail) total += static_cast<int64_t>(list.capacity() * sizeof(TailWeight));
    return total;
  }
};

// What travels: the non-zero weights, in as few bytes as their classes need, and the sums.
template <class T>
class LeagueParcel {
 public:
  static std::vector<uint8_t> pack(const League<T>& league, int64_t heads) {
    return league.size() <= 65536 ? pack_as<uint16_t>(league, heads) : pack_as<uint32_t>(league, heads);
  }

  static void unpack(const uint8_t* from, size_t size, League<T>& league, const Layout<T>& rows) {
    if (!league.here) league.start(rows);
    Reader in{from, from + size};
    if (league.size() <= 65536)
      unpack_as<uint16_t>(in, league, rows);
    else
      unpack_as<uint32_t>(in, league, rows);
    if (in.at != in.end) throw std::invalid_argument("the weights of a league are not of this problem");
  }

 private:
  template <class V>
  static V take(const uint8_t*& at) {
    V v;
    std::memcpy(&v, at, sizeof(V));
    at += sizeof(V);
    return v;
  }

  template <class V>
  static void put(uint8_t*& at, V v) {
    std::memcpy(at, &v, sizeof(V));
    at += sizeof(V);
  }

  // Parcels are large, so what is left is compared with what is wanted once a feature, not once a weight.
  struct Reader {
    const uint8_t *at, *end;
    void expect(int64_t count, size_t size) const {
      if (count < 0 || static_cast<size_t>(end - at) / size < static_cast<size_t>(count))
        throw std::invalid_argument("the weights of a league are cut short");
    }
  };

  template <class Index>
  static std::vector<uint8_t> pack_as(const League<T>& league, int64_t heads) {
    const int64_t K = league.size();
    size_t entries = 0;
    for (int64_t w = 0; w < league.W.size(); ++w) entries += league.W[w] != 0;
    for (const auto& list : league.tail) entries += list.size();
    std::vector<uint8_t> parcel((heads + league.tail.size()) * sizeof(int32_t) +
                                entries * (sizeof(Index) + sizeof(T)) + league.sums.size() * sizeof(T));
    uint8_t* to = parcel.data();
    for (int64_t h = 0; h < heads; ++h) {
      const T* w = league.W.data() + h * league.stride;
      uint8_t* const count_at = to;
      int32_t count = 0;
      to += sizeof(count);
      for (int64_t c = 0; c < K; ++c) {
        if (w[c] == 0) continue;
        put(to, static_cast<Index>(c));
        put(to, w[c]);
        ++count;
      }
      std::memcpy(count_at, &count, sizeof(count));
    }
    for (const auto& list : league.tail) {
      put(to, static_cast<int32_t>(list.size()));
      for (const auto& weight : list) {
        put(to, static_cast<Index>(weight.cls));
        put(to, weight.value);
      }
    }
    for (T sum : league.sums) put(to, sum);
    return parcel;
  }

  template <class Index>
  static void unpack_as(Reader& in, League<T>& league, const Layout<T>& rows) {
    const auto each = [&](auto f) {
      in.expect(1, sizeof(int32_t));
      const int32_t count = take<int32_t>(in.at);
      in.expect(count, sizeof(Index) + sizeof(T));
      for (int32_t e = 0; e < count; ++e) {
        const int64_t c = take<Index>(in.at);
        if (c >= league.size()) throw std::invalid_argument("a league has no such class");
        f(static_cast<int32_t>(c), take<T>(in.at));
      }
    };
    std::fill(league.W.data(), league.W.data() + league.W.size(), T(0));
    for (int64_t h = 0; h < rows.heads(); ++h) {
      T* w = league.W.data() + h * league.stride;
      each([&](int32_t c, T value) { w[c] = value; });
    }
    for (auto& list : league.tail) {
      list.clear();
      each([&](int32_t c, T value) { list.push_back({c, value}); });
    }
    in.expect(static_cast<int64_t>(league.sums.size()), sizeof(T));
    for (T& sum : league.sums) sum = take<T>(in.at);
  }
};

}  // namespace manyclass
