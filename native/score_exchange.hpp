// Processes that hold the weights of different classes, and exchange scores.
//
// Each scores the rows of a wave against its own classes. For losses on relative margins only few scores
// matter: those of the row's own class and of the classes it uses, which everyone tells first; they give a
// lower bound of the sub-problem's threshold (see relative_margin.hpp), and then everyone names its classes
// above it, and those with a loss. What nobody names is never read: minus infinity in its place leaves every
// sum and every comparison as it is. For the other losses all scores are told.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "vector.hpp"

namespace manyclass {

using Bytes = std::vector<uint8_t>;

struct ClassRange {
  int64_t low, high;
  bool has(int64_t c) const { return c >= low && c < high; }
  int64_t size() const { return high - low; }
};

// gather: gives everyone everyone's bytes, by rank. ranges: of the classes, by rank.
struct Processes {
  std::function<std::vector<Bytes>(const Bytes&)> gather;
  std::vector<ClassRange> ranges;
  int rank = 0;

  bool alone() const { return ranges.size() < 2; }
  const ClassRange& mine() const { return ranges[rank]; }
  // Which of `count` things a process has.
  std::pair<int64_t, int64_t> share(int64_t count, int of) const {
    const auto size = static_cast<int64_t>(ranges.size());
    return {of * count / size, (of + 1) * count / size};
  }
  std::pair<int64_t, int64_t> share(int64_t count) const { return share(count, rank); }
};

// Values of one type, one after the other.
class BytesOut {
 public:
  template <class V>
  void put(const V* from, int64_t count) {
    const size_t at = bytes.size(), size = sizeof(V) * static_cast<size_t>(count);
    bytes.resize(at + size);
    if (size > 0) std::memcpy(bytes.data() + at, from, size);
  }
  template <class V>
  void put(V value) {
    put(&value, 1);
  }
  Bytes bytes;
};

class BytesIn {
 public:
  explicit BytesIn(const Bytes& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  template <class V>
  void take(V* to, int64_t count) {
    const size_t size = sizeof(V) * static_cast<size_t>(count);
    if (static_cast<size_t>(end_ - at_) < size)
      throw std::runtime_error("another process sent too few scores");
    if (size > 0) std::memcpy(to, at_, size);
    at_ += size;
  }
  template <class V>
  V take() {
    V value;
    take(&value, 1);
    return value;
  }

 private:
  const uint8_t *at_, *end_;
};

}  // namespace manyclass
