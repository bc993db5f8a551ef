// A number of threads: Python's int, checked on its way in.
#pragma once
#include <nanobind/nanobind.h>

#include "rows/array_checks.hpp"

namespace manyclass {

struct Threads {
  int count = 1;
  operator int() const { return count; }
};

}  // namespace manyclass

namespace nanobind::detail {

template <>
struct type_caster<manyclass::Threads> {
  NB_TYPE_CASTER(manyclass::Threads, const_name("int"))

  bool from_python(handle src, auto flags, cleanup_list* cleanup) {
    make_caster<int> number;
    if (!number.from_python(src, flags, cleanup)) return false;
    manyclass::check_number("threads", number.value, 1);
    value.count = number.value;
    return true;
  }
};

}  // namespace nanobind::detail
