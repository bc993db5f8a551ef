// Bindings of the max-margin loss with an elastic net (max_margin/solver.hpp).
#include "bind/bindings.hpp"
#include "max_margin/solver.hpp"

namespace manyclass {

namespace {

// The weights (features x classes), dense or sparse as in `model_weights`.
template <class T>
nb::object to_matrix(SparseModel<T> model, int64_t features, int64_t K) {
  model.ptr.resize(features + 1, model.ptr.back());
  if (!stored_dense<T>(features, K, model.ptr.back())) return nb::cast(to_tuple(std::move(model)));
  auto W = new_array<T>({features, K});
  for (int64_t f = 0; f < features; ++f)
    for (int64_t e = model.ptr[f]; e < model.ptr[f + 1]; ++e)
      W.data()[f * K + model.index[e]] = model.value[e];
  return nb::cast(W);
}

// The sums V during a fit: a list of labels and values for each head feature.
template <class T>
auto held_sums(MaxMarginSolver<T>& s) {
  SparseRows<T> out;
  for (const auto& row : s.sums()) {
    row.for_each([&](int32_t c, T v) { out.add(c, v); });
    out.end_row();
  }
  return to_tuple(std::move(out));
}

template <class T>
void set_held_sums(MaxMarginSolver<T>& s, In<int64_t> ptr, In<int32_t> labels, In<T> values) {
  check_length("sums.ptr", ptr.size(), static_cast<int64_t>(s.sums().size()) + 1);
  check_pointers("sums.ptr", ptr, std::ssize(labels));
  check_length("sums.values", values.size(), std::ssize(labels));
  check_distinct("sums.labels", ptr, labels, s.classes());
  check_finite("sums.values", values);
  for (size_t h = 0; h + 1 < ptr.size(); ++h) {
    const std::vector<int32_t> label(labels.data() + ptr.data()[h], labels.data() + ptr.data()[h + 1]);
    s.sums()[h].assign(label, values.data() + ptr.data()[h], s.classes());
  }
}

// The variables of a row for its own labels sum to at most C_i, and so do those for others.
template <class T>
void check_feasible(const MaxMarginSolver<T>& s, const In<int64_t>& ptr, const In<T>& values) {
  for (int64_t i = 0; i < s.rows().n; ++i) {
    double sum = 0;
    for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e) sum += values.data()[e];
    if (sum > rounding_of_sums * 2 * double(s.penalty(i)))
      reject("values", "those of row " + std::to_string(i) + " add up to " + in_digits(sum) + ", above " +
                           in_digits(2 * double(s.penalty(i))));
  }
}

template <class T, class Solver>
void bind_state(nb::class_<Solver>& solver) {
  solver
      .def("alpha",
           [](Solver& s) {
             SparseRows<T> out;
             for (int64_t i = 0; i < s.alpha().n(); ++i) {
               const auto row = s.alpha()[i];
               out.add(row.classes, row.values, row.size);
               out.end_row();
             }
             return to_tuple(std::move(out));
           })
      .def("set_alpha",
           [](Solver& s, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
             check_dual_rows(ptr, classes, values, s.rows().n, s.classes());
             check_feasible(s, ptr, values);
             s.alpha().assign_rows(ptr.data(), classes.data(), values.data());
           })
      .def("held_sums", &held_sums<T>)
      .def("set_held_sums", &set_held_sums<T>)
      .def("ease", [](Solver& s) { return to_numpy(s.ease()); })
      .def("set_ease",
           [](Solver& s, In<T> ease) {
             check_length("ease", ease.size(), static_cast<int64_t>(s.ease().size()));
             check_values("ease", ease, std::numeric_limits<T>::min(), T(1));
             s.ease() = to_vector(ease);
           })
      .def("pass_sums",
           [](Solver& s) {
             const PassStats p = s.seen();
             return to_numpy(std::vector<double>{s.squares(), p.loss, p.gap, p.alpha_sum, p.violation});
           })
      .def("set_pass_sums", [](Solver& s, In<double> v) {
        check_length("pass_sums", v.size(), 5);
        check_finite("pass_sums", v);
        s.set_pass(v.data()[0], {v.data()[1], v.data()[2], v.data()[3], v.data()[4]});
      });
}

template <class T, class Solver = MaxMarginSolver<T>>
void bind_solver(nb::class_<MaxMarginSolver<T>> solver) {
  solver
      .def(
          "__init__",
          [](Solver* self, Layout<T>& rows, In<int64_t> ptr, In<int32_t> labels, In<T> C, int64_t classes,
             double lambda, double tau, int64_t constant) {
            check_labelled(rows, ptr, labels, C, classes);
            check_ascending("labels", ptr, labels, classes);
            new (self) Solver(taken(rows), {to_vector(ptr), to_vector(labels)}, to_vector(C), classes, lambda,
                              tau, constant);
          },
          "rows"_a, "ptr"_a, "labels"_a, "C"_a, "classes"_a, "lambda_"_a, "tau"_a, "constant"_a)
      .def("begin_pass", &Solver::begin_pass)
      .def(
          "sweep",
          [](Solver& s, In<int64_t> order, int64_t wave, bool full, int64_t most_new, uint64_t seed,
             Threads threads) {
            check_order("order", order, s.rows().n);
            check_number("wave", wave, 1, INT32_MAX);
            check_number("most_new", most_new, 0);
            const PassStats seen =
                s.sweep(order.data(), std::ssize(order), wave, full, most_new, seed, threads);
            return std::make_tuple(seen.loss, seen.gap, s.dual_value(seen.alpha_sum), seen.violation);
          },
          "order"_a, "wave"_a, "full"_a, "most_new"_a, "seed"_a, "threads"_a, NoGil())
      .def(
          "refresh", [](Solver& s, Threads threads) { s.refresh(threads); }, "threads"_a, NoGil())
      .def(
          "certificate", [](Solver& s, Threads threads) { return to_tuple(s.certify(threads)); }, "threads"_a,
          NoGil())
      .def("weights",
           [](Solver& s, int64_t features, Threads threads) {
             check_features(s.rows(), features);
             return to_matrix(without_gil([&] { return s.model(threads); }), features, s.classes());
           })
      .def_prop_ro("data_bytes", [](Solver& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes", &Solver::weight_bytes)
      .def_prop_ro("entries", &Solver::entries)
      .def_prop_ro("dual_entries", [](Solver& s) { return s.alpha().entries(); })
      .def_prop_ro("dual_bytes", [](Solver& s) { return s.alpha().bytes(); });
  bind_state<T>(solver);
}

}  // namespace

void bind_max_margin(nb::module_& m) {
  bind_both<MaxMarginSolver>(m, "MaxMargin", [](auto solver) { bind_solver(solver); });
}

}  // namespace manyclass
