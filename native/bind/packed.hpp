// Dual variables of blocks of binary problems, one block after the other (binary/variables.hpp).
#pragma once
#include "binary/variables.hpp"
#include "bind/arrays.hpp"

namespace manyclass {

template <class T>
auto to_tuple(PackedVariables<T> a) {
  return std::make_tuple(to_numpy(std::move(a.counts)), to_numpy(std::move(a.row)),
                         to_numpy(std::move(a.lanes)), to_numpy(std::move(a.values)));
}

template <class T>
PackedView<T> packed_view(const In<int64_t>& counts, const In<int32_t>& rows, const In<uint16_t>& lanes,
                          const In<T>& values) {
  check_length("lanes", lanes.size(), std::ssize(rows));
  return {counts.data(), rows.data(), lanes.data(), std::ssize(rows), values.data(), std::ssize(values)};
}

}  // namespace manyclass
