// The processes that share the classes of a fit, and the exchange of data between them.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace manyclass {

using Bytes = std::vector<uint8_t>;

// Values written to, and read from, a message.
class BytesOut {
 public:
  template <class V>
  void put(const V* from, int64_t count) {
    const size_t at = bytes.size(), size = sizeof(V) * static_cast<size_t>(count);
    bytes.resize(at + size);
    if (size > 0) std::memcpy(bytes.data() + at, from, size);
  }
  void put(auto value) { put(&value, 1); }
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

struct ClassRange {
  int64_t low, high;
  bool has(int64_t c) const { return c >= low && c < high; }
  int64_t size() const { return high - low; }
};

struct Processes {
  std::function<std::vector<Bytes>(const Bytes&)> gather;  // all-gather: the messages of all ranks, by rank
  std::vector<ClassRange> ranges;                          // of the classes, by rank
  int rank = 0;

  bool alone() const { return ranges.size() < 2; }
  int64_t size() const { return std::ssize(ranges); }
  const ClassRange& mine() const { return ranges[rank]; }
  // The range of `count` items that belongs to a process.
  std::pair<int64_t, int64_t> share(int64_t count, int of) const {
    return {of * count / size(), (of + 1) * count / size()};
  }
  std::pair<int64_t, int64_t> share(int64_t count) const { return share(count, rank); }

  // Sends this process's data to all others and receives theirs. each(of, piece) calls piece(address, count)
  // for every array that process `of` owns: the owner reads the values from there, and the others write them
  // there. Later pieces may depend on the contents of earlier ones.
  void exchange(auto each) const {
    BytesOut out;
    each(rank, [&](const auto* from, int64_t count) { out.put(from, count); });
    const auto all = gather(out.bytes);
    for (int other = 0; other < size(); ++other) {
      if (other == rank) continue;
      BytesIn in(all[other]);
      each(other, [&](auto* to, int64_t count) { in.take(to, count); });
    }
  }

  // Exchanges a matrix (rows x stride) of which each process has the columns of its own classes.
  template <class V>
  void exchange_columns(V* values, int64_t stride, int64_t rows) const {
    exchange([&](int of, auto piece) {
      for (int64_t r = 0; r < rows; ++r) piece(values + r * stride + ranges[of].low, ranges[of].size());
    });
  }
};

}  // namespace manyclass
