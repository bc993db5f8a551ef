#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "rows/check.hpp"

namespace manyclass {

namespace {

auto to_tuple(const RowCheck& found) { return std::make_tuple(found.row, found.longest); }

template <class X, class I>
void bind_sparse_check(nb::module_& m) {
  m.def(
      "check_rows",
      [](In<I> ptr, In<I> index, In<X> value, int64_t features, double most) {
        const auto rows = std::ssize(ptr) - 1;
        const auto stored = static_cast<int64_t>(std::min(index.size(), value.size()));
        nb::gil_scoped_release nogil;
        return to_tuple(check_rows(ptr.data(), index.data(), value.data(), rows, features, stored, most));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "features"_a, "most"_a);
}

template <class X>
void bind_dense_check(nb::module_& m) {
  m.def(
      "check_dense_rows",
      [](nb::ndarray<const X, nb::ndim<2>, nb::c_contig, nb::device::cpu> value, double most) {
        const auto rows = static_cast<int64_t>(value.shape(0)),
                   features = static_cast<int64_t>(value.shape(1));
        nb::gil_scoped_release nogil;
        return to_tuple(check_dense_rows(value.data(), rows, features, most));
      },
      "values"_a.noconvert(), "most"_a);
}

}  // namespace

void bind_checks(nb::module_& m) {
  for_matrix_types([&]<class X, class I>() { bind_sparse_check<X, I>(m); });
  bind_dense_check<float>(m);
  bind_dense_check<double>(m);
}

}  // namespace manyclass
