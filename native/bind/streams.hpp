// The bindings that solvers whose rows arrive block by block share.
#pragma once
#include "bind/arrays.hpp"
#include "dual/exact_weights.hpp"
#include "rows/layout.hpp"

namespace manyclass {

// Checks that a solver has labels and penalties for its current rows.
void check_loaded(const auto& s) { check_length("labels", s.labelled(), s.rows().n); }
// The number of tail features with lists of weights in a solver.
int64_t listed_features(const auto& s) {
  if constexpr (requires { s.lists(); })
    return s.lists().features();
  else
    return 0;
}
template <class T, class Solver>
void check_heads(const Solver& s, const Layout<T>& rows) {
  if (rows.tails() != listed_features(s) || rows.heads() != s.heads() || (rows.tails() != 0 && !rows.listed))
    reject("rows", "their features are not those of the solver");
}
template <class T, class Solver>
void check_exact(const Solver& s, const ExactWeights<T>& w) {
  if (w.heads() != s.heads() || w.classes() != s.classes() || w.tails() != listed_features(s))
    reject("exact", "features or classes are not those of the solver");
}

// The interface that all of them share: exact weights, swapped rows, and the weights of features of a single
// row.
template <class T, class Solver>
void bind_stream(nb::class_<Solver>& solver) {
  solver
      // Sets the weights to the exact ones, rounded.
      .def(
          "set_weights",
          [](Solver& s, ExactWeights<T>& w) {
            check_exact(s, w);
            w.round([&](int64_t head, int64_t c) { return s.weight(head, c); },
                    [&](int64_t tail, int32_t size) {
                      if constexpr (requires { s.lists(); })
                        s.lists().reserve(tail, s.lists()[tail].size + size);
                      return [&s, tail](int32_t c, T value) {
                        if constexpr (requires { s.lists(); }) s.lists().append(tail, c, value);
                      };
                    });
          },
          NoGil())
      // Reverses `swap_rows`: exchanges the rows of the solver and of the layout.
      .def("return_rows",
           [](Solver& s, Layout<T>& rows) {
             if (rows.n > 0) check_heads(s, rows);  // the solver may have had no rows before
             s.return_rows(rows);
           })
      // The class with the largest score, for each row.
      .def(
          "best_classes",
          [](const Solver& s, Threads threads) {
            return to_numpy(without_gil([&] { return s.best(threads); }));
          },
          "threads"_a)
      .def("single_weights", [](Solver& s) {
        check_loaded(s);
        SingleWeights<T> w(s.rows(), s.coefficients(), s.classes());
        return std::make_tuple(to_numpy(std::move(w.feature)), to_numpy(std::move(w.ptr)),
                               to_numpy(std::move(w.index)), to_numpy(std::move(w.value)));
      });
}

template <class T, class Solver>
void bind_row_stream(nb::class_<Solver>& solver) {
  bind_stream<T>(solver);
  solver
      .def(
          "swap_rows",
          [](Solver& s, Layout<T>& rows, In<int32_t> labels, In<T> C) {
            check_heads(s, rows);
            check_labelled(rows, labels, C, s.classes());
            s.swap_rows(rows, to_vector(labels), to_vector(C));
          },
          NoGil())
      .def(
          "measure",
          [](const Solver& s, Threads threads) {
            check_loaded(s);
            return to_tuple(s.measure(threads));
          },
          "threads"_a, NoGil())
      .def(
          "add_to",
          [](const Solver& s, ExactWeights<T>& w, Threads threads) {
            check_loaded(s);
            check_exact(s, w);
            w.add(s.rows(), s.coefficients(), threads);
          },
          "exact"_a, "threads"_a, NoGil());
}

}  // namespace manyclass
