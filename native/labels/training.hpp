// Trains one label (labels/elastic_net.hpp) on few rows, by a greedy active set (Yen et al., KDD 2017,
// Algorithm 1). The label's own rows are always active. Passes of coordinate ascent over the active rows
// alternate with searches for other rows that the label scores above -1. Only these contribute to the primal
// besides the active rows, so every full search ends with a certificate over all rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "dual/certificate.hpp"
#include "labels/active_rows.hpp"
#include "labels/elastic_net.hpp"
#include "labels/inverted_index.hpp"
#include "labels/search.hpp"
#include "parallel/shuffle.hpp"

namespace manyclass {

// The data that all labels share and only read.
template <class T>
struct LabelData {
  SparseRowsView<T> X;
  InvertedIndex<T> index;
  RowBounds bounds;
  std::vector<double> C;         // by row
  std::vector<int64_t> own_ptr;  // by label
  std::vector<int32_t> own;      // its rows, ascending
  ElasticNet net;
  bool squared;
  int64_t draws;  // the number of features drawn for a sampled search; 0 for searches with all features
  bool keep_variables;
  int64_t together;  // train a label on all rows if more than one row in `together` matters to it
};

template <class T>
class LabelTraining {
 public:
  LabelTraining(const LabelData<T>& data, int64_t label, uint64_t seed)
      : data_(data), label_(label), seed_(scramble(seed ^ scramble(label))), rows_(data.net) {}

  // Chooses the first active rows: the label's own and, without given variables, the most similar other rows.
  // row, variable: `variables` dual variables from another fit, by ascending row.
  void begin(LabelSearch<T>& search, std::vector<int32_t>& place, const int32_t* row, const T* variable,
             int64_t variables) {
    const int32_t* own = data_.own.data() + data_.own_ptr[label_];
    const int32_t* end = data_.own.data() + data_.own_ptr[label_ + 1];
    const auto is_own = [&](int32_t i) { return std::binary_search(own, end, i); };
    const auto given = [&](int32_t i) {
      const int32_t* at = std::lower_bound(row, row + variables, i);
      return at < row + variables && *at == i ? static_cast<double>(variable[at - row]) : 0.0;
    };
    for (const int32_t* i = own; i < end; ++i) rows_.add(data_.X, *i, true, data_.C[*i], given(*i), place);
    for (int64_t k = 0; k < variables; ++k)
      if (!is_own(row[k])) rows_.add(data_.X, row[k], false, data_.C[row[k]], double(variable[k]), place);
    if (variables > 0) {  // they may already be optimal
      rows_.refresh();
      warm_ = true;
      return;
    }
    if (has_to_do_with_all()) return;
    // Other rows that are most similar to the label's own: those with the largest product with their sum.
    for (double& a : rows_.a) a = 1;
    rows_.refresh();
    LabelWeights sum;
    for (int64_t f = 0; f < rows_.features(); ++f) {
      sum.feature.push_back(rows_.feature[f]);
      sum.weight.push_back(rows_.v[f]);
    }
    for (double& a : rows_.a) a = 0;
    const int64_t many = end - own, wanted = std::max(fewest, 2 * many);
    std::vector<ScoredRow> found;
    search.best_rows(sum, wanted + many, entries_a_row * wanted, found);
    std::vector<int32_t> others;
    for (const ScoredRow& one : found)
      if (!is_own(one.row)) others.push_back(one.row);
    // Some negative rows are needed to hold the bias down: fill up with random ones.
    const int64_t least = std::min(data_.X.n_rows - many, many == 0 ? without_own : fewest);
    uint64_t state = seed_;
    for (int64_t tried = 0; std::ssize(others) < least && tried < 4 * least; ++tried) {
      state = scramble(state);
      const auto i = static_cast<int32_t>((static_cast<unsigned __int128>(state) * data_.X.n_rows) >> 64);
      if (!is_own(i)) others.push_back(i);
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (int32_t i : others) rows_.add(data_.X, i, false, data_.C[i], 0.0, place);
    rows_.refresh();
  }

  // Continues alone, from its variables, after the label was trained together with others.
  void forget_rows() { rows_ = ActiveRows<T>(data_.net); }
  void go_on_alone(std::vector<int32_t>& place) {
    together = false;
    was_together_ = true;
    own_bias_ = true;
    const int32_t* own = data_.own.data() + data_.own_ptr[label_];
    const int32_t* end = data_.own.data() + data_.own_ptr[label_ + 1];
    auto next = variables.begin();
    const auto add_until = [&](int32_t row) {  // adds other rows before `row`; returns the variable of `row`
      for (; next != variables.end() && next->first < row; ++next)
        rows_.add(data_.X, next->first, false, data_.C[next->first], next->second, place);
      return next != variables.end() && next->first == row ? (next++)->second : 0.0;
    };
    for (; own < end; ++own) rows_.add(data_.X, *own, true, data_.C[*own], add_until(*own), place);
    add_until(INT32_MAX);
    rows_.refresh();
  }

  // Whether the label started from given variables and has no certificate yet.
  bool warm() const { return warm_ && rounds == 0; }

  // Passes of coordinate ascent over the active rows.
  void ascend(const TrainingRule& rule) {
    data_.squared ? ascend_with<true>(rule) : ascend_with<false>(rule);
  }

  // Sets the weights as the model will store them. With a bias above -1, nearly all rows would have a loss,
  // so the bias is lowered for the primal, unless that has turned out to cost too much.
  void round_weights() {
    rows_.refresh();
    weights.feature.clear();
    weights.weight.clear();
    for (int64_t f = 0; f < rows_.features(); ++f) {
      const double w = static_cast<double>(static_cast<T>(rows_.w[f]));
      if (w == 0) continue;
      weights.feature.push_back(rows_.feature[f]);
      weights.weight.push_back(w);
    }
    constant_weight = static_cast<T>(rows_.bias());
    lowered_ = data_.net.constant != 0 && !own_bias_ && constant_weight * data_.net.constant > -1;
    if (lowered_) constant_weight = static_cast<T>(-low_enough / data_.net.constant);
    weights.bias = constant_weight * data_.net.constant;
  }

  // Activates the worst rows that a short search finds. Returns whether another search may find more.
  bool explore(LabelSearch<T>& search, std::vector<ScoredRow>& found, std::vector<int32_t>& place) {
    const int64_t before = rows_.count();
    search.best_rows(data_.draws > 0 ? sampled() : weights, before + std::max(fewest, before / 2),
                     entries_a_row * std::max(fewest, before), found);
    if (data_.draws > 0) search.score_rows(weights, found);
    std::erase_if(found, [](const ScoredRow& one) { return one.score <= -1; });
    leave_active(found);
    drop_idle();
    add(found, place);
    // A bias above -1 means that there are still too few negative rows to hold it down.
    return (lowered_ && !found.empty()) || 8 * std::ssize(found) > before;
  }

  // Computes the certificate from all rows above -1, which may include active ones, and activates the worst
  // of them. Returns whether training of the label is over.
  bool take(std::vector<ScoredRow>& found, const TrainingRule& rule, std::vector<int32_t>& place) {
    leave_active(found);
    data_.squared ? measure<true>(found) : measure<false>(found);
    ++rounds;
    done = rule.met(certificate);
    if (done || rounds >= rule.limit) return true;
    // If lowering the bias, rather than the rows outside, causes most of the gap, stop lowering it.
    const double gap = certificate.primal - certificate.dual;
    if (lowered_ && outside_ < 0.5 * gap && rounds > 2) own_bias_ = true;
    drop_idle();
    const auto most = static_cast<size_t>(std::max<int64_t>(4 * fewest, 2 * rows_.count()));
    if (found.size() > most) {
      std::nth_element(found.begin(), found.begin() + most, found.end(), scored_before);
      found.resize(most);
      std::sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.row < y.row; });
    }
    add(found, place);
    return false;
  }

