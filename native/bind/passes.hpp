// Bindings of the passes of the coupled losses and of maximum entropy.
#pragma once
#include "bind/arrays.hpp"
#include "dual/pass_stats.hpp"
#include "parallel/processes.hpp"

namespace manyclass {

inline auto to_tuple(const PassStats& p) {
  return std::make_tuple(p.loss, p.gap, p.alpha_sum, p.violation, p.waves, p.theta, p.asleep);
}

// An upper bound of all sums over the rows of a pass, and of the number of waves.
inline constexpr double most_of_a_pass = 0x1p62;

// Checks that rows can be visited in this order, `wave` at a time.
void check_visit(const auto& s, const In<int64_t>& order, int64_t wave, int64_t most_new) {
  check_length("labels", s.labelled(), s.rows().n);
  check_order("order", order, s.rows().n);
  check_number("wave", wave, 1, INT32_MAX);
  check_number("most_new", most_new, 0);
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
             check_pointers("bounds", bounds, s.classes());
             check_number("rank", rank, 0, std::ssize(bounds) - 2);
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
          "training_weights", [](Solver& s) { return shared(s.weights()); }, nb::rv_policy::reference)
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
        check_values("sums", flat, -most_of_a_pass, most_of_a_pass);
        std::vector<PassStats> all;
        for (const double* v = flat.data(); v + 6 <= flat.data() + flat.size(); v += 6)
          all.push_back({v[0], v[1], v[2], v[3], static_cast<int64_t>(v[4]), v[5]});
        s.places().set_sums(all);
      });
}

}  // namespace manyclass
