// A league: a group of classes with their weights. A frequent feature (the layout's head) has a dense row of
// weights, one per class. A rare one (the tail) has a short list of the classes with a weight. Features of a
// single row have no weights here: their contribution to a score follows from the variables of that row.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "leagues/tail_lists.hpp"
#include "rows/layout.hpp"
#include "simd/memory.hpp"

namespace manyclass {

// The memory of a league that has moved to another worker, for reuse.
template <class T>
struct LeagueMemory {
  Buffer<T> W;
  TailLists<T> tail;
};

template <class T>
struct League {
  std::vector<int32_t> classes, members;  // members: the rows of these classes
  int64_t stride = 0;
  bool here = false;  // else the weights are at another worker
  Buffer<T> W;        // heads x stride
  TailLists<T> tail;
  std::vector<T> sums;  // by member: the sum of its variables

  int64_t size() const { return std::ssize(classes); }

  void start(const Layout<T>& rows) {
    W.reset(rows.heads() * stride);
    begin(rows);
  }

  // Like `start`, but without clearing the weights, which are about to be written. Uses the memory that
  // another league has left, if it is large enough.
  void start_in(LeagueMemory<T> left, const Layout<T>& rows) {
    if (left.W.size() < rows.heads() * stride) return start(rows);
    W = std::move(left.W);
    tail = std::move(left.tail);
    begin(rows);
  }

  int64_t bytes() const { return W.bytes() + tail.bytes() + static_cast<int64_t>(sums.size() * sizeof(T)); }

 private:
  void begin(const Layout<T>& rows) {
    tail.clear(rows.tails());
    sums.assign(members.size(), T(0));
    here = true;
  }
};

}  // namespace manyclass
