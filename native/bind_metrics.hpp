// Measures of predicted label sets.
#pragma once
#include "bind_arrays.hpp"
#include "ranking_metrics.hpp"

namespace manyclass {

inline LabelSets label_sets(const In<int64_t>& ptr, const In<int32_t>& index) {
  return {ptr.data(), index.data(), static_cast<int64_t>(ptr.size()) - 1};
}

inline void bind_measures(nb::module_& m) {
  // out: sums (k x ranking_sums) and first_hit (labels)
  m.def(
      "ranking_sums",
      [](In<int64_t> ptr, In<int32_t> index, nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig> best,
         std::optional<In<int32_t>> unknown, std::optional<In<double>> weight, double unknown_weight,
         Out<double> sums, Out<int32_t> first_hit, int threads) {
        const Ranking given{label_sets(ptr, index),
                            best.data(),
                            static_cast<int64_t>(best.shape(1)),
                            unknown ? unknown->data() : nullptr,
                            weight ? weight->data() : nullptr,
                            unknown_weight};
        nb::gil_scoped_release nogil;
        RankingPass(given).run(sums.data(), first_hit.data(), threads);
      },
      "indptr"_a, "indices"_a, "best"_a, "unknown"_a.none(), "weight"_a.none(), "unknown_weight"_a, "sums"_a,
      "first_hit"_a, "threads"_a);
  m.def(
      "count_matches",
      [](In<int64_t> ptr, In<int32_t> index, In<int64_t> found_ptr, In<int32_t> found_index,
         Out<int64_t> right, int threads) {
        nb::gil_scoped_release nogil;
        count_matches(label_sets(ptr, index), label_sets(found_ptr, found_index), right.data(), threads);
      },
      "indptr"_a, "indices"_a, "found_indptr"_a, "found_indices"_a, "right"_a, "threads"_a);
}

}  // namespace manyclass
