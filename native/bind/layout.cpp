// Bindings of the checks and the layout of rows.
#include "rows/layout.hpp"

#include "bind/bindings.hpp"
#include "bind/planes.hpp"
#include "rows/check.hpp"
#include "rows/lay_out.hpp"
#include "rows/row_adder.hpp"

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

void bind_places(nb::module_& m) {
  nb::class_<FeaturePlaces>(m, "FeaturePlaces")
      .def(
          "__init__",
          [](FeaturePlaces* self, In<int64_t> rows, bool constant, int64_t tail_rows) {
            check_range("rows", rows, 0, INT64_MAX);
            check_number("features", std::ssize(rows), constant, INT32_MAX - 2);
            check_number("tail_rows", tail_rows, 0);
            new (self) FeaturePlaces(rows.data(), std::ssize(rows), constant, tail_rows);
          },
          "rows"_a, "constant"_a, "tail_rows"_a = 1)
      .def_prop_ro("features", [](const FeaturePlaces& p) { return p.place.size(); })
      .def_prop_ro("heads", [](const FeaturePlaces& p) { return p.head_features.size(); })
      .def_prop_ro("tails", [](const FeaturePlaces& p) { return p.tail_features.size(); })
      .def("head_features", [](const FeaturePlaces& p) { return to_numpy(p.head_features); })
      .def("tail_features", [](const FeaturePlaces& p) { return to_numpy(p.tail_features); });
}

template <class T, class X, class I>
void bind_layout(nb::class_<Layout<T>>& cls) {
  cls.def(
      "__init__",
      [](Layout<T>* self, In<int64_t> ptr, In<I> index, In<X> value, int64_t features, double constant,
         int64_t tail_rows) {
        new (self) Layout<T>(make_layout<T>(view(ptr, index, value, features, constant), tail_rows));
      },
      "indptr"_a, "indices"_a, "values"_a, "n_features"_a, "constant"_a, "tail_rows"_a, NoGil());
  cls.def(
      "add_rows",
      [](Layout<T>& self, In<int64_t> ptr, In<I> index, In<X> value, int64_t features, double constant,
         const FeaturePlaces& places) {
        add_rows(self, view(ptr, index, value, features, constant), places);
      },
      "indptr"_a, "indices"_a, "values"_a, "n_features"_a, "constant"_a, "places"_a, NoGil());
}

// Adds rows as a block stores them on disk. On an error, rows that were added before it stay.
template <class T>
void bind_packed_rows(nb::class_<Layout<T>>& cls) {
  cls.def(
      "add_planes",
      [](Layout<T>& self, In<int64_t> ptr, Stored index, Stored value, int64_t features, double constant,
         const FeaturePlaces& places) {
        const int64_t entries = checked_entries(ptr, features);
        const auto index_planes = planes_of(index, entries), value_planes = planes_of(value, entries);
        if (index_planes.size() != 4 && index_planes.size() != 8) reject("indices", "neither 4 planes nor 8");
        if (value_planes.size() != 4 && value_planes.size() != 8) reject("values", "neither 4 planes nor 8");
        const int64_t rows = std::ssize(ptr) - 1;
        nb::gil_scoped_release nogil;
        const auto add = [&]<class I, class X>(I, X) {
          add_planes<I, X>(self, ptr.data(), rows, index_planes, value_planes, features, constant, places);
        };
        const auto with_values = [&](auto i) {
          value_planes.size() == 4 ? add(i, float()) : add(i, double());
        };
        index_planes.size() == 4 ? with_values(int32_t()) : with_values(int64_t());
      },
      "indptr"_a, "indices"_a, "values"_a, "n_features"_a, "constant"_a, "places"_a);
}

template <class T>
void bind_rows(nb::class_<Layout<T>> layout) {
  for_matrix_types([&]<class X, class I>() { bind_layout<T, X, I>(layout); });
  bind_packed_rows<T>(layout);
  // For rows in parts: begin_rows, with upper bounds of the numbers of rows and entries, then add_rows or
  // add_planes.
  layout.def(nb::init<>())
      .def(
          "begin_rows",
          [](Layout<T>& self, const FeaturePlaces& places, int64_t rows, int64_t entries, double longest) {
            check_number("rows", rows, 0, INT32_MAX);
            check_number("entries", entries, 0);
            begin_rows(self, places, rows, entries, longest);
          },
          "places"_a, "rows"_a, "entries"_a, "longest"_a = Layout<T>::largest, NoGil())
      .def_prop_ro("bytes", &Layout<T>::bytes)
      .def_prop_ro("heads", &Layout<T>::heads)
      .def_prop_ro("tails", &Layout<T>::tails);
}

}  // namespace

void bind_layouts(nb::module_& m) {
  for_matrix_types([&]<class X, class I>() { bind_sparse_check<X, I>(m); });
  bind_dense_check<float>(m);
  bind_dense_check<double>(m);
  bind_places(m);
  bind_both<Layout>(m, "Layout", [](auto layout) { bind_rows(layout); });
}

}  // namespace manyclass
