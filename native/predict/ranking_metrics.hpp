// Ranking metrics (precision, nDCG, recall, and their propensity-scored forms) of the k best labels of rows
// with sets of labels, in one pass over the rows.
//
// With y_i the labels of row i, r_1 .. r_k its predictions, best first, and q_l the weight of label l (one
// over its propensity), each row has for every t <= k
//
//   hits        h_t = |{r_1 .. r_t} and y_i|, the size of the intersection
//   gain        (sum of 1 / log2(j + 1) over j <= t with r_j in y_i) / D_t,
//               D_t = sum of 1 / log2(j + 1) over j <= min(t, |y_i|)
//   recall      h_t / |y_i|
//   weighted    hits and gain with each hit weighted by q_(r_j); and the largest possible values of both:
//               those of the row's labels in descending order of q
//
// The result is the sums over all rows; rows without labels add nothing. Labels unknown to the model count in
// |y_i|, with `unknown_weight` as their weight.
//
// Rows form fixed groups whose sums are added in order, so the bits are the same for any number of threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "parallel/tasks.hpp"

namespace manyclass {

inline constexpr int64_t rows_in_group = 1024;
enum RankingSum {
  hits_sum,
  gain_sum,
  recall_sum,
  weighted_hits,
  weighted_gain,
  best_hits,
  best_gain,
  ranking_sums
};

// The labels of rows, in arrays that belong to the caller: strictly ascending in each row.
struct LabelSetView {
  const int64_t* ptr;
  const int32_t* index;
  int64_t n_rows;

  int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  bool has(int64_t i, int32_t label) const {
    return std::binary_search(index + ptr[i], index + ptr[i + 1], label);
  }
};

struct Ranking {
  LabelSetView truth;
  const int32_t* best;  // rows x k, best first; -1 for no prediction
  int64_t k;
  const int32_t* unknown;  // by row, the number of labels unknown to the model; may be null
  const double* weight;    // q by label; null if all are 1
  double unknown_weight;
};

class RankingPass {
 public:
  explicit RankingPass(const Ranking& given) : given_(given), discount_(given.k), ideal_(given.k + 1, 0.0) {
    for (int64_t j = 0; j < given.k; ++j) {
      discount_[j] = 1 / std::log2(static_cast<double>(j + 2));
      ideal_[j + 1] = ideal_[j] + discount_[j];
    }
  }

  // sums: k x ranking_sums, all 0. first_hit: lowered, by label, to the best rank at which it was predicted
  // correctly; the caller initialises it with k.
  void run(double* sums, int32_t* first_hit, int threads) const {
    const int64_t width = given_.k * ranking_sums, n = given_.truth.n_rows;
    const int64_t groups = (n + rows_in_group - 1) / rows_in_group;
    std::vector<double> by_group(groups * width, 0.0);
    const auto add_group = [&](int64_t g, std::vector<double>& weights) {
      for (int64_t i = g * rows_in_group; i < std::min(n, (g + 1) * rows_in_group); ++i)
        add_row(i, by_group.data() + g * width, first_hit, weights);
    };
    parallel_tasks(groups, 1, threads, [] { return std::vector<double>(); }, add_group);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t e = 0; e < width; ++e) sums[e] += by_group[g * width + e];
  }

 private:
  void add_row(int64_t i, double* sums, int32_t* first_hit, std::vector<double>& weights) const {
    const int64_t unknown = given_.unknown ? given_.unknown[i] : 0, size = given_.truth.size(i) + unknown;
    if (size == 0) return;
    heaviest_labels(i, unknown, weights);
    double row[ranking_sums] = {};
    for (int64_t j = 0; j < given_.k; ++j) {
      const int32_t label = given_.best[i * given_.k + j];
      if (label >= 0 && given_.truth.has(i, label)) {
        const double q = given_.weight ? given_.weight[label] : 1;
        row[hits_sum] += 1;
        row[gain_sum] += discount_[j];
        row[weighted_hits] += q;
        row[weighted_gain] += q * discount_[j];
        lower(first_hit[label], static_cast<int32_t>(j));
      }
      if (j < std::ssize(weights)) {
        row[best_hits] += weights[j];
        row[best_gain] += weights[j] * discount_[j];
      }
      const double ideal = ideal_[std::min(j + 1, size)];
      double* sum = sums + j * ranking_sums;
      sum[hits_sum] += row[hits_sum];
      sum[recall_sum] += row[hits_sum] / static_cast<double>(size);
      for (const auto what : {gain_sum, weighted_gain, best_gain}) sum[what] += row[what] / ideal;
      for (const auto what : {weighted_hits, best_hits}) sum[what] += row[what];
    }
  }

  // The largest weights of the row's labels, at most k, in descending order.
  void heaviest_labels(int64_t i, int64_t unknown, std::vector<double>& weights) const {
    weights.assign(std::min(unknown, given_.k), given_.unknown_weight);
    for (int64_t e = given_.truth.ptr[i]; e < given_.truth.ptr[i + 1]; ++e)
      weights.push_back(given_.weight ? given_.weight[given_.truth.index[e]] : 1);
    const auto kept = std::min(given_.k, std::ssize(weights));
    std::partial_sort(weights.begin(), weights.begin() + kept, weights.end(), std::greater<>());
    weights.resize(kept);
  }

  static void lower(int32_t& place, int32_t to) {
    std::atomic_ref<int32_t> shared(place);
    for (int32_t now = shared.load(std::memory_order_relaxed);
         to < now && !shared.compare_exchange_weak(now, to, std::memory_order_relaxed);) {
    }
  }

  Ranking given_;
  std::vector<double> discount_, ideal_;  // discount_[j] = 1 / log2(j + 2); ideal_: their partial sums
};

// Counts, by label, the rows in which it is both a true and a predicted label.
inline void count_matches(const LabelSetView& truth, const LabelSetView& found, int64_t* right, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, rows_in_group)
  for (int64_t i = 0; i < truth.n_rows; ++i)
    for (int64_t a = truth.ptr[i], b = found.ptr[i]; a < truth.ptr[i + 1] && b < found.ptr[i + 1];) {
      const int32_t here = truth.index[a], there = found.index[b];
      if (here == there) std::atomic_ref<int64_t>(right[here]).fetch_add(1, std::memory_order_relaxed);
      a += here <= there;
      b += there <= here;
    }
}

}  // namespace manyclass
