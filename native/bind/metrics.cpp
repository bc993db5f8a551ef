// Bindings of metrics of predicted label sets (predict/ranking_metrics.hpp).
#include "bind/bindings.hpp"
#include "predict/ranking_metrics.hpp"

namespace manyclass {

namespace {

LabelSetView label_sets(const In<int64_t>& ptr, const In<int32_t>& index, int64_t labels) {
  check_pointers("indptr", ptr, std::ssize(index));
  check_ascending("indices", ptr, index, labels);
  return {ptr.data(), index.data(), std::ssize(ptr) - 1};
}

}  // namespace

void bind_metrics(nb::module_& m) {
  // Writes sums (k x ranking_sums) and first_hit (by label).
  m.def(
      "ranking_sums",
      [](const std::tuple<In<int64_t>, In<int32_t>>& truth,
         nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig> best, std::optional<In<int32_t>> unknown,
         std::optional<In<double>> weight, double unknown_weight, Out<double> sums, Out<int32_t> first_hit,
         Threads threads) {
        const auto labels = std::ssize(first_hit);
        const auto rows = static_cast<int64_t>(best.shape(0)), k = static_cast<int64_t>(best.shape(1));
        const Ranking given{label_sets(std::get<0>(truth), std::get<1>(truth), labels),
                            best.data(),
                            static_cast<int64_t>(best.shape(1)),
                            unknown ? unknown->data() : nullptr,
                            weight ? weight->data() : nullptr,
                            unknown_weight};
        check_length("best", best.shape(0), given.truth.n_rows);
        check_range("best", best, -1, labels);
        if (unknown) {
          check_length("unknown", unknown->size(), rows);
          check_range("unknown", *unknown, 0, INT32_MAX);
        }
        if (weight) check_length("weight", weight->size(), labels);
        double* out = room_in("sums", sums, k, ranking_sums);
        nb::gil_scoped_release nogil;
        RankingPass(given).run(out, first_hit.data(), threads);
      },
      "truth"_a, "best"_a, "unknown"_a.none(), "weight"_a.none(), "unknown_weight"_a, "sums"_a, "first_hit"_a,
      "threads"_a);
  m.def(
      "count_matches",
      [](In<int64_t> ptr, In<int32_t> index, In<int64_t> found_ptr, In<int32_t> found_index,
         Out<int64_t> right, Threads threads) {
        const auto labels = std::ssize(right);
        const auto truth = label_sets(ptr, index, labels), found = label_sets(found_ptr, found_index, labels);
        check_length("found_indptr", found.n_rows, truth.n_rows);
        nb::gil_scoped_release nogil;
        count_matches(truth, found, right.data(), threads);
      },
      "indptr"_a, "indices"_a, "found_indptr"_a, "found_indices"_a, "right"_a, "threads"_a);
}

}  // namespace manyclass
