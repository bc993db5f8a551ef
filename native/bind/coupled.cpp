// Bindings of the solver of the coupled losses (coupled/solver.hpp).
#include "bind/bindings.hpp"
#include "bind/passes.hpp"
#include "bind/streams.hpp"
#include "coupled/solver.hpp"

namespace manyclass {

namespace {

// The most rows of a group: the products of all pairs are in memory at the same time.
constexpr int64_t most_alike = 64;

// Checks groups of rows: no row is in two of them.
void check_groups(const In<int64_t>& ptr, const In<int64_t>& rows, int64_t n) {
  check_pointers("groups", ptr, std::ssize(rows));
  check_order("rows of groups", rows, n);
  int64_t most = 0;
  for (size_t g = 0; g + 1 < ptr.size(); ++g) most = std::max(most, ptr.data()[g + 1] - ptr.data()[g]);
  check_number("rows of a group", most, 0, most_alike);
}

// Checks that dual variables are within the bounds of their row.
template <class Solver, class T>
void check_feasible(const Solver& s, const In<int64_t>& ptr, const In<int32_t>& classes,
                    const In<T>& values) {
  for (int64_t i = 0; i < s.rows().n; ++i) {
    const FeasibleSet<T> set = s.feasible(i);
    double sum = 0;
    for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e) {
      const T cap = classes.data()[e] == s.labels()[i] ? set.own_cap : set.cap, value = values.data()[e];
      if (value > with_rounding(cap))
        reject("values", "that of row " + std::to_string(i) + " for class " +
                             std::to_string(classes.data()[e]) + " is " + in_digits(value) + ", above " +
                             in_digits(cap));
      sum += value;
    }
    if (sum > rounding_of_sums * set.total)
      reject("values", "those of row " + std::to_string(i) + " add up to " + in_digits(sum) + ", above " +
                           in_digits(set.total));
  }
}

template <class T, class Coupled>
void bind_training(nb::class_<Coupled>& coupled) {
  coupled
      .def(
          "__init__",
          [](Coupled* self, Layout<T>& rows, In<int32_t> labels, In<T> C, int64_t classes,
             const std::string& loss, double gamma, bool reduced) {
            check_labelled(rows, labels, C, classes);
            new (self) Coupled(taken(rows), to_vector(labels), to_vector(C), classes,
                               CoupledLoss::named(loss, classes, gamma), reduced);
          },
          "rows"_a, "labels"_a, "C"_a, "classes"_a, "loss"_a, "gamma"_a, "reduced"_a, NoGil())
      .def(
          "sweep",
          [](Coupled& s, In<int64_t> order, int64_t wave, bool full, double enter, int64_t most_new,
             Threads threads) {
            check_visit(s, order, wave, most_new);
            return to_tuple(s.sweep(order.data(), std::ssize(order), wave,
                                    {full, static_cast<T>(enter), most_new}, threads));
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "settle",
          [](Coupled& s, In<int64_t> ptr, In<int64_t> rows, int64_t rounds, double enter, int64_t most_new) {
            check_number("most_new", most_new, 0);
            check_groups(ptr, rows, s.rows().n);
            s.settle(ptr.data(), rows.data(), std::ssize(ptr) - 1, rounds,
                     {true, static_cast<T>(enter), most_new});
          },
          "ptr"_a, "rows"_a, "rounds"_a, "enter"_a, "most_new"_a, NoGil())
      .def(
          "alternate",
          [](Coupled& s, In<int64_t> order, const std::vector<int64_t>& chunks, Threads threads) {
            check_visit(s, order, 1, 0);
            check_pointers("chunks", chunks, s.classes());
            return to_tuple(s.alternate(order.data(), std::ssize(order), chunks, threads));
          },
          "order"_a, "chunks"_a, "threads"_a, NoGil());
}

template <class T, class Coupled>
void bind_variables(nb::class_<Coupled>& coupled) {
  coupled
      .def("alpha",
           [](Coupled& s) {
             SparseRows<T> out;
             for (int64_t i = 0; i < s.alpha().n(); ++i) {
               const auto a = s.alpha()[i];
               out.add(a.classes, a.values, a.size);
               if (a.own > 0) out.add(s.labels()[i], a.own);
               out.end_row();
             }
             return to_tuple(std::move(out));
           })
      .def("set_alpha",
           [](Coupled& s, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
             check_dual_rows(ptr, classes, values, s.rows().n, s.classes());
             check_feasible(s, ptr, classes, values);
             std::vector<int32_t> others;
             std::vector<T> held;
             for (int64_t i = 0; i < s.alpha().n(); ++i) {
               T own = 0;
               others.clear();
               held.clear();
               for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e) {
                 if (classes.data()[e] == s.labels()[i]) {
                   own = values.data()[e];
                   continue;
                 }
                 others.push_back(classes.data()[e]);
                 held.push_back(values.data()[e]);
               }
               s.alpha().assign(i, others.data(), held.data(), std::ssize(held), own);
             }
           })
      .def_prop_ro("dual_bytes", [](Coupled& s) { return s.alpha().bytes(); })
      .def_prop_ro("dual_entries", [](Coupled& s) { return s.alpha().entries(); });
}

template <class T, class Coupled>
void bind_model(nb::class_<Coupled>& coupled) {
  coupled
      .def(
          "certificate",
          [](Coupled& s, Threads threads, double scale, std::vector<double> further) {
            const auto [c, primals] = s.certificate(threads, scale, std::move(further));
            return std::make_tuple(c.primal, c.dual, c.violation, primals);
          },
          "threads"_a, "scale"_a = 1.0, "further"_a = std::vector<double>(), NoGil())
      .def(
          "refresh", [](Coupled& s, Threads threads) { s.refresh(threads); }, "threads"_a, NoGil())
      .def("set_relaxation", [](Coupled& s, double factor) { s.set_relaxation(static_cast<T>(factor)); })
      .def(
          "weights",
          [](Coupled& s, int64_t features, Threads threads, double scale) {
            check_features(s.rows(), features);
            const SparseRows<T> columns = columns_of(s.rows(), features);
            s.release();
            return model_weights<T>(columns, s.coefficients().times(scale), s.classes(), threads);
          },
          "features"_a, "threads"_a, "scale"_a = 1.0);
}

// Lists of weights of tail features, for rows in parts.
template <class T, class Coupled>
void bind_lists(nb::class_<Coupled>& coupled) {
  coupled.def_prop_ro("list_bytes", [](const Coupled& s) { return s.lists().bytes(); })
      .def_prop_ro("list_entries", [](const Coupled& s) { return s.lists().entries(); })
      .def("clear_lists", [](Coupled& s) { s.lists().clear(); })
      // Adds the listed weights of some features to a matrix (these features x K).
      .def(
          "add_listed",
          [](const Coupled& s, In<int64_t> tails, Out<T> out) {
            check_range("tails", tails, 0, s.lists().features());
            check_length("weights", out.size(), std::ssize(tails) * s.classes());
            for (size_t t = 0; t < tails.size(); ++t) {
              const auto list = s.lists()[tails.data()[t]];
              T* to = out.data() + static_cast<int64_t>(t) * s.classes();
              for (int32_t e = 0; e < list.size; ++e) to[list.classes[e]] += list.values[e];
            }
          },
          "tails"_a, "weights"_a, NoGil());
}

}  // namespace

void bind_coupled(nb::module_& m) {
  bind_both<CoupledSolver>(m, "Coupled", []<class T>(nb::class_<CoupledSolver<T>> coupled) {
    bind_training<T>(coupled);
    bind_variables<T>(coupled);
    bind_model<T>(coupled);
    bind_lists<T>(coupled);
    bind_pass(coupled);
    bind_row_stream<T>(coupled);
  });
}

}  // namespace manyclass
