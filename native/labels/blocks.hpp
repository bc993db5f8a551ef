// PPDSparse for many labels (labels/elastic_net.hpp states the problem): trains blocks of neighbouring
// labels, each block on one thread to the end, and stores their weights and variables.
//
// A label normally finds its rows through the inverted index (labels/search.hpp). If that would read too
// much, it waits until one pass over all rows can search for several labels of its block
// (labels/blocked_search.hpp). Labels to which many rows matter are trained on all rows, a vector of labels
// at a time (labels/together.hpp). Labels depend on other labels of their own block only, so the result does
// not depend on the threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "labels/blocked_search.hpp"
#include "labels/search.hpp"
#include "labels/together.hpp"
#include "labels/training.hpp"
#include "parallel/dealt_blocks.hpp"
#include "parallel/interrupt.hpp"
#include "parallel/team.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The outcome of training one label.
struct LabelResult {
  Certificate certificate;
  int64_t rounds = 0;
  double visited = 0;  // rows visited, in units of all rows
  int64_t support = 0;
  bool done = false;
  bool cut = false;  // an interrupt may have ended it early
};

// The weights and, if they are kept, the dual variables of the labels of a block, one label after the other.
template <class T>
struct BlockOfLabels {
  std::vector<int64_t> weight_ptr, row_ptr;
  std::vector<int32_t> feature, row;
  std::vector<T> weight, constant, variable;

  int64_t bytes() const {
    auto size = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
    return size(weight_ptr) + size(row_ptr) + size(feature) + size(row) + size(weight) + size(constant) +
           size(variable);
  }
};

template <class T>
class LabelBlocks {
 public:
  LabelBlocks(std::shared_ptr<const LabelData<T>> data, int64_t labels)
      : data_(std::move(data)),
        labels_(labels),
        width_(width_for(labels, data_->X.entries())),
        held_((labels + width_ - 1) / width_) {}

  explicit LabelBlocks(const LabelBlocks* other) : LabelBlocks(other->data_, other->labels_) {}
  LabelBlocks(const LabelBlocks&) = delete;

  int64_t blocks() const { return std::ssize(held_); }
  int64_t labels() const { return labels_; }
  int64_t first(int64_t b) const { return b * width_; }
  int64_t many(int64_t b) const { return std::min(width_, labels_ - first(b)); }
  const LabelData<T>& data() const { return *data_; }
  BlockOfLabels<T>& block(int64_t b) { return held_.at(b); }
  // Imports a block that another object of the same problem has trained.
  void set_block(int64_t b, BlockOfLabels<T> block) { held_[check(b)] = std::move(block); }
  int64_t held_bytes() const {
    return total_of(held_, [](const auto& one) { return one.bytes(); });
  }
  void release_work() { work_.clear(); }
  int64_t work_bytes() const {
    return total_of(work_, [](const Work& one) {
      return one.search.bytes() + static_cast<int64_t>(one.place.size() * sizeof(int32_t)) +
             one.blocked.bytes() + (one.together ? one.together->bytes() : 0);
    });
  }

  // Trains the blocks that are dealt, starting from their current variables. Returns a result for each of
  // their labels. An interrupt ends the labels in training where they are; labels that have not begun have 0
  // rounds.
  std::vector<std::pair<int64_t, std::vector<LabelResult>>> train(const Deal& deal, const TrainingRule& rule,
                                                                  uint64_t seed, int threads,
                                                                  Interrupt& interrupt) {
    while (static_cast<int>(work_.size()) < threads) work_.emplace_back(*data_);
    return train_dealt<std::vector<LabelResult>>(threads, deal, interrupt, [&](int me, int64_t b) {
      std::vector<LabelResult> results(many(check(b)));
      train_block(b, rule, seed, work_[me], interrupt, results.data());
      return results;
    });
  }

 private:
  // A search by the index may read one in `share` of all entries. One pass over all rows costs each of the
  // labels that share it about as much.
  static constexpr int64_t share = 64;

  static constexpr int most_explored = 5;

  struct Work {
    explicit Work(const LabelData<T>& data)
        : search(data.X, data.index), blocked(data.X, data.bounds), place(data.X.n_features, -1) {}
    LabelSearch<T> search;
    BlockedSearch<T> blocked;
    std::vector<int32_t> place;  // by feature: its number in the current label's active rows, or -1
    std::optional<LabelsTogether<T>> together;
  };

  // Sets `place` to the feature numbers of a label for the lifetime of this object.
  struct Placed {
    Placed(std::vector<int32_t>& place, const ActiveRows<T>& rows) : place(place), rows(rows) {
      for (int64_t f = 0; f < rows.features(); ++f) place[rows.feature[f]] = static_cast<int32_t>(f);
    }
    Placed(const Placed&) = delete;
    ~Placed() {
      for (int32_t f : rows.feature) place[f] = -1;
    }
    std::vector<int32_t>& place;
    const ActiveRows<T>& rows;
  };

