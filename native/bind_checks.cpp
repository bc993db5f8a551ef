#include "bind_arrays.hpp"
#include "bindings.hpp"
#include "row_check.hpp"

namespace manyclass {

namespace {

template <class X, class I>
void bind_row_check(nb::module_& m) {
  m.def(
      "rows_are_clean",
      [](In<I> ptr, In<I> index, In<X> value, int64_t features) {
        const auto rows = static_cast<int64_t>(ptr.size()) - 1;
        const auto stored = static_cast<int64_t>(std::min(index.size(), value.size()));
        nb::gil_scoped_release nogil;
        return rows_are_clean(ptr.data(), index.data(), value.data(), rows, features, stored);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "features"_a);
}

}  // namespace

void bind_checks(nb::module_& m) {
  bind_row_check<float, int32_t>(m);
  bind_row_check<double, int32_t>(m);
  bind_row_check<float, int64_t>(m);
  bind_row_check<double, int64_t>(m);
}

}  // namespace manyclass
