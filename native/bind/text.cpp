// Bindings of the text formats svmlight and XMC.
#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/planes.hpp"
#include "formats/svmlight.hpp"
#include "formats/svmlight_writer.hpp"

namespace manyclass {

namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// None, or the line, column and reason of what `parse` has rejected, with the key of a remedy.
template <class Parse>
nb::object failure_of(Parse parse) {
  int64_t line = 0, column = 0;
  std::string reason, remedy;
  {
    nb::gil_scoped_release released;
    try {
      parse();
    } catch (const ParseFailure& failure) {
      line = failure.line;
      column = failure.column;
      reason = failure.what();
      remedy = failure.remedy;
    }
  }
  if (line == 0) return nb::none();
  return nb::make_tuple(line, column, reason, remedy);
}

// The memory of an output array, whose length must be exactly `count`.
template <class T>
T* room_for(int64_t count, const Array<T>& out) {
  check_length("room", out.size(), count);
  return out.data();
}

template <class Index, class Value>
void bind_taking(nb::class_<RowParser<Value>>& parser) {
  const auto check = [](const RowParser<Value>& self) {
    if (sizeof(Index) < 8 && self.max_index() > std::numeric_limits<int32_t>::max())
      reject("room", "the indices need 64 bits");
  };
  parser
      .def("take_indices",
           [check](RowParser<Value>& self, Array<Index> out) {
             check(self);
             self.take_indices(room_for(self.nnz(), out));
           })
      .def("take_written_indices", [check](RowParser<Value>& self, Array<Index> out) {
        check(self);
        self.take_written_indices(room_for(self.nnz(), out));
      });
}

template <class Label, class Value>
void bind_labels_of(nb::class_<RowParser<Value>>& parser) {
  parser.def("take_labels", [](RowParser<Value>& self, Array<Label> out) {
    self.take_labels(room_for(self.n_labels_read(), out));
  });
}

template <class Value>
void bind_row_parser(nb::module_& m, const char* name) {
  using Parser = RowParser<Value>;
  nb::class_<Parser> parser(m, name, "Parses svmlight or XMC text piece by piece; see formats/svmlight.hpp.");
  parser
      .def(
          "__init__",
          [](Parser* self, int64_t n_features, int zero_based, int multilabel, bool allow_nonfinite,
             bool xmc) {
            check_number("n_features", n_features, -1);
            check_number("zero_based", zero_based, -1, 1);
            check_number("multilabel", multilabel, -1, 1);
            new (self) Parser({n_features, Choice(zero_based), Choice(multilabel), allow_nonfinite, xmc});
          },
          nb::kw_only(), nb::arg("n_features"), nb::arg("zero_based"), nb::arg("multilabel"),
          nb::arg("allow_nonfinite"), nb::arg("xmc"))
      .def("feed",
           [](Parser& self, Array<const uint8_t> text) {
             return failure_of(
                 [&] { self.feed(reinterpret_cast<const char*>(text.data()), std::ssize(text)); });
           })
      .def("finish", [](Parser& self) { return failure_of([&] { self.finish(); }); })
      .def("next_part", &Parser::next_part)
      .def("go_on_after",
           [](Parser& self, int64_t line, int64_t rows) {
             check_number("line", line, 0);
             check_number("rows", rows, 0);
             self.go_on_after(line, rows);
           })
      .def_prop_ro("line", &Parser::line)
      .def_prop_ro("unfinished", &Parser::unfinished)
      .def_prop_ro("min_index", &Parser::min_index)
      .def_prop_ro("max_index", &Parser::max_index)
      .def_prop_ro("wide", &Parser::wide)
      .def_prop_ro("n_rows", &Parser::n_rows)
      .def_prop_ro("nnz", &Parser::nnz)
      .def_prop_ro("n_features", &Parser::n_features)
      .def_prop_ro("n_labels_read", &Parser::n_labels_read)
      .def_prop_ro("max_label", &Parser::max_label)
      .def_prop_ro("label_limit", &Parser::label_limit)
      .def_prop_ro("multilabel", &Parser::multilabel)
      .def_prop_ro("zero_based", &Parser::zero_based)
      .def_prop_ro("labels_are_integers", &Parser::labels_are_integers)
      .def("take_values", [](Parser& self, Array<Value> out) { self.take_values(room_for(self.nnz(), out)); })
      .def("take_row_ends",
           [](Parser& self, Array<int64_t> out) { self.take_row_ends(room_for(self.n_rows(), out)); })
      .def("take_label_ends",
           [](Parser& self, Array<int64_t> out) { self.take_label_ends(room_for(self.n_rows(), out)); });
  bind_taking<int32_t, Value>(parser);
  bind_taking<int64_t, Value>(parser);
  bind_labels_of<int64_t, Value>(parser);
  bind_labels_of<double, Value>(parser);
}

// Checks the ends of rows: never decreasing, and at most `entries`.
void check_ends(const char* name, const Array<const int64_t>& ends, size_t entries) {
  check_range(name, std::span<const int64_t>(ends.data(), ends.size()), 0, static_cast<int64_t>(entries) + 1);
  if (!std::is_sorted(ends.data(), ends.data() + ends.size()))
    reject(name, "an entry is smaller than the one before");
}

template <class Value, class Label>
nb::bytes formatted(Array<const int64_t> row_ends, Array<const int64_t> indices, Array<const Value> values,
                    Array<const int64_t> label_ends, Array<const Label> labels, int64_t base,
                    bool mark_empty) {
  check_ends("row_ends", row_ends, std::min(indices.size(), values.size()));
  check_ends("label_ends", label_ends, labels.size());
  check_length("label_ends", label_ends.size(), std::ssize(row_ends));
  std::string text;
  {
    nb::gil_scoped_release released;
    text = format_rows(row_ends.data(), std::ssize(row_ends), indices.data(), values.data(),
                       label_ends.data(), labels.data(), base, mark_empty);
  }
  return nb::bytes(text.data(), text.size());
}

void bind_text_formats(nb::module_& m) {
  bind_row_parser<float>(m, "RowParserFloat32");
  bind_row_parser<double>(m, "RowParserFloat64");
  m.def("format_rows", &formatted<float, int64_t>);
  m.def("format_rows", &formatted<float, double>);
  m.def("format_rows", &formatted<double, int64_t>);
  m.def("format_rows", &formatted<double, double>);
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_text_formats(m);
  bind_planes(m);
}

}  // namespace manyclass