  // The number of labels per block. Labels that are trained together belong to one block, ideally a full
  // vector of them. Labels of a block share passes over all rows: the more such a pass costs, the more labels
  // should share it. On the other hand, there should be enough blocks for all threads.
  static int64_t width_for(int64_t labels, int64_t entries) {
    const int64_t most = entries < int64_t(1) << 22 ? 64 : 256;
    int64_t width = 4;
    while (width < 16 && labels >= 8 * width) width *= 2;
    while (width < most && labels >= 64 * width) width *= 2;
    return width;
  }

  int64_t check(int64_t b) const {
    if (b < 0 || b >= blocks()) throw std::out_of_range("no such block");
    return b;
  }

  void train_block(int64_t b, const TrainingRule& rule, uint64_t seed, Work& work, Interrupt& interrupt,
                   LabelResult* results) {
    const BlockOfLabels<T> from = std::move(held_[b]);
    std::deque<LabelTraining<T>> trained;
    std::vector<LabelTraining<T>*> waiting, together, ended;
    std::vector<ScoredRow> found;
    bool cut = false;
    for (int64_t l = 0; l < many(b) && !(cut = interrupted(interrupt)); ++l) {
      LabelTraining<T>& label = trained.emplace_back(*data_, first(b) + l, seed);
      const int64_t at = from.row_ptr.empty() ? 0 : from.row_ptr[l];
      const int64_t variables = from.row_ptr.empty() ? 0 : from.row_ptr[l + 1] - at;
      const Placed placed(work.place, label.rows());
      label.begin(work.search, work.place, from.row.data() + at, from.variable.data() + at, variables);
      if (go_on(label, rule, work, interrupt, found))
        (label.has_to_do_with_all() ? together : waiting).push_back(&label);
      else
        ended.push_back(&label);
    }
    end_all(ended);
    while (!(waiting.empty() && together.empty()) && !(cut = cut || interrupted(interrupt))) {
      train_together(std::exchange(together, {}), rule, seed, work, interrupt, waiting);
      const std::vector<LabelTraining<T>*> searched = std::exchange(waiting, {});
      // With a bias above -1, nearly all rows may be above -1: search for fewer labels at once.
      const bool many_rows = std::any_of(searched.begin(), searched.end(),
                                         [](const LabelTraining<T>* l) { return l->weights.bias > -1; });
      const size_t at_once = many_rows ? Lanes<T>::count : BlockedSearch<T>::at_once;
      for (size_t k = 0; k < searched.size(); k += at_once) {
        const std::vector<LabelTraining<T>*> some(searched.begin() + k,
                                                  searched.begin() + std::min(searched.size(), k + at_once));
        std::vector<std::vector<ScoredRow>> above = search_all_rows(some, work);
        for (size_t s = 0; s < some.size(); ++s) {
          const Placed placed(work.place, some[s]->rows());
          if (!some[s]->take(above[s], rule, work.place) && go_on(*some[s], rule, work, interrupt, found))
            (some[s]->has_to_do_with_all() ? together : waiting).push_back(some[s]);
          else
            ended.push_back(some[s]);
        }
        end_all(ended);
      }
    }
    waiting.insert(waiting.end(), together.begin(), together.end());
    for (LabelTraining<T>* label : waiting) finish_early(*label, rule, work);
    for (LabelTraining<T>& label : trained) label.end();
    keep(b, trained, from, cut || interrupt.requested(), results);
  }

  static void end_all(std::vector<LabelTraining<T>*>& labels) {
    for (LabelTraining<T>* label : labels) label->end();
    labels.clear();
  }

  // Labels that are not done afterwards join `waiting`.
  void train_together(const std::vector<LabelTraining<T>*>& labels, const TrainingRule& rule, uint64_t seed,
                      Work& work, Interrupt& interrupt, std::vector<LabelTraining<T>*>& waiting) {
    for (size_t k = 0; k < labels.size(); k += Lanes<T>::count) {
      if (!work.together) work.together.emplace(*data_);
      const std::vector<LabelTraining<T>*> some(
          labels.begin() + k, labels.begin() + std::min(labels.size(), k + Lanes<T>::count));
      work.together->train(some, rule, seed, [&] { return interrupted(interrupt); });
      for (LabelTraining<T>* label : some) {
        if (label->done || label->rounds >= rule.limit) {
          label->end();
          continue;
        }
        label->forget_rows();
        const Placed placed(work.place, label->rows());
        label->go_on_alone(work.place);
        label->ascend(rule);
        label->round_weights();
        waiting.push_back(label);
      }
    }
    work.together.reset();  // it is large, and if there are many labels, few need it
  }

