// A league: some classes with their weights. Frequent features have a dense row of weights, one value a
// class; rare ones (the layout's tail) a short list of those classes that have one; features of a single row
// none: their part of a score follows from that row's own variables.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "leagues/tail_lists.hpp"
#include "rows/layout.hpp"
#include "simd/memory.hpp"

namespace manyclass {

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

}  // namespace manyclass
