// The only file that knows Python: arrays in, arrays out, the GIL released while a kernel runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "binary_blocks.hpp"
#include "coupled.hpp"
#include "leagues.hpp"
#include "maximum_entropy.hpp"
#include "predict.hpp"
#include "svmlight.hpp"
#include "svmlight_format.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace manyclass;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> v) {
  auto* held = new std::vector<T>(std::move(v));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> to_numpy(Buffer<T> buffer, int64_t rows, int64_t columns) {
  auto* held = new Buffer<T>(std::move(buffer));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<2>>(
      held->data(), {static_cast<size_t>(rows), static_cast<size_t>(columns)}, owner);
}

// An array of Python's, zeroed.
template <class T>
nb::ndarray<nb::numpy, T> new_array(std::vector<int64_t> shape) {
  size_t size = 1;
  std::vector<size_t> dims;
  for (int64_t s : shape) {
    dims.push_back(static_cast<size_t>(s));
    size *= static_cast<size_t>(s);
  }
  auto* held = new Memory(size * sizeof(T));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Memory*>(p); });
  return nb::ndarray<nb::numpy, T>(held->data(), dims.size(), dims.data(), owner);
}

// The solver's own memory, for as long as the solver is there.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> shared(Buffer<T>& buffer) {
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(buffer.data(), {static_cast<size_t>(buffer.size())});
}

template <class T>
std::vector<T> to_vector(const In<T>& a) {
  return std::vector<T>(a.data(), a.data() + a.size());
}

Binary binary_named(const std::string& name) {
  if (name == "hinge") return Binary::hinge;
  if (name == "squared_hinge") return Binary::squared_hinge;
  if (name == "logistic") return Binary::logistic;
  throw nb::value_error(("this kernel has no loss named " + name).c_str());
}

// The caller's matrix, whose numbers and indices come in two widths each.
template <class X, class I>
CsrView<X, I, int64_t> view(const In<int64_t>& ptr, const In<I>& index, const In<X>& value, int64_t features,
                            double constant = 0) {
  return {ptr.data(), index.data(), value.data(), static_cast<int64_t>(ptr.size()) - 1, features, constant};
}

std::vector<std::string> supported_builds() {
  std::vector<std::string> names{"baseline"};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) names.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    names.push_back("avx512");
#endif
  return names;
}

template <class T, class X, class I>
void bind_layout(nb::class_<Layout<T>>& cls) {
  cls.def(
      "__init__",
      [](Layout<T>* self, In<int64_t> ptr, In<I> index, In<X> value, int64_t features, double constant,
         int64_t tail_rows) {
        new (self) Layout<T>(make_layout<T>(view(ptr, index, value, features, constant), tail_rows));
      },
      "indptr"_a, "indices"_a, "values"_a, "n_features"_a, "constant"_a, "tail_rows"_a, NoGil());
}

// The model's weights (features x classes): an array if that is small or at least no larger than the arrays
// of a sparse matrix, else those.
template <class T, class Coefs>
nb::object model_weights(const Columns<T>& columns, const Coefs& coef, int64_t K, int threads) {
  const int64_t features = columns.features(), dense_bytes = features * K * static_cast<int64_t>(sizeof(T));
  std::vector<int64_t> ptr(features + 1, 0);
  if (dense_bytes > small_model) {
    nb::gil_scoped_release nogil;
    for_each_feature(columns, coef, K, threads,
                     [&](int64_t f, const auto& weights) { ptr[f + 1] = weights.nonzeros(); });
    for (int64_t f = 0; f < features; ++f) ptr[f + 1] += ptr[f];
  }
  const int64_t nonzeros = ptr.back();
  if (dense_bytes <= small_model ||
      nonzeros * static_cast<int64_t>(sizeof(int32_t) + sizeof(T)) >= dense_bytes) {
    auto W = new_array<T>({features, K});
    {
      nb::gil_scoped_release nogil;
      for_each_feature(columns, coef, K, threads,
                       [&](int64_t f, const auto& weights) { weights.copy_dense(W.data() + f * K); });
    }
    return nb::cast(W);
  }
  auto classes = new_array<int32_t>({nonzeros});
  auto values = new_array<T>({nonzeros});
  {
    nb::gil_scoped_release nogil;
    for_each_feature(columns, coef, K, threads, [&](int64_t f, const auto& weights) {
      weights.copy_sparse(classes.data() + ptr[f], values.data() + ptr[f]);
    });
  }
  return nb::make_tuple(to_numpy(std::move(ptr)), classes, values);
}

