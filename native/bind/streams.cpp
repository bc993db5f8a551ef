// Bindings of exact weights, and of the binary losses for rows that arrive block by block
// (binary/stream.hpp).
#include "bind/streams.hpp"

#include "binary/enclosing_ball.hpp"
#include "binary/loss.hpp"
#include "binary/pegasos.hpp"
#include "binary/stream.hpp"
#include "bind/bindings.hpp"
#include "bind/packed.hpp"
#include "dual/exact_weights.hpp"
#include "simd/vector.hpp"

namespace manyclass {

namespace {

// Checks that a solver has the rows [first, last).
void check_part(const auto& s, int64_t first, int64_t last) {
  check_loaded(s);
  check_number("first", first, 0, s.rows().n);
  check_number("last", last, first, s.rows().n);
}

template <class Exact>
void bind_exact(nb::class_<Exact> exact) {
  exact
      .def(
          "__init__",
          [](Exact* self, int64_t heads, int64_t low, int64_t high, int64_t classes, int64_t tails) {
            check_number("heads", heads, 0, INT32_MAX);
            check_number("tails", tails, 0, INT32_MAX);
            check_number("high", high, low, INT32_MAX);
            new (self) Exact(heads, low, high, classes, tails);
          },
          "heads"_a, "low"_a, "high"_a, "classes"_a, "tails"_a = 0)
      .def_prop_ro("low", &Exact::low)
      .def_prop_ro("high", &Exact::high)
      // By class of the range: the squares of the exact weights, and of the rounded ones.
      .def("squares", [](const Exact& w) {
        return std::make_tuple(to_numpy(w.exact_squares()), to_numpy(w.rounded_squares()));
      });
}

template <class T>
void bind_balls(nb::class_<EnclosingBalls<T>> balls) {
  balls
      .def(
          "__init__",
          [](EnclosingBalls<T>* self, int64_t vectors) {
            check_number("vectors", vectors, 0, INT32_MAX);
            new (self) EnclosingBalls<T>(vectors);
          },
          "vectors"_a)
      // By vector of classes and lane: the factors that turn the stored u into dual variables.
      .def("factors", [](const EnclosingBalls<T>& all) {
        std::vector<double> out;
        for (const auto& ball : all.ball) {
          const Wide<T> factor = ball.factor();
          for (int l = 0; l < BinaryStream<T>::width; ++l) out.push_back(factor[l]);
        }
        return to_numpy(std::move(out));
      });
}

template <class T, class Stream>
void bind_visits(nb::class_<Stream>& stream) {
  stream
      // visits: the fields of a StreamVisit. Returns loss, gap, norm, violation, visited, kept of each.
      .def(
          "visit",
          [](Stream& s, const std::vector<std::tuple<int64_t, bool, double, int64_t, double>>& visits,
             uint64_t seed, Threads threads, Interrupt& interrupt) {
            check_loaded(s);
            std::vector<StreamVisit> how;
            std::vector<int64_t> visited;  // threads visit different vectors, so none may occur twice
            for (const auto& [vector, all, rest, rounds, quiet] : visits) {
              how.push_back({vector, all, rest, rounds, quiet});
              visited.push_back(vector);
            }
            check_order("visits", visited, s.vectors());
            std::vector<std::tuple<double, double, double, double, int64_t, int64_t>> out;
            for (const BlockSums& b : s.visit(how, seed, threads, interrupt))
              out.emplace_back(b.loss, b.gap, b.norm, b.violation, b.visited, b.kept);
            return out;
          },
          "visits"_a, "seed"_a, "threads"_a, "interrupt"_a, NoGil())
      // time: the fields of a PegasosTime. Returns loss, gap, norm, violation of each vector of classes.
      .def(
          "visit_by_pegasos",
          [](Stream& s, std::tuple<double, double, double, double> time, bool together, uint64_t seed,
             Threads threads, Interrupt& interrupt) {
            check_loaded(s);
            const auto [begin, end, visits, unit] = time;
            const PegasosTime when{begin, end, visits, unit};
            std::vector<std::tuple<double, double, double, double>> out(s.vectors());
            with_loss(s.loss(), [&]<Binary loss>() {
              s.template visit_all<loss>(
                  seed, threads, interrupt, [&](int64_t b, const VisitedRows<T>& on, auto interrupted) {
                    Pegasos<T, loss> pegasos(on, when);
                    const BlockSums seen = together ? pegasos.block(interrupted) : pegasos.rows(interrupted);
                    out[b] = {seen.loss, seen.gap, seen.norm, seen.violation};
                  });
            });
            return out;
          },
          "time"_a, "together"_a, "seed"_a, "threads"_a, "interrupt"_a, NoGil())
      .def(
          "grow_balls",
          [](Stream& s, EnclosingBalls<T>& balls, uint64_t seed, Threads threads, Interrupt& interrupt) {
            check_loaded(s);
            s.template visit_all<Binary::squared_hinge>(
                seed, threads, interrupt, [&](int64_t b, const VisitedRows<T>& on, auto interrupted) {
                  balls.ball.at(b).grow(on, interrupted);
                });
          },
          "balls"_a, "seed"_a, "threads"_a, "interrupt"_a, NoGil());
}

template <class T, class Stream>
void bind_variables(nb::class_<Stream>& stream) {
  stream
      .def("variables_of",
           [](const Stream& s, int64_t first, int64_t last) {
             check_part(s, first, last);
             return to_tuple(s.variables_of(first, last));
           })
      .def("set_variables",
           [](Stream& s, int64_t first, int64_t last, In<int64_t> counts, In<int32_t> rows,
              In<uint16_t> lanes, In<T> values) {
             check_part(s, first, last);
             check_length("counts", counts.size(), s.vectors());
             s.set_variables(first, last, packed_view(counts, rows, lanes, values));
           })
      .def("active_of",
           [](const Stream& s, int64_t first, int64_t last) {
             check_part(s, first, last);
             return to_numpy(s.active_of(first, last));
           })
      .def("set_active", [](Stream& s, int64_t first, int64_t last, In<uint8_t> bits) {
        check_part(s, first, last);
        s.set_active(first, last, bits.data(), std::ssize(bits));
      });
}

template <class T, class Stream>
void bind_rows(nb::class_<Stream>& stream) {
  stream
      .def(
          "__init__",
          [](Stream* self, int64_t heads, int64_t classes, const std::string& loss, int64_t first) {
            check_number("heads", heads, 0, INT32_MAX);
            check_number("classes", classes, 0, INT32_MAX);
            check_number("first", first, 0, INT32_MAX);
            new (self) Stream(heads, classes, binary_named(loss), first);
          },
          "heads"_a, "classes"_a, "loss"_a, "first"_a)
      .def(
          "swap_rows",
          [](Stream& s, Layout<T>& rows, In<int64_t> ptr, In<int32_t> labels, In<T> C) {
            check_heads(s, rows);
            check_labelled(rows, ptr, labels, C, s.classes());
            s.swap_rows(rows, ptr.data(), labels.data(), to_vector(C));
          },
          "rows"_a, "label_ptr"_a, "labels"_a, "C"_a, NoGil())
      .def(
          "measure",
          [](Stream& s, Threads threads) {
            check_loaded(s);
            std::vector<std::tuple<double, double, double>> out;
            for (const Certificate& c : s.measure(threads)) out.push_back(to_tuple(c));
            return out;
          },
          "threads"_a, NoGil())
      .def(
          "add_to",
          [](Stream& s, ExactWeights<T>& w, Threads threads) {
            check_loaded(s);
            check_exact(s, w);
            s.add_to(w, threads);
          },
          "exact"_a, "threads"_a, NoGil())
      // The weights of a vector of classes: head features x lanes.
      .def("weights_of",
           [](Stream& s, int64_t b) {
             check_number("vector", b, 0, s.vectors() - 1);
             return shared(s.weights_of(b));
           })
      .def_prop_ro("vectors", &Stream::vectors)
      .def_prop_ro("weight_bytes", &Stream::weight_bytes);
  stream.attr("width") = Stream::width;
}

}  // namespace

void bind_streams(nb::module_& m) {
  bind_both<ExactWeights>(m, "ExactWeights", [](auto exact) { bind_exact(exact); });
  bind_both<EnclosingBalls>(m, "EnclosingBalls", [](auto balls) { bind_balls(balls); });
  bind_both<BinaryStream>(m, "BinaryStream", []<class T>(nb::class_<BinaryStream<T>> stream) {
    bind_rows<T>(stream);
    bind_visits<T>(stream);
    bind_variables<T>(stream);
    bind_stream<T>(stream);
  });
}

}  // namespace manyclass
