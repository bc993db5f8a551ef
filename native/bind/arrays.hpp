// NumPy arrays as arguments and results, with checks of their contents.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/casters.hpp"
#include "dual/certificate.hpp"
#include "dual/feature_weights.hpp"
#include "dual/rows.hpp"
#include "rows/array_checks.hpp"
#include "rows/layout.hpp"
#include "rows/sparse_rows.hpp"
#include "simd/memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace manyclass {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

// f() with the GIL released.
auto without_gil(auto f) {
  nb::gil_scoped_release nogil;
  return f();
}

// Calls f<X, I>() for the types of values and indices that a sparse matrix may have.
void for_matrix_types(auto f) {
  f.template operator()<float, int32_t>();
  f.template operator()<float, int64_t>();
  f.template operator()<double, int32_t>();
  f.template operator()<double, int64_t>();
}

// A NumPy array at `data`, which `owner` keeps alive.
template <class T, int dimensions, class Owner>
nb::ndarray<nb::numpy, T, nb::ndim<dimensions>> array_of(T* data, const int64_t (&shape)[dimensions],
                                                         std::unique_ptr<Owner>&& owner) {
  size_t sizes[dimensions];
  std::copy_n(shape, dimensions, sizes);
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>(data, dimensions, sizes, capsule);
}

template <class T>
auto to_numpy(std::vector<T> v) {
  auto held = std::make_unique<std::vector<T>>(std::move(v));
  return array_of(held->data(), {std::ssize(*held)}, std::move(held));
}

template <class T>
auto to_numpy(Memory memory, int64_t size) {
  auto held = std::make_unique<Memory>(std::move(memory));
  return array_of(static_cast<T*>(held->data()), {size}, std::move(held));
}

// A new NumPy array of zeros.
template <class T, int dimensions>
auto new_array(const int64_t (&shape)[dimensions]) {
  size_t bytes = sizeof(T);
  for (int64_t size : shape) bytes *= static_cast<size_t>(size);
  auto held = std::make_unique<Memory>(bytes);
  return array_of(static_cast<T*>(held->data()), shape, std::move(held));
}

// A view of a solver's own memory, which lives as long as either needs it. Once the solver has reset the
// buffer, the two are separate.
template <class T, int dimensions>
auto shared(Buffer<T>& buffer, const int64_t (&shape)[dimensions]) {
  return array_of(buffer.data(), shape, std::make_unique<std::shared_ptr<const Memory>>(buffer.owner()));
}
template <class T>
auto shared(Buffer<T>& buffer) {
  return shared(buffer, {buffer.size()});
}

template <class T>
auto to_tuple(SparseRows<T> a) {
  return std::make_tuple(to_numpy(std::move(a.ptr)), to_numpy(std::move(a.index)),
                         to_numpy(std::move(a.value)));
}
inline auto to_tuple(const Certificate& c) { return std::make_tuple(c.primal, c.dual, c.violation); }

template <class T>
std::vector<T> to_vector(const In<T>& a) {
  return std::vector<T>(a.data(), a.data() + a.size());
}

// Moves the layout out of a Python object, which has no rows afterwards.
template <class T>
Layout<T> taken(Layout<T>& rows) {
  return std::exchange(rows, Layout<T>());
}

// The memory of an output array, after a check of its shape.
template <class T>
T* room_in(const char* name, const Out<T>& out, int64_t rows, int64_t columns) {
  if (out.ndim() != 2 || static_cast<int64_t>(out.shape(0)) != rows ||
      static_cast<int64_t>(out.shape(1)) != columns)
    reject(name, "not an array of shape (" + std::to_string(rows) + ", " + std::to_string(columns) + ")");
  return out.data();
}
template <class T>
T* room_in(const char* name, const Out<T>& out, int64_t entries) {
  check_length(name, out.size(), entries);
  return out.data();
}

