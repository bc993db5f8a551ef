// Bindings of the text formats svmlight and XMC.
#include "bind/bindings.hpp"
#include "bind/planes.hpp"
#include "formats/svmlight.hpp"
#include "formats/svmlight_writer.hpp"

namespace manyclass {

namespace {

// None, or the line, column and reason of what `parse` has rejected, with the key of a remedy.
nb::object failure_of(auto parse) {
  try {
    without_gil(parse);
  } catch (const ParseFailure& failure) {
    return nb::make_tuple(failure.line, failure.column, failure.what(), failure.remedy);
  }
  return nb::none();
}

// The memory of an output array for indices.
template <class Parser, class Index>
Index* room_for_indices(const Parser& self, const Out<Index>& out) {
  if (sizeof(Index) < 8 && self.max_index() > INT32_MAX) reject("room", "the indices need 64 bits");
  return room_in("room", out, self.nnz());
}

template <class Index, class Label, class Parser>
void bind_taking(nb::class_<Parser>& parser) {
  parser
      .def("take_indices",
           [](Parser& self, Out<Index> out) { self.take_indices(room_for_indices(self, out), false); })
      .def("take_written_indices",
           [](Parser& self, Out<Index> out) { self.take_indices(room_for_indices(self, out), true); })
      .def("take_labels", [](Parser& self, Out<Label> out) {
        self.take_labels(room_in("room", out, self.n_labels_read()));
      });
}

template <class Value>
void bind_row_parser(nb::class_<RowParser<Value>> parser) {
  using Parser = RowParser<Value>;
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
          nb::kw_only(), "n_features"_a, "zero_based"_a, "multilabel"_a, "allow_nonfinite"_a, "xmc"_a)
      .def("feed",
           [](Parser& self, In<uint8_t> text) {
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
      .def("take_values",
           [](Parser& self, Out<Value> out) { self.take_values(room_in("room", out, self.nnz())); })
      .def("take_row_ends",
           [](Parser& self, Out<int64_t> out) { self.take_row_ends(room_in("room", out, self.n_rows())); })
      .def("take_label_ends",
           [](Parser& self, Out<int64_t> out) { self.take_label_ends(room_in("room", out, self.n_rows())); });
  bind_taking<int32_t, int64_t>(parser);
  bind_taking<int64_t, double>(parser);
}

template <class Value, class Label>
nb::bytes formatted(In<int64_t> row_ends, In<int64_t> indices, In<Value> values, In<int64_t> label_ends,
                    In<Label> labels, int64_t base, bool mark_empty) {
  check_ends("row_ends", row_ends, std::min(std::ssize(indices), std::ssize(values)));
  check_ends("label_ends", label_ends, std::ssize(labels));
  check_length("label_ends", label_ends.size(), std::ssize(row_ends));
  const std::string text = without_gil([&] {
    return format_rows(row_ends.data(), std::ssize(row_ends), indices.data(), values.data(),
                       label_ends.data(), labels.data(), base, mark_empty);
  });
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_both<RowParser>(m, "RowParserFloat", [](auto parser) { bind_row_parser(parser); });
  m.def("format_rows", &formatted<float, int64_t>);
  m.def("format_rows", &formatted<float, double>);
  m.def("format_rows", &formatted<double, int64_t>);
  m.def("format_rows", &formatted<double, double>);
  bind_planes(m);
}

}  // namespace manyclass
