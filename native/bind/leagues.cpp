// Bindings of leagues (leagues/solver.hpp), and of the dual variables of all rows that they take.
#include "bind/bindings.hpp"
#include "coupled/certificate.hpp"
#include "leagues/league.hpp"
#include "leagues/parcel.hpp"
#include "leagues/solver.hpp"

namespace manyclass {

namespace {

template <class T>
League<T>& checked_league(Leagues<T>& s, int64_t l) {
  check_number("league", l, 0, s.leagues() - 1);
  return s.league(l);
}
template <class T>
League<T>& league_here(Leagues<T>& s, int64_t l) {
  League<T>& league = checked_league(s, l);
  if (!league.here) reject("league", std::to_string(l) + " is not here");
  return league;
}

// Matches run in parallel, so no league may be in two of them.
template <class T>
void check_matches(Leagues<T>& s, const std::vector<std::pair<int32_t, int32_t>>& matches) {
  std::vector<int64_t> playing;
  for (const auto& [a, b] : matches) {
    league_here(s, a), league_here(s, b);
    playing.push_back(a);
    if (a != b) playing.push_back(b);
  }
  check_order("matches", playing, s.leagues());
}

// Checks the variables of all rows for all classes.
template <class T>
void check_alpha(const Leagues<T>& s, const DualRows<T>& alpha) {
  check_number("rows", alpha.n(), s.rows().n, s.rows().n);
  for (int64_t i = 0; i < alpha.n(); ++i)
    check_range("classes", std::span(alpha[i].classes, alpha[i].size), 0, s.classes());
}

// Checks the variables of league a's rows for league b's classes. Returns where those of each row begin.
template <class T>
std::vector<int64_t> checked_duel(Leagues<T>& s, int64_t a, int64_t b, const In<int32_t>& sizes,
                                  const In<int32_t>& classes, const In<T>& values, const In<uint8_t>& rests) {
  const auto& members = checked_league(s, a).members;
  const auto rows = std::ssize(members);
  check_length("sizes", sizes.size(), rows);
  check_length("rests", rests.size(), rows);
  check_range("rests", rests, 0, 2);
  check_range("sizes", sizes, 0, checked_league(s, b).size() + 1);
  std::vector<int64_t> ptr{0};
  for (const int32_t size : span_of(sizes)) ptr.push_back(ptr.back() + size);
  check_pointers("sizes", ptr, std::ssize(classes));
  check_length("values", values.size(), std::ssize(classes));
  check_distinct("classes", ptr, classes, s.league(b).size());
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t e = ptr[m]; e < ptr[m + 1]; ++e) {
      if (s.league(b).classes[classes.data()[e]] == s.labels()[members[m]])
        reject("classes", "row " + std::to_string(members[m]) + " has a variable for its own class");
      const T value = values.data()[e], most = s.penalties()[members[m]];
      if (!(value >= 0 && value <= with_rounding(most)))
        reject("values", "that of row " + std::to_string(members[m]) + " is " + in_digits(value) +
                             ", outside 0 to " + in_digits(most));
    }
  return ptr;
}

template <class T>
void bind_dual_rows(nb::class_<DualRows<T>> rows) {
  rows.def("__init__", [](DualRows<T>* self, In<int64_t> ptr, In<int32_t> classes, In<T> values, int64_t K) {
    check_number("classes", K, 0, INT32_MAX);
    check_dual_rows(ptr, classes, values, std::ssize(ptr) - 1, K);
    new (self) DualRows<T>(std::ssize(ptr) - 1);
    self->assign_rows(ptr.data(), classes.data(), values.data());
  });
}

template <class T, class L>
void bind_membership(nb::class_<L>& leagues) {
  leagues
      .def("divide",
           [](L& s, In<int32_t> league) {
             check_length("league", league.size(), s.classes());
             check_range("league", league, 0, s.leagues());
             s.divide(to_vector(league));
           })
      .def("start", [](L& s, int64_t l) { checked_league(s, l).start(s.rows()); })
      .def("leave", [](L& s, int64_t l) { s.leave(checked_league(s, l)); })
      .def("here", [](L& s, int64_t l) { return checked_league(s, l).here; })
      .def("pack",
           [](L& s, int64_t l) {
             League<T>& league = league_here(s, l);
             auto parcel = without_gil([&] { return LeagueParcel<T>(league, s.rows().heads()); });
             return to_numpy<uint8_t>(std::move(parcel.memory()), parcel.size());
           })
      .def(
          "unpack",
          [](L& s, int64_t l, In<uint8_t> parcel) {
            checked_league(s, l);
            s.unpack(l, parcel.data(), parcel.size());
          },
          NoGil())
      .def("members", [](L& s, int64_t l) { return to_numpy(checked_league(s, l).members); });
}

template <class T, class L>
void bind_variables(nb::class_<L>& leagues) {
  leagues
      // The variables of league a's rows for league b's classes: row, class, value.
      .def("variables",
           [](L& s, int64_t a, int64_t b) {
             checked_league(s, a), checked_league(s, b);
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
      // The same in their internal form, for checkpoints: by member, with classes as places in league b; and
      // which members rest.
      .def("duel",
           [](L& s, int64_t a, int64_t b) {
             checked_league(s, a), checked_league(s, b);
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
                                    to_numpy(std::move(values)), to_numpy(duel.rests));
           })
      .def("set_duel",
           [](L& s, int64_t a, int64_t b, In<int32_t> sizes, In<int32_t> classes, In<T> values,
              In<uint8_t> rests) {
             const std::vector<int64_t> ptr = checked_duel(s, a, b, sizes, classes, values, rests);
             auto& duel = s.duel(a, b);
             duel.alpha.assign_rows(ptr.data(), classes.data(), values.data());
             duel.rests = to_vector(rests);
           })
      // From here on, `alpha` are the variables of all rows for all classes.
      .def("set_variables",
           [](L& s, std::vector<std::pair<int32_t, int32_t>> matches, const DualRows<T>& alpha) {
             check_alpha(s, alpha);
             for (const auto& [a, b] : matches) checked_league(s, a), checked_league(s, b);
             for (const auto& [a, b] : matches) {
               s.set_duel(a, b, alpha);
               if (a != b) s.set_duel(b, a, alpha);
             }
           });
}

template <class T, class L>
void bind_certificate(nb::class_<L>& leagues) {
  leagues
      .def(
          "refresh",
          [](L& s, const DualRows<T>& alpha, Threads threads) {
            check_alpha(s, alpha);
            std::vector<std::pair<double, double>> norms;
            for (const Certificate& league : s.refresh(alpha, threads))
              norms.emplace_back(league.primal, league.dual);
            return norms;
          },
          "alpha"_a, "threads"_a, NoGil())
      .def("own_scores",
           [](L& s, int64_t l, const DualRows<T>& alpha) {
             league_here(s, l);
             check_alpha(s, alpha);
             return to_numpy(s.own_scores(l, alpha));
           })
      .def(
          "certify",
          [](L& s, int32_t l, const DualRows<T>& alpha, In<double> own, Threads threads) {
            league_here(s, l);
            check_alpha(s, alpha);
            check_length("own", own.size(), s.rows().n);
            std::vector<double> parts;
            for (const Certificate& part :
                 without_gil([&] { return s.certify(l, alpha, own.data(), threads); }))
              parts.insert(parts.end(), {part.primal, part.dual, part.violation});
            return to_numpy(std::move(parts));
          },
          "league"_a, "alpha"_a, "own"_a, "threads"_a)
      .def(
          "weights",
          [](L& s, const DualRows<T>& alpha, int64_t features, Threads threads) {
            check_alpha(s, alpha);
            check_features(s.rows(), features);
            const SparseRows<T> columns = columns_of(s.rows(), features);
            const CoupledCoefficients<T> coef(alpha, s.labels(), s.penalties(),
                                              CoupledLoss::named("ww", s.classes(), 0.5), false);
            return model_weights<T>(columns, coef, s.classes(), threads);
          },
          "alpha"_a, "features"_a, "threads"_a);
}

template <class T, class L>
void bind_sizes(nb::class_<L>& leagues) {
  leagues.def_prop_ro("data_bytes", [](const L& s) { return s.rows().bytes(); })
      .def_prop_ro("weight_bytes",
                   [](L& s) { return total_of(s.all(), [](const auto& league) { return league.bytes(); }); })
      .def_prop_ro("dual_bytes", [](L& s) {
        return total_of(s.duels(), [](const auto& duel) {
          return duel ? duel->alpha.bytes() + std::ssize(duel->rests) : 0;
        });
      });
}

template <class T, class L>
void bind_matches(nb::class_<L>& leagues) {
  leagues
      .def(
          "__init__",
          [](L* self, Layout<T>& rows, In<int32_t> labels, In<T> C, In<int32_t> league, int64_t leagues) {
            check_labelled(rows, labels, C, std::ssize(league));
            check_number("leagues", leagues, 1, static_cast<int64_t>(std::max<size_t>(1, league.size())));
            check_range("league", league, 0, leagues);
            new (self) L(taken(rows), to_vector(labels), to_vector(C), to_vector(league), leagues);
          },
          "rows"_a, "labels"_a, "C"_a, "league"_a, "leagues"_a, NoGil())
      .def(
          "play",
          [](L& s, std::vector<std::pair<int32_t, int32_t>> matches, bool full, double enter,
             int64_t most_new, bool by_gap, double rest, uint64_t seed, Threads threads) {
            check_number("most_new", most_new, 0);
            check_matches(s, matches);
            std::vector<std::tuple<double, double, double, double, int64_t>> out;
            for (const MatchStats& p :
                 s.play(matches, {full, static_cast<T>(enter), most_new, by_gap, rest, seed}, threads))
              out.emplace_back(p.loss, p.gap, p.alpha_sum, p.violation, p.visits);
            return out;
          },
          "matches"_a, "full"_a, "enter"_a, "most_new"_a, "by_gap"_a, "rest"_a, "seed"_a, "threads"_a,
          NoGil());
}

}  // namespace

void bind_leagues(nb::module_& m) {
  bind_both<DualRows>(m, "DualRows", [](auto rows) { bind_dual_rows(rows); });
  bind_both<Leagues>(m, "Leagues", []<class T>(nb::class_<Leagues<T>> leagues) {
    bind_matches<T>(leagues);
    bind_membership<T>(leagues);
    bind_variables<T>(leagues);
    bind_certificate<T>(leagues);
    bind_sizes<T>(leagues);
  });
}

}  // namespace manyclass
