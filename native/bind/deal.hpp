// Who is to be trained next, asked of Python.
#pragma once
#include "bind/arrays.hpp"
#include "parallel/dealt_blocks.hpp"

namespace manyclass {

// `deal()` gives a block, or -1. It is called by threads that do not hold the GIL; what it raises ends the
// training and comes out of it.
inline Deal deal_of(const nb::callable& deal) {
  return [&deal] {
    const nb::gil_scoped_acquire gil;
    return nb::cast<int64_t>(deal());
  };
}

}  // namespace manyclass
