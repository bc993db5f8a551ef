// Bindings of blocks of binary problems (binary/blocks.hpp).
#include "binary/blocks.hpp"

#include "bind/bindings.hpp"
#include "bind/deal.hpp"
#include "bind/packed.hpp"

namespace manyclass {

namespace {

Method method_named(const std::string& name) {
  if (name == "dual") return Method::dual;
  if (name == "newton") return Method::newton;
  if (name == "auto") return Method::either;
  throw nb::value_error(("this kernel has no method named " + name).c_str());
}

template <class T, class Blocks>
void bind_variables(nb::class_<Blocks>& blocks) {
  blocks
      .def("variables_of",
           [](const Blocks& s, const std::vector<int64_t>& blocks) {
             return to_tuple(s.variables_of(blocks));
           })
      .def("set_variables",
           [](Blocks& s, const std::vector<int64_t>& blocks, In<int64_t> counts, In<int32_t> rows,
              In<uint16_t> lanes, In<T> values) {
             check_length("counts", counts.size(), std::ssize(blocks));
             s.set_variables(blocks, packed_view(counts, rows, lanes, values));
           })
      .def("columns_of",
           [](Blocks& s, const std::vector<int64_t>& blocks) {
             auto out = new_array<T>({s.features(), s.columns(blocks)});
             s.copy_columns(blocks, out.data());
             return out;
           })
      .def("set_columns",
           [](Blocks& s, const std::vector<int64_t>& blocks,
              nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> columns) {
             if (static_cast<int64_t>(columns.shape(0)) != s.features() ||
                 static_cast<int64_t>(columns.shape(1)) != s.columns(blocks))
               reject("columns", "the weights are for other features or problems");
             check_finite("columns", columns);
             s.set_columns(blocks, columns.data());
           })
      .def("alpha",
           [](Blocks& s) {
             auto a = s.by_rows();
             auto values = a.variables();
             return std::make_tuple(to_numpy(std::move(a.ptr)), to_numpy(std::move(a.problem)),
                                    to_numpy(std::move(values)));
           })
      .def("set_alpha", [](Blocks& s, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
        check_dual_rows(ptr, classes, values, s.rows().n, s.problems());
        check_ascending("classes", ptr, classes, s.problems());
        s.set_alpha(ptr.data(), classes.data(), values.data());
      });
}

template <class T, class Blocks = BinaryBlocks<T>>
void bind_training(nb::class_<BinaryBlocks<T>> blocks) {
  blocks
      .def(
          "__init__",
          // labels: by row, with the penalties. problems: the number of classes, and whether their pairs.
          [](Blocks* self, Layout<T>& rows, const std::tuple<In<int64_t>, In<int32_t>, In<T>>& labels,
             std::tuple<int64_t, bool> problems, int64_t features, const std::string& loss,
             const std::string& method, bool reduced, bool keep_variables) {
            const auto& [ptr, label, C] = labels;
            const auto [classes, pairs] = problems;
            check_labelled(rows, ptr, label, C, classes);
            check_features(rows, features);
            new (self) Blocks(taken(rows), {to_vector(ptr), to_vector(label)}, to_vector(C),
                              {classes, pairs, features, binary_named(loss), method_named(method), reduced,
                               keep_variables});
          },
          "rows"_a, "labels"_a, "problems"_a, "features"_a, "loss"_a, "method"_a, "reduced"_a,
          "keep_variables"_a)
      .def(
          "train",
          [](Blocks& s, const nb::callable& deal, bool by_gap, double tol, int64_t max_epochs, uint64_t seed,
             Threads threads, Interrupt& interrupt) {
            const Deal dealt = deal_of(deal);
            std::vector<int64_t> trained;
            std::vector<std::tuple<double, double, double, int64_t, double, bool, bool>> results;
            nb::gil_scoped_release nogil;
            for (const auto& [b, r] : s.train(dealt, {by_gap, tol, max_epochs}, seed, threads, interrupt)) {
              trained.push_back(b);
              results.emplace_back(r.certificate.primal, r.certificate.dual, r.certificate.violation,
                                   r.epochs, r.visited, r.done, r.cut);
            }
            return std::make_pair(trained, results);
          },
          "deal"_a, "by_gap"_a, "tol"_a, "max_epochs"_a, "seed"_a, "threads"_a, "interrupt"_a)
      .def(
          "sibling", [](const Blocks& s) { return new Blocks(&s); }, nb::rv_policy::take_ownership)
      .def("hold", &Blocks::hold, "blocks"_a)
      .def("weights",
           [](Blocks& s, int64_t features, Threads threads) -> nb::object {
             check_features(s.rows(), features);
             if (s.has_dense_model()) {
               check_number("features", features, s.features(), s.features());
               s.release();
               Buffer<T> model = s.take_dense_model();
               return nb::cast(shared(model, {features, s.problems()}));
             }
             const auto alpha = s.by_rows(true);
             const SparseRows<T> columns = columns_of(s.rows(), features);
             s.release();
             return model_weights<T>(columns, alpha, s.problems(), threads);
           })
      .def_prop_ro("blocks", &Blocks::blocks)
      .def_prop_ro("problems", &Blocks::problems)
      .def(
          "problems_of",
          [](const Blocks& s, int64_t b) {
            check_number("block", b, 0, s.blocks() - 1);
            return s.problems_of(b);
          },
          "block"_a)
      .def_prop_ro("data_bytes", [](const Blocks& s) { return s.rows().bytes(); })
      .def_prop_ro("heads", [](const Blocks& s) { return s.rows().heads(); })
      .def_prop_ro("dual_bytes", &Blocks::dual_bytes);
  blocks.attr("width") = Blocks::width;
  bind_variables<T>(blocks);
}

}  // namespace

void bind_blocks(nb::module_& m) {
  bind_both<BinaryBlocks>(m, "BinaryBlocks", [](auto blocks) { bind_training(blocks); });
}

}  // namespace manyclass