// What a solver that goes through rows needs besides its variables to go on in the middle of a pass: weights
// with the rounding they have accumulated, and the sums of the pass so far (6 numbers for each PassStats).
template <class Solver>
void bind_pass(nb::class_<Solver>& solver) {
  solver
      // gather: a function from bytes to everyone's bytes; bounds: of the classes of each process.
      .def("join",
           [](Solver& s, nb::callable gather, const std::vector<int64_t>& bounds, int rank) {
             Processes processes;
             for (size_t p = 0; p + 1 < bounds.size(); ++p)
               processes.ranges.push_back({bounds[p], bounds[p + 1]});
             processes.rank = rank;
             processes.gather = [gather](const Bytes& mine) {
               nb::gil_scoped_acquire gil;
               std::vector<Bytes> all;
               for (nb::handle part : gather(nb::bytes(mine.data(), mine.size()))) {
                 const auto bytes = nb::cast<nb::bytes>(part);
                 const auto* begin = static_cast<const uint8_t*>(bytes.data());
                 all.emplace_back(begin, begin + bytes.size());
               }
               return all;
             };
             s.join(std::move(processes));
           })
      // First and last class held here, the column of the first one, and of the mean or -1.
      .def_prop_ro("held_columns", &Solver::held_columns)
      .def_prop_ro("heads", [](const Solver& s) { return s.rows().heads(); })
      .def_prop_ro(
          "training_weights", [](Solver& s) { return shared(s.weights()); },
          nb::rv_policy::reference_internal)
      .def("pass_sums",
           [](const Solver& s) {
             std::vector<double> flat;
             for (const PassStats& p : s.sums())
               flat.insert(flat.end(), {p.loss, p.gap, p.alpha_sum, p.violation, double(p.waves), p.theta});
             return to_numpy(std::move(flat));
           })
      .def("set_pass_sums", [](Solver& s, In<double> flat) {
        std::vector<PassStats> all;
        for (const double* v = flat.data(); v + 6 <= flat.data() + flat.size(); v += 6)
          all.push_back({v[0], v[1], v[2], v[3], static_cast<int64_t>(v[4]), v[5]});
        s.set_sums(all);
      });
}

