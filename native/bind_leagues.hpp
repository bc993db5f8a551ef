// Leagues, and dual variables by rows as they take them.
#pragma once
#include "bind_arrays.hpp"
#include "coupled_certificate.hpp"
#include "leagues.hpp"

namespace manyclass {

template <class T>
void bind_leagues(nb::module_& m, const std::string& suffix) {
  nb::class_<DualRows<T>>(m, ("DualRows" + suffix).c_str())
      .def("__init__", [](DualRows<T>* self, In<int64_t> ptr, In<int32_t> classes, In<T> values) {
        new (self) DualRows<T>(static_cast<int64_t>(ptr.size()) - 1);
        for (int64_t i = 0; i < self->n(); ++i) {
          const int64_t b = ptr.data()[i];
          self->assign(i, classes.data() + b, values.data() + b, ptr.data()[i + 1] - b);
        }
      });

  using L = Leagues<T>;
  nb::class_<L>(m, ("Leagues" + suffix).c_str())
      .def(
          "__init__",
          [](L* self, Layout<T>& rows, In<int32_t> labels, In<T> C, In<int32_t> league, int64_t leagues) {
            new (self) L(std::move(rows), to_vector(labels), to_vector(C), to_vector(league), leagues);
          },
          "rows"_a, "labels"_a, "C"_a, "league"_a, "leagues"_a, NoGil())
      .def("divide", [](L& s, In<int32_t> league) { s.divide(to_vector(league)); })
      .def("start", [](L& s, int64_t l) { s.league(l).start(s.rows()); })
      .def("leave", [](L& s, int64_t l) { s.leave(l); })
      .def("here", [](L& s, int64_t l) { return s.league(l).here; })
      .def("pack",
           [](L& s, int64_t l) {
             nb::gil_scoped_release nogil;
             LeagueParcel<T> parcel(s.league(l), s.rows().heads());
             nb::gil_scoped_acquire gil;
             const size_t size = parcel.size();
             return to_numpy<uint8_t>(std::move(parcel.memory()), size);
           })
      .def(
          "unpack", [](L& s, int64_t l, In<uint8_t> parcel) { s.unpack(l, parcel.data(), parcel.size()); },
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
      .def("members", [](L& s, int64_t l) { return to_numpy(std::vector<int32_t>(s.league(l).members)); })
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
      .def(
          "refresh",
          [](L& s, const DualRows<T>& alpha, int threads) {
            std::vector<std::pair<double, double>> norms;
            for (const Certificate& league : s.refresh(alpha, threads))
              norms.emplace_back(league.primal, league.dual);
            return norms;
          },
          "alpha"_a, "threads"_a, NoGil())
      .def("own_scores",
           [](L& s, int64_t l, const DualRows<T>& alpha) { return to_numpy(s.own_scores(l, alpha)); })
      .def(
          "certify",
          [](L& s, int32_t l, const DualRows<T>& alpha, In<double> own, int threads) {
            std::vector<double> parts;
            {
              nb::gil_scoped_release nogil;
              for (const Certificate& part : s.certify(l, alpha, own.data(), threads))
                parts.insert(parts.end(), {part.primal, part.dual, part.violation});
            }
            return to_numpy(std::move(parts));
          },
          "league"_a, "alpha"_a, "own"_a, "threads"_a)
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

}  // namespace manyclass
