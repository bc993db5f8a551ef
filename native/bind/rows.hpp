// Bindings of the layout of rows, and of the solvers of the coupled losses and of maximum entropy.
#pragma once
#include "bind/arrays.hpp"
#include "bind/planes.hpp"
#include "bind/streams.hpp"
#include "coupled/maximum_entropy.hpp"
#include "coupled/solver.hpp"
#include "rows/feature_places.hpp"
#include "rows/lay_out.hpp"
#include "rows/layout.hpp"
#include "rows/row_adder.hpp"
#include "simd/vector.hpp"

namespace manyclass {

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
        const int64_t rows = static_cast<int64_t>(ptr.size()) - 1;
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

inline auto to_tuple(const PassStats& p) {
  return std::make_tuple(p.loss, p.gap, p.alpha_sum, p.violation, p.waves, p.theta, p.asleep);
}

// An upper bound of all sums over the rows of a pass, and of the number of waves.
inline constexpr double most_of_a_pass = 0x1p62;
// The tolerance for the logarithms of shares, which are from -30 to 0.
inline constexpr float rounding_of_logs = 0.01f;
// The most rows of a group: the products of all pairs are in memory at the same time.
inline constexpr int64_t most_alike = 64;

// Checks that rows can be visited in this order, `wave` at a time.
template <class Solver>
void check_visit(const Solver& s, const In<int64_t>& order, int64_t wave, int64_t most_new, int threads) {
  check_length("labels", s.labelled(), s.rows().n);
  check_order("order", span_of(order), s.rows().n);
  check_number("wave", wave, 1, INT32_MAX);
  check_number("most_new", most_new, 0);
  check_number("threads", threads, 1);
}

// Checks groups of rows: no row is in two of them.
inline void check_groups(const In<int64_t>& ptr, const In<int64_t>& rows, int64_t n) {
  check_pointers("groups", span_of(ptr), static_cast<int64_t>(rows.size()));
  check_order("rows of groups", span_of(rows), n);
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

// The interface that both solvers share: sizes, other processes, and everything besides the variables that is
// needed to resume in the middle of a pass: the weights with their accumulated rounding errors, and the sums
// of the pass so far (6 numbers per PassStats).
template <class Solver>
void bind_pass(nb::class_<Solver>& solver) {
  solver
      // gather: a function that takes this process's bytes and returns those of all processes. bounds: the
      // boundaries of the classes of each process.
      .def("join",
           [](Solver& s, nb::callable gather, const std::vector<int64_t>& bounds, int rank) {
             check_pointers("bounds", std::span(bounds), s.classes());
             check_number("rank", rank, 0, static_cast<int64_t>(bounds.size()) - 2);
             Processes processes;
             for (size_t p = 0; p + 1 < bounds.size(); ++p)
               processes.ranges.push_back({bounds[p], bounds[p + 1]});
             processes.rank = rank;
             processes.gather = [gather](const Bytes& mine) {
               nb::gil_scoped_acquire gil;
               std::vector<Bytes> all;
               const nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>> view(mine.data(), {mine.size()});
               for (nb::handle part : gather(view)) {
                 const auto bytes = nb::cast<In<uint8_t>>(part);
                 all.emplace_back(bytes.data(), bytes.data() + bytes.size());
               }
               return all;
             };
             s.join(std::move(processes));
           })
      // The range of classes held here, the column of the first one, and the column of the mean or -1.
      .def_prop_ro("held_columns", &Solver::held_columns)
      .def_prop_ro("heads", [](const Solver& s) { return s.rows().heads(); })
      .def_prop_ro("data_bytes", [](const Solver& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes", [](Solver& s) { return s.weights().bytes(); })
      .def_prop_ro(
          "training_weights", [](Solver& s) { return shared(s.weights()); },
          nb::rv_policy::reference_internal)
      .def("begin_pass", &Solver::begin_pass)
      .def("pass_sums",
           [](Solver& s) {
             std::vector<double> flat;
             for (const PassStats& p : s.places().sums())
               flat.insert(flat.end(), {p.loss, p.gap, p.alpha_sum, p.violation, double(p.waves), p.theta});
             return to_numpy(std::move(flat));
           })
      .def("set_pass_sums", [](Solver& s, In<double> flat) {
        if (flat.size() == 0 || flat.size() % 6 != 0) reject("sums", "their number is not a multiple of 6");
        check_values("sums", span_of(flat), -most_of_a_pass, most_of_a_pass);
        std::vector<PassStats> all;
        for (const double* v = flat.data(); v + 6 <= flat.data() + flat.size(); v += 6)
          all.push_back({v[0], v[1], v[2], v[3], static_cast<int64_t>(v[4]), v[5]});
        s.places().set_sums(all);
      });
}

template <class T>
void bind_rows(nb::module_& m, const std::string& suffix) {
  nb::class_<Layout<T>> layout(m, ("Layout" + suffix).c_str());
  bind_layout<T, float, int32_t>(layout);
  bind_layout<T, float, int64_t>(layout);
  bind_layout<T, double, int32_t>(layout);
  bind_layout<T, double, int64_t>(layout);
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

  using Coupled = CoupledSolver<T>;
  nb::class_<Coupled> coupled(m, ("Coupled" + suffix).c_str());
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
             int threads) {
            check_visit(s, order, wave, most_new, threads);
            return to_tuple(s.sweep(order.data(), static_cast<int64_t>(order.size()), wave,
                                    {full, static_cast<T>(enter), most_new}, threads));
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "settle",
          [](Coupled& s, In<int64_t> ptr, In<int64_t> rows, int64_t rounds, double enter, int64_t most_new) {
            check_number("most_new", most_new, 0);
            check_groups(ptr, rows, s.rows().n);
            s.settle(ptr.data(), rows.data(), static_cast<int64_t>(ptr.size()) - 1, rounds,
                     {true, static_cast<T>(enter), most_new});
          },
          "ptr"_a, "rows"_a, "rounds"_a, "enter"_a, "most_new"_a, NoGil())
      .def(
          "alternate",
          [](Coupled& s, In<int64_t> order, const std::vector<int64_t>& chunks, int threads) {
            check_visit(s, order, 1, 0, threads);
            check_pointers("chunks", std::span(chunks), s.classes());
            return to_tuple(s.alternate(order.data(), static_cast<int64_t>(order.size()), chunks, threads));
          },
          "order"_a, "chunks"_a, "threads"_a, NoGil())
      .def(
          "certificate",
          [](Coupled& s, int threads, double scale, std::vector<double> further) {
            check_number("threads", threads, 1);
            const auto [c, primals] = s.certificate(threads, scale, std::move(further));
            return std::make_tuple(c.primal, c.dual, c.violation, primals);
          },
          "threads"_a, "scale"_a = 1.0, "further"_a = std::vector<double>(), NoGil())
      .def(
          "refresh",
          [](Coupled& s, int threads) {
            check_number("threads", threads, 1);
            s.refresh(threads);
          },
          "threads"_a, NoGil())
      .def("set_relaxation", [](Coupled& s, double factor) { s.set_relaxation(static_cast<T>(factor)); })
      .def("alpha",
           [](Coupled& s) {
             std::vector<int64_t> ptr{0};
             std::vector<int32_t> classes;
             std::vector<T> values;
             for (int64_t i = 0; i < s.alpha().n(); ++i) {
               const auto a = s.alpha()[i];
               classes.insert(classes.end(), a.classes, a.classes + a.size);
               values.insert(values.end(), a.values, a.values + a.size);
               if (a.own > 0) {
                 classes.push_back(s.labels()[i]);
                 values.push_back(a.own);
               }
               ptr.push_back(static_cast<int64_t>(classes.size()));
             }
             return std::make_tuple(to_numpy(std::move(ptr)), to_numpy(std::move(classes)),
                                    to_numpy(std::move(values)));
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
               s.alpha().assign(i, others.data(), held.data(), static_cast<int64_t>(held.size()), own);
             }
           })
      .def(
          "weights",
          [](Coupled& s, int64_t features, int threads, double scale) {
            check_number("threads", threads, 1);
            check_features(s.rows(), features);
            const Columns<T> columns(s.rows(), features);
            s.release();
            const CoupledCoefficients<T> coef = s.coefficients();
            return model_weights<T>(columns, ScaledCoefficients<T>(coef, scale), s.classes(), threads);
          },
          "features"_a, "threads"_a, "scale"_a = 1.0)
      .def_prop_ro("dual_bytes", [](Coupled& s) { return s.alpha().bytes(); })
      .def_prop_ro("dual_entries", [](Coupled& s) { return s.alpha().entries(); });

  bind_pass(coupled);
  bind_row_stream<T>(coupled);
  // Lists of weights of tail features, for rows in parts.
  coupled.def_prop_ro("list_bytes", [](const Coupled& s) { return s.lists().bytes(); })
      .def_prop_ro("list_entries", [](const Coupled& s) { return s.lists().entries(); })
      .def("clear_lists", [](Coupled& s) { s.lists().clear(); })
      // Adds the listed weights of some features to a matrix (these features x K).
      .def(
          "add_listed",
          [](const Coupled& s, In<int64_t> tails, Out<T> out) {
            check_range("tails", span_of(tails), 0, s.lists().features());
            check_length("weights", out.size(), static_cast<int64_t>(tails.size()) * s.classes());
            for (size_t t = 0; t < tails.size(); ++t) {
              const auto list = s.lists()[tails.data()[t]];
              T* to = out.data() + static_cast<int64_t>(t) * s.classes();
              for (int32_t e = 0; e < list.size; ++e) to[list.classes[e]] += list.values[e];
            }
          },
          "tails"_a, "weights"_a, NoGil());
  // The same interface as Coupled; arguments that have no meaning here are ignored.
  using MaxEnt = MaximumEntropySolver<T>;
  nb::class_<MaxEnt> maximum_entropy(m, ("MaximumEntropy" + suffix).c_str());
  maximum_entropy
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
          [](MaxEnt& s, In<int64_t> order, int64_t wave, bool, double, int64_t, int threads) {
            check_visit(s, order, wave, 0, threads);
            return to_tuple(s.sweep(order.data(), static_cast<int64_t>(order.size()), wave, threads));
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "certificate",
          [](MaxEnt& s, int threads) {
            check_number("threads", threads, 1);
            const Certificate c = s.certificate(threads);
            return std::make_tuple(c.primal, c.dual, c.violation);
          },
          "threads"_a, NoGil())
      .def("alpha",
           [](MaxEnt& s) {
             const int64_t n = s.rows().n, K = s.classes();
             std::vector<int64_t> ptr{0};
             std::vector<int32_t> classes;
             std::vector<T> values;
             for (int64_t i = 0; i < n; ++i) {
               for (int64_t c = 0; c < K; ++c) {
                 classes.push_back(static_cast<int32_t>(c));
                 values.push_back(s.penalty(i) * std::exp(s.state(i)[c]));
               }
               ptr.push_back((i + 1) * K);
             }
             return std::make_tuple(to_numpy(std::move(ptr)), to_numpy(std::move(classes)),
                                    to_numpy(std::move(values)));
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
      .def("weights",
           [](MaxEnt& s, int64_t features, int) {
             check_features(s.rows(), features);
             auto W = new_array<T>({features, s.classes()});
             s.copy_model(W.data());
             return W;
           })
      .def_prop_ro(
          "variables", [](MaxEnt& s) { return shared(s.variables()); }, nb::rv_policy::reference_internal)
      // Sets the variables of the rows [first, last), in the form of `variables`.
      .def(
          "set_variables",
          [](MaxEnt& s, int64_t first, int64_t last, In<T> values) {
            check_number("first", first, 0, s.rows().n);
            check_number("last", last, first, s.rows().n);
            check_length("variables", values.size(), (last - first) * padded<T>(s.classes()));
            check_values("variables", span_of(values), MaxEnt::least - rounding_of_logs, rounding_of_logs);
            std::copy_n(values.data(), values.size(), s.state(first));
          },
          "first"_a, "last"_a, "values"_a)
      .def_prop_ro("dual_bytes", &MaxEnt::dual_bytes)
      .def_prop_ro("dual_entries", [](const MaxEnt& s) { return s.rows().n * s.classes(); });
  bind_pass(maximum_entropy);
  bind_row_stream<T>(maximum_entropy);
}

}  // namespace manyclass