  // Whether so many rows matter, or soon will, that searching for them does not pay.
  bool has_to_do_with_all() const {
    if (was_together_) return false;
    const int64_t own = data_.own_ptr[label_ + 1] - data_.own_ptr[label_];
    return data_.X.n_rows < data_.together * std::max(rows_.count(), 2 * fewest + 2 * own);
  }

  int64_t label() const { return label_; }
  const ActiveRows<T>& rows() const { return rows_; }

  LabelWeights weights;
  T constant_weight = 0;
  Certificate certificate;
  int64_t rounds = 0;
  double visited = 0;  // rows
  bool done = false;
  std::vector<std::pair<int32_t, double>> variables;  // after training: those that are not 0, by row

  bool together = false;  // whether LabelsTogether trained the label last, and has set `variables`

  // Ends training: frees the active rows, and keeps their variables if they are needed.
  void end() {
    if (ended_) return;
    ended_ = true;
    if (!together) {
      variables.clear();
      for (int64_t r = 0; r < rows_.count(); ++r)
        if (rows_.a[r] > 0) variables.emplace_back(rows_.row[r], rows_.a[r]);
      std::sort(variables.begin(), variables.end());
    }
    support = std::ssize(variables);
    if (!data_.keep_variables) variables = decltype(variables)();
    forget_rows();
  }
  int64_t support = 0;