  // Trains a label by the index until it is done (false) or has to wait for a pass over all rows (true).
  bool go_on(LabelTraining<T>& label, const TrainingRule& rule, Work& work, Interrupt& interrupt,
             std::vector<ScoredRow>& found) {
    const int64_t most = data_->X.entries() / share;
    for (int explored = 0;;) {
      if (label.has_to_do_with_all()) return true;
      if (!label.warm()) label.ascend(rule);
      label.round_weights();
      if (!label.warm() && explored < most_explored && label.rounds == 0) {
        ++explored;
        if (label.explore(work.search, found, work.place)) continue;
        label.ascend(rule);
        label.round_weights();
        explored = most_explored;
      }
      if (!work.search.rows_above(label.weights, most, found)) return true;
      if (label.take(found, rule, work.place) || interrupted(interrupt)) return false;
    }
  }

  // Computes the certificate of a label that was waiting when an interrupt came; it still needs all rows.
  void finish_early(LabelTraining<T>& label, TrainingRule rule, Work& work) {
    rule.limit = 0;
    label.round_weights();
    auto above = search_all_rows({&label}, work);
    const Placed placed(work.place, label.rows());
    label.take(above[0], rule, work.place);
  }

  std::vector<std::vector<ScoredRow>> search_all_rows(const std::vector<LabelTraining<T>*>& some,
                                                      Work& work) {
    std::vector<const LabelWeights*> weights;
    for (const LabelTraining<T>* label : some) weights.push_back(&label->weights);
    return work.blocked.rows_above(weights, work.search);
  }

  // Stores the trained labels. Labels that training has not reached stay as they were in `from`.
  void keep(int64_t b, std::deque<LabelTraining<T>>& trained, const BlockOfLabels<T>& from, bool cut,
            LabelResult* results) {
    BlockOfLabels<T>& out = held_[b];
    out = {};
    out.weight_ptr.push_back(0);
    out.row_ptr.push_back(0);
    size_t weights = 0, variables = 0;
    for (const LabelTraining<T>& label : trained) {
      weights += label.weights.feature.size();
      variables += label.variables.size();
    }
    out.feature.reserve(weights);
    out.weight.reserve(weights);
    if (data_->keep_variables) {
      out.row.reserve(variables);
      out.variable.reserve(variables);
    }
    for (int64_t l = 0; l < many(b); ++l) {
      if (l < std::ssize(trained)) {
        keep(trained[l], out);
        results[l] = result_of(trained[l]);
        results[l].cut = cut && !results[l].done;
      } else {
        keep(from, l, out);
      }
      out.weight_ptr.push_back(std::ssize(out.feature));
      out.row_ptr.push_back(std::ssize(out.row));
    }
  }

  void keep(const LabelTraining<T>& label, BlockOfLabels<T>& out) const {
    std::vector<std::pair<int32_t, double>> sorted;
    for (size_t f = 0; f < label.weights.feature.size(); ++f)
      sorted.emplace_back(label.weights.feature[f], label.weights.weight[f]);
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [feature, weight] : sorted) {
      out.feature.push_back(feature);
      out.weight.push_back(static_cast<T>(weight));
    }
    out.constant.push_back(label.constant_weight);
    if (!data_->keep_variables) return;
    for (const auto& [row, variable] : label.variables) {
      out.row.push_back(row);
      out.variable.push_back(static_cast<T>(variable));
    }
  }

  static void keep(const BlockOfLabels<T>& from, int64_t l, BlockOfLabels<T>& out) {
    const auto copy = [&](const std::vector<int64_t>& ptr, const auto& in, auto& to) {
      if (!ptr.empty()) to.insert(to.end(), in.begin() + ptr[l], in.begin() + ptr[l + 1]);
    };
    copy(from.weight_ptr, from.feature, out.feature);
    copy(from.weight_ptr, from.weight, out.weight);
    copy(from.row_ptr, from.row, out.row);
    copy(from.row_ptr, from.variable, out.variable);
    out.constant.push_back(from.constant.empty() ? T(0) : from.constant[l]);
  }

  LabelResult result_of(const LabelTraining<T>& label) const {
    return {label.certificate, label.rounds, label.visited / double(data_->X.n_rows),
            label.support,     label.done,   false};
  }

  std::shared_ptr<const LabelData<T>> data_;
  int64_t labels_, width_;
  std::vector<BlockOfLabels<T>> held_;  // by block
  std::deque<Work> work_;               // by thread
};

}  // namespace manyclass