template <class T>
void bind_leagues(nb::module_& m, const std::string& suffix) {
  using L = Leagues<T>;
  nb::class_<L>(m, ("Leagues" + suffix).c_str())
      .def(
          "__init__",
          [](L* self, Layout<T>& rows, In<int32_t> labels, In<T> C, In<int32_t> league, int64_t leagues) {
            new (self) L(std::move(rows), to_vector(labels), to_vector(C), to_vector(league), leagues);
          },
          "rows"_a, "labels"_a, "C"_a, "league"_a, "leagues"_a, NoGil())
      .def("start", [](L& s, int64_t l) { s.league(l).start(s.rows()); })
      .def("leave", [](L& s, int64_t l) { s.league(l).leave(); })
      .def("here", [](L& s, int64_t l) { return s.league(l).here; })
      .def("pack",
           [](L& s, int64_t l) { return to_numpy(LeagueParcel<T>::pack(s.league(l), s.rows().heads())); })
      .def(
          "unpack",
          [](L& s, int64_t l, In<uint8_t> parcel) {
            LeagueParcel<T>::unpack(parcel.data(), parcel.size(), s.league(l), s.rows());
          },
          NoGil())
      .def(
          "play",
          [](L& s, std::vector<std::pair<int32_t, int32_t>> matches, bool full, double enter,
             int64_t most_new, bool by_gap, double rest, uint64_t seed, int threads) {
            std::vector<std::tuple<double, double, double, double, int64_t>> out;
            for (const MatchStats& p :
                 s.play(matches, {full, static_cast<T>(enter), most_new, by_gap, rest, seed}, threads))
              out.emplace_back(p.loss, p.gap, p.alpha_sum, p.violation, p.visits);
            return out;
          },
          "matches"_a, "full"_a, "enter"_a, "most_new"_a, "by_gap"_a, "rest"_a, "seed"_a, "threads"_a,
          NoGil())
      // The variables of league a's rows for league b's classes: row, class, value.
      .def("variables",
           [](L& s, int64_t a, int64_t b) {
             std::vector<int32_t> rows, classes;
             std::vector<T> values;
             if (const auto* duel = s.duel_if_any(a, b))
               for (int64_t m = 0; m < duel->alpha.n(); ++m) {
                 const auto held = duel->alpha[m];
                 for (int32_t e = 0; e < held.size; ++e) {
                   rows.push_back(s.league(a).members[m]);
                   classes.push_back(s.league(b).classes[held.classes[e]]);
                   values.push_back(held.values[e]);
                 }
               }
             return std::make_tuple(to_numpy(std::move(rows)), to_numpy(std::move(classes)),
                                    to_numpy(std::move(values)));
           })
      .def("members", [](L& s, int64_t l) { return s.league(l).members.size(); })
      // The same exactly as they are: by members, classes by their places; and who rests.
      .def("duel",
           [](L& s, int64_t a, int64_t b) {
             const auto& duel = s.duel(a, b);
             std::vector<int32_t> sizes, classes;
             std::vector<T> values;
             for (int64_t m = 0; m < duel.alpha.n(); ++m) {
               const auto held = duel.alpha[m];
               sizes.push_back(held.size);
               classes.insert(classes.end(), held.classes, held.classes + held.size);
               values.insert(values.end(), held.values, held.values + held.size);
             }
             return std::make_tuple(to_numpy(std::move(sizes)), to_numpy(std::move(classes)),
                                    to_numpy(std::move(values)), to_numpy(std::vector<uint8_t>(duel.rests)));
           })
      .def("set_duel",
           [](L& s, int64_t a, int64_t b, In<int32_t> sizes, In<int32_t> classes, In<T> values,
              In<uint8_t> rests) {
             auto& duel = s.duel(a, b);
             int64_t at = 0;
             for (int64_t m = 0; m < duel.alpha.n(); at += sizes.data()[m++])
               duel.alpha.assign(m, classes.data() + at, values.data() + at, sizes.data()[m]);
             duel.rests = to_vector(rests);
           })
      // From here on, of all variables, by rows.
      .def("set_variables",
           [](L& s, std::vector<std::pair<int32_t, int32_t>> matches, const DualRows<T>& alpha) {
             for (const auto& [a, b] : matches) {
               s.set_duel(a, b, alpha);
               if (a != b) s.set_duel(b, a, alpha);
             }
           })
      .def("refresh", &L::refresh, "alpha"_a, "threads"_a, NoGil())
      .def(
          "certificate_parts",
          [](L& s, const DualRows<T>& alpha, int64_t first, int64_t last, int threads) {
            const CoupledCertificate<T> certificate(s.rows(), s.labels(), s.penalties(), alpha, s.classes(),
                                                    CoupledLoss::named("ww", s.classes(), 0.5), false, 1, {});
            const int64_t stride = padded<T>(s.classes());
            Buffer<T> W(s.rows().heads() * stride);
            const Certificate norm = certificate.set_weights(W, stride, threads);
            std::vector<double> parts;
            for (const auto& p : certificate.certify_parts(first, last, W, stride, threads))
              parts.insert(parts.end(), {p.primal, p.dual, p.violation});
            return std::make_tuple(norm.primal, norm.dual, to_numpy(std::move(parts)));
          },
          "alpha"_a, "first"_a, "last"_a, "threads"_a)
      .def(
          "weights",
          [](L& s, const DualRows<T>& alpha, int64_t features, int threads) {
            const Columns<T> columns(s.rows(), features);
            const CoupledCoefficients<T> coef(alpha, s.labels(), s.penalties(),
                                              CoupledLoss::named("ww", s.classes(), 0.5), false);
            return model_weights<T>(columns, coef, s.classes(), threads);
          },
          "alpha"_a, "features"_a, "threads"_a)
      .def_prop_ro("data_bytes", [](const L& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes",
                   [](L& s) {
                     int64_t total = 0;
                     for (int64_t l = 0; l < s.leagues(); ++l) total += s.league(l).bytes();
                     return total;
                   })
      .def_prop_ro("dual_bytes", [](L& s) {
        int64_t total = 0;
        for (int64_t a = 0; a < s.leagues(); ++a)
          for (int64_t b = 0; b < s.leagues(); ++b)
            if (const auto* duel = s.duel_if_any(a, b))
              total += duel->alpha.bytes() + static_cast<int64_t>(duel->rests.size());
        return total;
      });
}

template <class T>
void bind_solvers(nb::module_& m, const std::string& suffix) {
  nb::class_<Layout<T>> layout(m, ("Layout" + suffix).c_str());
  bind_layout<T, float, int32_t>(layout);
  bind_layout<T, float, int64_t>(layout);
  bind_layout<T, double, int32_t>(layout);
  bind_layout<T, double, int64_t>(layout);
  layout.def_prop_ro("bytes", &Layout<T>::bytes)
      .def_prop_ro("heads", &Layout<T>::heads)
      .def_prop_ro("tails", &Layout<T>::tails);

  using Coupled = CoupledSolver<T>;
  nb::class_<Coupled> coupled(m, ("Coupled" + suffix).c_str());
  coupled
      .def(
          "__init__",
          [](Coupled* self, Layout<T>& rows, In<int32_t> labels, In<T> C, int64_t classes,
             const std::string& loss, double gamma, bool reduced) {
            new (self) Coupled(std::move(rows), to_vector(labels), to_vector(C), classes,
                               CoupledLoss::named(loss, classes, gamma), reduced);
          },
          "rows"_a, "labels"_a, "C"_a, "classes"_a, "loss"_a, "gamma"_a, "reduced"_a, NoGil())
      .def("begin_pass", &Coupled::begin_pass)
      .def(
          "sweep",
          [](Coupled& s, In<int64_t> order, int64_t wave, bool full, double enter, int64_t most_new,
             int threads) {
            const PassStats p = s.sweep(order.data(), static_cast<int64_t>(order.size()), wave,
                                        {full, static_cast<T>(enter), most_new}, threads);
            return std::make_tuple(p.loss, p.gap, p.alpha_sum, p.violation, p.waves, p.theta, p.asleep);
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "settle",
          [](Coupled& s, In<int64_t> ptr, In<int64_t> rows, int64_t rounds, double enter, int64_t most_new) {
            s.settle(ptr.data(), rows.data(), static_cast<int64_t>(ptr.size()) - 1, rounds,
                     {true, static_cast<T>(enter), most_new});
          },
          "ptr"_a, "rows"_a, "rounds"_a, "enter"_a, "most_new"_a, NoGil())
      .def(
          "alternate",
          [](Coupled& s, In<int64_t> order, const std::vector<int64_t>& chunks, int threads) {
            const PassStats p =
                s.alternate(order.data(), static_cast<int64_t>(order.size()), chunks, threads);
            return std::make_tuple(p.loss, p.gap, p.alpha_sum, p.violation, p.waves, p.theta, p.asleep);
          },
          "order"_a, "chunks"_a, "threads"_a, NoGil())
      .def(
          "certificate",
          [](Coupled& s, int threads, double scale, std::vector<double> further) {
            const auto [c, primals] = s.certificate(threads, scale, std::move(further));
            return std::make_tuple(c.primal, c.dual, c.violation, primals);
          },
          "threads"_a, "scale"_a = 1.0, "further"_a = std::vector<double>(), NoGil())
      .def("refresh", &Coupled::refresh, "threads"_a, NoGil())
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
            const Columns<T> columns(s.rows(), features);
            s.release();
            const CoupledCoefficients<T> coef = s.coefficients();
            return model_weights<T>(columns, ScaledCoefficients<T>(coef, scale), s.classes(), threads);
          },
          "features"_a, "threads"_a, "scale"_a = 1.0)
      .def_prop_ro("data_bytes", [](const Coupled& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes", [](const Coupled& s) { return s.weights().bytes(); })
      .def_prop_ro("dual_bytes", [](Coupled& s) { return s.alpha().bytes(); })
      .def_prop_ro("dual_entries", [](Coupled& s) { return s.alpha().entries(); });

  bind_pass(coupled);
  nb::class_<DualRows<T>>(m, ("DualRows" + suffix).c_str())
      .def("__init__", [](DualRows<T>* self, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
        new (self) DualRows<T>(static_cast<int64_t>(ptr.size()) - 1);
        for (int64_t i = 0; i < self->n(); ++i) {
          const int64_t b = ptr.data()[i];
          self->assign(i, classes.data() + b, values.data() + b, ptr.data()[i + 1] - b);
        }
      });
  bind_leagues<T>(m, suffix);

  // The same calls as Coupled has.
  using MaxEnt = MaximumEntropySolver<T>;
  nb::class_<MaxEnt> maximum_entropy(m, ("MaximumEntropy" + suffix).c_str());
  maximum_entropy
      .def(
          "__init__",
          [](MaxEnt* self, Layout<T>& rows, In<int32_t> labels, In<T> C, int64_t classes, const std::string&,
             double, bool reduced) {
            new (self) MaxEnt(std::move(rows), to_vector(labels), to_vector(C), classes, reduced);
          },
          "rows"_a, "labels"_a, "C"_a, "classes"_a, "loss"_a, "gamma"_a, "reduced"_a, NoGil())
      .def("begin_pass", &MaxEnt::begin_pass)
      .def(
          "sweep",
          [](MaxEnt& s, In<int64_t> order, int64_t wave, bool, double, int64_t, int threads) {
            const PassStats p = s.sweep(order.data(), static_cast<int64_t>(order.size()), wave, threads);
            return std::make_tuple(p.loss, p.gap, p.alpha_sum, p.violation, p.waves, p.theta, p.asleep);
          },
          "order"_a, "wave"_a, "full"_a, "enter"_a, "most_new"_a, "threads"_a, NoGil())
      .def(
          "certificate",
          [](MaxEnt& s, int threads) {
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
             for (int64_t i = 0; i < s.rows().n; ++i) {
               double sum = 0;
               for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e) sum += values.data()[e];
               for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e)
                 s.state(i)[classes.data()[e]] =
                     std::max(MaxEnt::least, static_cast<T>(std::log(values.data()[e] / sum)));
             }
           })
      .def("weights",
           [](MaxEnt& s, int64_t features, int) {
             auto W = new_array<T>({features, s.classes()});
             s.copy_model(W.data());
             return W;
           })
      .def_prop_ro(
          "variables", [](MaxEnt& s) { return shared(s.variables()); }, nb::rv_policy::reference_internal)
      .def_prop_ro("data_bytes", [](const MaxEnt& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes", &MaxEnt::weight_bytes)
      .def_prop_ro("dual_bytes", &MaxEnt::dual_bytes)
      .def_prop_ro("dual_entries", [](const MaxEnt& s) { return s.rows().n * s.classes(); });
  bind_pass(maximum_entropy);

  using Blocks = BinaryBlocks<T>;
  nb::class_<Blocks> blocks(m, ("BinaryBlocks" + suffix).c_str());
  blocks
      .def(
          "__init__",
          [](Blocks* self, Layout<T>& rows, In<int32_t> labels, In<T> C, int64_t classes, int64_t features,
             const std::string& loss, bool pairs, bool newton, bool reduced, bool keep_variables) {
            new (self) Blocks(std::move(rows), to_vector(labels), to_vector(C), classes, features,
                              binary_named(loss), pairs, newton, reduced, keep_variables);
          },
          "rows"_a, "labels"_a, "C"_a, "classes"_a, "features"_a, "loss"_a, "pairs"_a, "newton"_a,
          "reduced"_a, "keep_variables"_a)
      .def(
          "train",
          [](Blocks& s, const std::vector<int64_t>& blocks, bool by_gap, double tol, int64_t max_epochs,
             uint64_t seed, int threads, Interrupt& interrupt) {
            std::vector<std::tuple<double, double, double, int64_t, double, bool, bool>> out;
            for (const auto& r : s.train(blocks, {by_gap, tol, max_epochs}, seed, threads, interrupt))
              out.emplace_back(r.certificate.primal, r.certificate.dual, r.certificate.violation, r.epochs,
                               r.visited, r.done, r.cut);
            return out;
          },
          "blocks"_a, "by_gap"_a, "tol"_a, "max_epochs"_a, "seed"_a, "threads"_a, "interrupt"_a, NoGil())
      .def(
          "sibling", [](const Blocks& s) { return new Blocks(&s); }, nb::rv_policy::take_ownership)
      .def("hold", &Blocks::hold, "blocks"_a)
      .def("variables_of",
           [](const Blocks& s, const std::vector<int64_t>& blocks) {
             auto a = s.variables_of(blocks);
             return std::make_tuple(to_numpy(std::move(a.counts)), to_numpy(std::move(a.row)),
                                    to_numpy(std::move(a.lanes)), to_numpy(std::move(a.values)));
           })
      .def("set_variables",
           [](Blocks& s, const std::vector<int64_t>& blocks, In<int64_t> counts, In<int32_t> rows,
              In<uint16_t> lanes, In<T> values) {
             if (counts.size() != blocks.size() || rows.size() != lanes.size())
               throw std::invalid_argument("arrays of different lengths");
             s.set_variables(blocks, counts.data(), static_cast<int64_t>(rows.size()), rows.data(),
                             lanes.data(), static_cast<int64_t>(values.size()), values.data());
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
               throw std::invalid_argument("weights of other features or problems");
             s.set_columns(blocks, columns.data());
           })
      .def("alpha",
           [](Blocks& s) {
             auto a = s.by_rows();
             return std::make_tuple(to_numpy(std::move(a.ptr)), to_numpy(std::move(a.problem)),
                                    to_numpy(std::move(a.values)));
           })
      .def("set_alpha", [](Blocks& s, In<int64_t> ptr, In<int32_t> classes,
                           In<T> values) { s.set_alpha(ptr.data(), classes.data(), values.data()); })
      .def("weights",
           [](Blocks& s, int64_t features, int threads) -> nb::object {
             if (s.has_dense_model()) {
               s.release();
               return nb::cast(to_numpy(s.take_dense_model(), features, s.problems()));
             }
             const auto alpha = s.by_rows(true);
             const Columns<T> columns(s.rows(), features);
             s.release();
             return model_weights<T>(columns, alpha, s.problems(), threads);
           })
      .def_prop_ro("blocks", &Blocks::blocks)
      .def_prop_ro("problems", &Blocks::problems)
      .def("problems_of", &Blocks::problems_of, "block"_a)
      .def_prop_ro("data_bytes", [](const Blocks& s) { return s.rows().bytes(); })
      .def_prop_ro("heads", [](const Blocks& s) { return s.rows().heads(); })
      .def_prop_ro("dual_bytes", &Blocks::dual_bytes);
  blocks.attr("width") = Blocks::width;
}

template <class T, class X, class I>
void bind_prediction(nb::module_& m) {
  // out: scores (rows x classes), or with `classes` the k best (rows x k)
  const auto run = [](const auto& rows, const auto& weights, const In<T>& intercept, nb::object classes,
                      Out<T> scores, int threads) {
    if (classes.is_none()) {
      nb::gil_scoped_release nogil;
      score_rows<T>(rows, weights, intercept.data(), scores.data(), threads);
    } else {
      const auto best = nb::cast<Out<int32_t>>(classes);
      nb::gil_scoped_release nogil;
      best_classes<T>(rows, weights, intercept.data(), scores.shape(1), best.data(), scores.data(), threads);
    }
  };
  m.def(
      "score_dense",
      [run](In<int64_t> ptr, In<I> index, In<X> value, nb::ndarray<const T, nb::ndim<2>, nb::c_contig> W,
            In<T> intercept, nb::object classes, Out<T> scores, int threads) {
        run(view(ptr, index, value, W.shape(0)), DenseWeights<T>{W.data(), static_cast<int64_t>(W.shape(1))},
            intercept, classes, scores, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "W"_a, "intercept"_a, "classes"_a.none(), "scores"_a, "threads"_a);
  m.def(
      "score_sparse",
      [run](In<int64_t> ptr, In<I> index, In<X> value, In<int64_t> w_ptr, In<int32_t> w_index, In<T> w_value,
            In<T> intercept, nb::object classes, Out<T> scores, int threads) {
        run(view(ptr, index, value, static_cast<int64_t>(w_ptr.size()) - 1),
            SparseWeights<T>{w_ptr.data(), w_index.data(), w_value.data(),
                             static_cast<int64_t>(intercept.size())},
            intercept, classes, scores, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "W_indptr"_a, "W_indices"_a, "W_values"_a, "intercept"_a,
      "classes"_a.none(), "scores"_a, "threads"_a);
}

template <class T>
void bind_predictions(nb::module_& m) {
  bind_prediction<T, float, int32_t>(m);
  bind_prediction<T, float, int64_t>(m);
  bind_prediction<T, double, int32_t>(m);
  bind_prediction<T, double, int64_t>(m);
}

// ---- Text formats: svmlight and XMC
// -------------------------------------------------------------------------

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// None, or the line, the column and the reason of what `parse` rejected.
template <class Parse>
nb::object failure_of(Parse parse) {
  std::int64_t line = 0, column = 0;
  std::string reason;
  {
    nb::gil_scoped_release released;
    try {
      parse();
    } catch (const manyclass::ParseFailure& failure) {
      line = failure.line;
      column = failure.column;
      reason = failure.what();
    }
  }
  if (line == 0) return nb::none();
  return nb::make_tuple(line, column, reason);
}

template <class Value>
void bind_row_parser(nb::module_& m, const char* name) {
  using Parser = manyclass::RowParser<Value>;
  nb::class_<Parser>(m, name, "Parses svmlight or XMC text piece by piece; see svmlight.hpp.")
      .def(
          "__init__",
          [](Parser* self, std::int64_t n_features, int zero_based, int multilabel, bool allow_nonfinite,
             bool xmc) {
            new (self) Parser({n_features, manyclass::Choice(zero_based), manyclass::Choice(multilabel),
                               allow_nonfinite, xmc});
          },
          nb::kw_only(), nb::arg("n_features"), nb::arg("zero_based"), nb::arg("multilabel"),
          nb::arg("allow_nonfinite"), nb::arg("xmc"))
      .def("feed",
           [](Parser& self, Array<const std::uint8_t> text) {
             return failure_of([&] {
               self.feed(reinterpret_cast<const char*>(text.data()), static_cast<std::int64_t>(text.size()));
             });
           })
      .def("finish", [](Parser& self) { return failure_of([&] { self.finish(); }); })
      .def_prop_ro("line", &Parser::line)
      .def_prop_ro("n_rows", &Parser::n_rows)
      .def_prop_ro("nnz", &Parser::nnz)
      .def_prop_ro("n_features", &Parser::n_features)
      .def_prop_ro("n_labels_read", &Parser::n_labels_read)
      .def_prop_ro("max_label", &Parser::max_label)
      .def_prop_ro("label_limit", &Parser::label_limit)
      .def_prop_ro("multilabel", &Parser::multilabel)
      .def_prop_ro("zero_based", &Parser::zero_based)
      .def_prop_ro("labels_are_integers", &Parser::labels_are_integers)
      .def("take_indices", [](Parser& self, Array<std::int32_t> out) { self.take_indices(out.data()); })
      .def("take_indices", [](Parser& self, Array<std::int64_t> out) { self.take_indices(out.data()); })
      .def("take_values", [](Parser& self, Array<Value> out) { self.take_values(out.data()); })
      .def("take_row_ends", [](Parser& self, Array<std::int64_t> out) { self.take_row_ends(out.data()); })
      .def("take_label_ends", [](Parser& self, Array<std::int64_t> out) { self.take_label_ends(out.data()); })
      .def("take_labels", [](Parser& self, Array<std::int64_t> out) { self.take_labels(out.data()); })
      .def("take_labels", [](Parser& self, Array<double> out) { self.take_labels(out.data()); });
}

template <class Value, class Label>
nb::bytes format_rows(Array<const std::int64_t> row_ends, Array<const std::int64_t> indices,
                      Array<const Value> values, Array<const std::int64_t> label_ends,
                      Array<const Label> labels, std::int64_t base, bool mark_empty) {
  std::string text;
  {
    nb::gil_scoped_release released;
    text = manyclass::format_rows(row_ends.data(), static_cast<std::int64_t>(row_ends.size()), indices.data(),
                                  values.data(), label_ends.data(), labels.data(), base, mark_empty);
  }
  return nb::bytes(text.data(), text.size());
}

void bind_text_formats(nb::module_& m) {
  bind_row_parser<float>(m, "RowParserFloat32");
  bind_row_parser<double>(m, "RowParserFloat64");
  m.def("format_rows", &format_rows<float, std::int64_t>);
  m.def("format_rows", &format_rows<float, double>);
  m.def("format_rows", &format_rows<double, std::int64_t>);
  m.def("format_rows", &format_rows<double, double>);
}

}  // namespace

// Runs Python's signal handlers from within a long call. A handler that raises counts as a request to stop.
void bind_interrupt(nb::module_& m) {
  nb::class_<Interrupt>(m, "Interrupt")
      .def("__init__",
           [](Interrupt* self) {
             new (self) Interrupt();
             self->listen = [self] {
               nb::gil_scoped_acquire gil;
               if (PyErr_CheckSignals() != 0) {
                 PyErr_Clear();
                 self->request();
               }
             };
           })
      .def("request", &Interrupt::request)
      .def("stop_after", &Interrupt::stop_after, "seconds"_a)
      .def_prop_ro("requested", &Interrupt::requested);
}

NB_MODULE(CORE_NAME, m) {
  m.def("supported_builds", &supported_builds, "The builds that this processor can run.");
  bind_interrupt(m);
  bind_solvers<float>(m, "32");
  bind_solvers<double>(m, "64");
  bind_predictions<float>(m);
  bind_predictions<double>(m);
  bind_text_formats(m);
}
