// A Python function as the dealer of blocks to train (parallel/dealt_blocks.hpp).
#pragma once
#include "bind/arrays.hpp"
#include "parallel/dealt_blocks.hpp"

namespace manyclass {

// deal() returns a block, or -1. Threads call it without holding the GIL. An exception that it raises ends
// the calling thread's work, and `train` raises it at the end. Keeps a reference to `deal`.
inline Deal deal_of(const nb::callable& deal) {
  return [&deal] {
    const nb::gil_scoped_acquire gil;
    return nb::cast<int64_t>(deal());
  };
}

}  // namespace manyclass
