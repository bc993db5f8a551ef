// Bindings of the solver of maximum entropy (coupled/maximum_entropy.hpp).
#include "coupled/maximum_entropy.hpp"

#include "bind/bindings.hpp"
#include "bind/passes.hpp"
#include "bind/streams.hpp"
#include "simd/vector.hpp"

namespace manyclass {

namespace {

// The tolerance for the logarithms of shares, which are from -30 to 0.
constexpr float rounding_of_logs = 0.01f;
template <class T, class MaxEnt>
void bind_variables(nb::class_<MaxEnt>& solver) {
  solver
      .def("alpha",
           [](MaxEnt& s) {
             const int64_t n = s.rows().n, K = s.classes();
             SparseRows<T> out;
             for (int64_t i = 0; i < n; ++i) {
               for (int64_t c = 0; c < K; ++c)
                 out.add(static_cast<int32_t>(c), s.penalty(i) * std::exp(s.state(i)[c]));
               out.end_row();
             }
             return to_tuple(std::move(out));
           })
      .def("set_alpha",
           [](MaxEnt& s, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
             check_dual_rows(ptr, classes, values, s.rows().n, s.classes());
             for (int64_t i = 0; i < s.rows().n; ++i) {
               double sum = 0;
               for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e) sum += values.data()[e];
               if (!(sum > 0)) reject("values", "those of row " + std::to_string(i) + " add up to 0");
               std::fill_n(s.state(i), s.classes(), MaxEnt::least);
               for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e)
                 s.state(i)[classes.data()[e]] =
                     std::max(MaxEnt::least, static_cast<T>(std::log(values.data()[e] / sum)));
             }
           })
      .def_prop_ro(
          "variables", [](MaxEnt& s) { return shared(s.variables()); }, nb::rv_policy::reference)
      // Sets the variables of the rows [first, last), in the form of `variables`.
      .def(
          "set_variables",
          [](MaxEnt& s, int64_t first, int64_t last, In<T> values) {
            check_number("first", first, 0, s.rows().n);
            check_number("last", last, first, s.rows().n);
            check_length("variables", values.size(), (last - first) * padded<T>(s.classes()));
            check_values("variables", values, MaxEnt::least - rounding_of_logs, rounding_of_logs);
            std::copy_n(values.data(), values.size(), s.state(first));
          },
          "first"_a, "last"_a, "values"_a)
      .def_prop_ro("dual_bytes", &MaxEnt::dual_bytes)
      .def_prop_ro("dual_entries", [](const MaxEnt& s) { return s.rows().n * s.classes(); });
}

// The same interface as Coupled; arguments that have no meaning here are ignored.
template <class T, class MaxEnt>
void bind_solver(nb::class_<MaxEnt>& solver) {
  solver
      .def(
          "__init__",
          [](MaxEnt* self, Layout<T>& rows, In<int32_t> labels, In<T> C, int64_t classes, const std::string&,
             double, bool reduced) {
            check_labelled(rows, labels, C, classes);
            new (self) MaxEnt(taken(rows), to_vector(labels), to_vector(C), classes, reduced);
          },
          "rows"_a, "labels"_a, "C"_a, "classes"_a, "loss"_a, "gamma"_a, "reduced"_a, NoGil())
      .def(
          "sweep",
          [](MaxEnt& s, In<int64_t> order, int64_t wave, bool, double, int64_t, Threads threads) {
            check_visit(s, order, wave, 0);
            return to_tuple(s.sweep(order.data(), std::ssize(order), wave, threads));
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "certificate", [](MaxEnt& s, Threads threads) { return to_tuple(s.certificate(threads)); },
          "threads"_a, NoGil())
      .def("weights", [](MaxEnt& s, int64_t features, int) {
        check_features(s.rows(), features);
        auto W = new_array<T>({features, s.classes()});
        s.copy_model(W.data());
        return W;
      });
}

}  // namespace

void bind_maximum_entropy(nb::module_& m) {
  bind_both<MaximumEntropySolver>(m, "MaximumEntropy",
                                  []<class T>(nb::class_<MaximumEntropySolver<T>> solver) {
                                    bind_solver<T>(solver);
                                    bind_variables<T>(solver);
                                    bind_pass(solver);
                                    bind_row_stream<T>(solver);
                                  });
}

}  // namespace manyclass
