// Converts Python lists to std::vector. nanobind's converter is noexcept, so running out of memory for the
// vector would end the process; this one reserves the memory beforehand, where it may throw.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>

#include <vector>

namespace nanobind::detail {

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