// The caller's CSR matrix, after a check of its arrays.
template <class X, class I>
CsrView<X, I, int64_t> view(const In<int64_t>& ptr, const In<I>& index, const In<X>& value, int64_t features,
                            double constant = 0) {
  check_rows(ptr, index, value.size(), features);
  return {ptr.data(), index.data(), value.data(), std::ssize(ptr) - 1, features, constant};
}

// Checks one label and penalty per row.
template <class T>
void check_labelled(const Layout<T>& rows, const In<int32_t>& labels, const In<T>& C, int64_t classes) {
  check_number("classes", classes, 0, INT32_MAX);
  check_length("labels", labels.size(), rows.n);
  check_range("labels", labels, 0, classes);
  check_length("C", C.size(), rows.n);
  check_not_negative("C", C);
}

// Checks any number of distinct labels, and one penalty, per row.
template <class T>
void check_labelled(const Layout<T>& rows, const In<int64_t>& ptr, const In<int32_t>& labels, const In<T>& C,
                    int64_t classes) {
  check_number("classes", classes, 0, INT32_MAX);
  check_length("label_ptr", ptr.size(), rows.n + 1);
  check_pointers("label_ptr", ptr, std::ssize(labels));
  check_distinct("labels", ptr, labels, classes);
  check_length("C", C.size(), rows.n);
  check_not_negative("C", C);
}

// Checks dual variables of n rows for K classes; the classes of a row may be in any order.
template <class T>
void check_dual_rows(const In<int64_t>& ptr, const In<int32_t>& classes, const In<T>& values, int64_t n,
                     int64_t K) {
  check_length("indptr", ptr.size(), n + 1);
  check_pointers("indptr", ptr, std::ssize(classes));
  check_length("values", values.size(), std::ssize(classes));
  check_distinct("classes", ptr, classes, K);
  check_not_negative("values", values);
}

// Checks that the features of the rows are below `features`.
template <class T>
void check_features(const Layout<T>& rows, int64_t features) {
  for (const auto* some : {&rows.head_features, &rows.tail_features, &rows.single_index})
    check_range("features", *some, 0, features);
}

// The model's weights (features x classes): a dense array if that is small, or no larger than a sparse
// matrix; else the arrays of a sparse matrix.
template <class T, class Coefs>
nb::object model_weights(const SparseRows<T>& columns, const Coefs& coef, int64_t K, int threads) {
  const int64_t features = std::ssize(columns.ptr) - 1;
  std::vector<int64_t> most(features + 1, 0);  // where the weights of each feature may begin
  const auto fill = [&](auto visit) {
    without_gil([&] { for_each_feature(columns, coef, K, threads, visit); });
  };
  if (!stored_dense<T>(features, K)) {
    fill([&](int64_t f, auto& weights) { most[f + 1] = weights.most_nonzeros(f); });
    for (int64_t f = 0; f < features; ++f) most[f + 1] += most[f];
  }
  if (stored_dense<T>(features, K, most.back())) {
    auto W = new_array<T>({features, K});
    fill([&](int64_t f, auto& weights) {
      weights.load(f);
      weights.copy_dense(W.data() + f * K);
    });
    return nb::cast(W);
  }
  Buffer<int32_t> classes(most.back());
  Buffer<T> values(most.back());
  std::vector<int64_t> ptr(features + 1, 0);
  fill([&](int64_t f, auto& weights) {
    weights.load(f);
    ptr[f + 1] = weights.copy_sparse(classes.data() + most[f], values.data() + most[f]);
  });
  for (int64_t f = 0; f < features; ++f) {
    // Weights that are 0 after all leave gaps.
    std::move(classes.data() + most[f], classes.data() + most[f] + ptr[f + 1], classes.data() + ptr[f]);
    std::move(values.data() + most[f], values.data() + most[f] + ptr[f + 1], values.data() + ptr[f]);
    ptr[f + 1] += ptr[f];
  }
  const int64_t nonzeros = ptr.back();
  return nb::make_tuple(to_numpy(std::move(ptr)), shared(classes, {nonzeros}), shared(values, {nonzeros}));
}

}  // namespace manyclass
