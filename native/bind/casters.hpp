// Conversions of arguments that differ from nanobind's own.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>

#include <vector>

#include "rows/array_checks.hpp"

namespace manyclass {

// A number of threads, checked on its way in.
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

// nanobind's converter of lists is noexcept, so running out of memory for the vector would end the process;
// this one reserves the memory beforehand, where it may throw.
template <class T>
struct type_caster<std::vector<T>> : list_caster<std::vector<T>, T> {
  using Base = list_caster<std::vector<T>, T>;

  bool from_python(handle src, auto flags, cleanup_list* cleanup) {
    const Py_ssize_t size = PySequence_Check(src.ptr()) ? PySequence_Size(src.ptr()) : 0;
    if (size < 0) PyErr_Clear();
    if (size > 0) this->value.reserve(static_cast<size_t>(size));
    return Base::from_python(src, flags, cleanup);  // has enough room now
  }
};

}  // namespace nanobind::detail