 private:
  template <bool squared>
  void ascend_with(const TrainingRule& rule) {
    // As long as rows outside the active set have a large loss, the active ones need not be exact.
    double last = 0;
    for (int pass = 0; pass < most_passes; ++pass) {
      const PassSums sums = rows_.template pass<squared>(seed_ + static_cast<uint64_t>(passes_++));
      visited += static_cast<double>(rows_.count());
      const double target = std::max(rule.by_gap ? inside * rule.tol * sums.loss : 0.0, coarse * outside_);
      const double left = sums.gap * (pass > 0 ? std::max(0.2, std::min(1.0, sums.gap / last)) : 1.0);
      last = sums.gap;
      if (left <= target || sums.gap <= 1e-14 * sums.loss) break;
    }
  }

  template <bool squared>
  void measure(const std::vector<ScoredRow>& found) {
    using Loss = SparseLoss<squared>;
    const ElasticNet& net = data_.net;
    double primal = 0, dual = 0, violation = 0;
    for (double w : weights.weight) primal += net.penalty(w);
    primal += net.tau / 2 * double(constant_weight) * double(constant_weight);
    for (double w : rows_.w) dual -= net.tau / 2 * w * w;
    dual -= net.tau / 2 * rows_.bias() * rows_.bias();
    const auto rounded = [&](int32_t f) { return static_cast<double>(static_cast<T>(rows_.w[f])); };
    for (int64_t r = 0; r < rows_.count(); ++r) {
      const double m = rows_.sign[r] * (weights.bias + rows_.score_with(r, rounded));
      const double a = rows_.a[r], C = rows_.penalty_of(r);
      primal += Loss::loss(m, C);
      dual += Loss::gain(a, C);
      violation = std::max(violation, Loss::violation(a, m, C));
    }
    outside_ = 0;
    for (const ScoredRow& one : found) {
      const double C = data_.C[one.row];
      outside_ += Loss::loss(-one.score, C);
      violation = std::max(violation, Loss::violation(0, -one.score, C));
    }
    certificate = {primal + outside_, dual, violation};
  }

  // An unbiased sample of the weights: features drawn in proportion to |w| (Yen et al., KDD 2017, Algorithm
  // 3).
  LabelWeights sampled() {
    std::vector<double> sum(weights.weight.size());
    double total = 0;
    for (size_t f = 0; f < sum.size(); ++f) sum[f] = total += std::abs(weights.weight[f]);
    std::vector<int64_t> drawn(sum.size(), 0);
    for (int64_t draw = 0; draw < data_.draws && total > 0; ++draw) {
      drawn_ = scramble(drawn_ ^ seed_);
      const double u = total * static_cast<double>(drawn_ >> 11) * 0x1p-53;
      ++drawn[std::upper_bound(sum.begin(), sum.end() - 1, u) - sum.begin()];
    }
    LabelWeights out;
    out.bias = weights.bias;
    for (size_t f = 0; f < sum.size(); ++f) {
      if (drawn[f] == 0) continue;
      const double size = total * static_cast<double>(drawn[f]) / static_cast<double>(data_.draws);
      out.feature.push_back(weights.feature[f]);
      out.weight.push_back(weights.weight[f] > 0 ? size : -size);
    }
    return out;
  }

  // Removes active rows from `found`.
  void leave_active(std::vector<ScoredRow>& found) const {
    std::vector<int32_t> active = rows_.row;
    std::sort(active.begin(), active.end());
    std::erase_if(found, [&](const ScoredRow& one) {
      return std::binary_search(active.begin(), active.end(), one.row);
    });
  }

  void drop_idle() {
    const int8_t* sign = rows_.sign.data();
    const double* a = rows_.a.data();
    rows_.keep_only([&](int64_t r) { return sign[r] > 0 || a[r] > 0; });
  }

  void add(const std::vector<ScoredRow>& found, std::vector<int32_t>& place) {
    for (const ScoredRow& one : found) rows_.add(data_.X, one.row, false, data_.C[one.row], 0.0, place);
  }

  // The least number of other rows at the start, and that for a label without rows of its own.
  static constexpr int64_t fewest = 48, without_own = 1024;
  // Slightly more than 1, so that rows that share nothing with the label are clearly below -1.
  static constexpr double low_enough = 1 + 0x1p-10;
  static constexpr int most_passes = 40;
  static constexpr int64_t entries_a_row = 32;  // index entries that a short search reads, per row sought
  static constexpr double inside = 0.25, coarse = 0.2;

  const LabelData<T>& data_;
  const int64_t label_;
  const uint64_t seed_;
  ActiveRows<T> rows_;
  double outside_ = 0;  // the loss of rows that are not active, at the last search
  bool lowered_ = false, own_bias_ = false, warm_ = false, was_together_ = false, ended_ = false;
  int64_t passes_ = 0;
  uint64_t drawn_ = 0;  // the last random number
};

}  // namespace manyclass
