// One-vs-rest and one-vs-one classifiers: trains the blocks of binary/problems.hpp independently of each
// other (binary/training.hpp), and stores their dual variables and weights.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "binary/data.hpp"
#include "binary/loss.hpp"
#include "binary/model_columns.hpp"
#include "binary/training.hpp"
#include "binary/variables.hpp"
#include "dual/feature_weights.hpp"
#include "parallel/dealt_blocks.hpp"
#include "parallel/interrupt.hpp"
#include "rows/layout.hpp"
#include "rows/row_labels.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// What to train, and how. keep_variables: whether to store the dual variables even if the model does not need
// them.
struct BlockOptions {
  int64_t classes;
  bool pairs;
  int64_t features;
  Binary loss;
  Method method;
  bool reduced, keep_variables;
};

template <class T>
class BinaryBlocks {
 public:
  static constexpr int width = Lanes<T>::count;

  BinaryBlocks(Layout<T> layout, RowLabels labels, std::vector<T> C, const BlockOptions& options)
      : BinaryBlocks(std::make_shared<BinaryData<T>>(std::move(layout), std::move(labels), std::move(C),
                                                     options.classes, options.pairs, options.reduced),
                     options, true) {
    if (method_ == Method::newton && (data_.pairs || !smooth()))
      throw std::logic_error("Newton's method needs a smooth loss and one-vs-rest");
    if (options.reduced && (data_.pairs || method_ == Method::newton))
      throw std::logic_error("feature reduction needs one-vs-rest and the dual method");
  }

  // A sibling on the same rows, which can train at the same time. It holds no blocks yet.
  explicit BinaryBlocks(const BinaryBlocks* other) : BinaryBlocks(other->shared_, other->options_, false) {}
  BinaryBlocks(const BinaryBlocks&) = delete;

  int64_t blocks() const { return std::ssize(alpha_); }
  int64_t problems() const { return data_.problems.count(); }
  const std::vector<int32_t>& problems_of(int64_t b) const { return data_.problems.blocks()[b].problem; }

  // Trains the blocks that are dealt, starting from their current dual variables. An interrupt ends the
  // blocks in training where they are.
  std::vector<std::pair<int64_t, BlockResult>> train(const Deal& deal, const TrainingRule& rule,
                                                     uint64_t seed, int threads, Interrupt& interrupt) {
    while (static_cast<int>(work_.size()) < threads) work_.emplace_back(data_);
    return train_dealt<BlockResult>(threads, deal, interrupt, [&](int me, int64_t b) {
      check_held({b});
      BlockResult result = with_loss(
          loss_, [&]<Binary loss>() { return train_block<loss>(b, rule, seed, work_[me], interrupt); });
      result.cut |= interrupt.requested();
      return result;
    });
  }

  // release: whether to free the variables of each block once they have been copied.
  VariablesByRow<T> by_rows(bool release = false) { return {alpha_, data_, loss_, release}; }

  // Sets the variables a_i (not states), given by rows.
  void set_alpha(const int64_t* ptr, const int32_t* problem, const T* values) {
    std::vector<BlockVariables<T>> divided(alpha_.size());
    divide_variables(data_.problems, data_.rows.n, ptr, problem, values, divided);
    check_variables(divided);
    check_sides(divided);
    with_loss(loss_, [&]<Binary loss>() {
      for (BlockVariables<T>& one : divided)
        one.replace([&](int32_t i, T a) { return BinaryLoss<loss>::state(vec<T>{} + a, data_.C[i])[0]; });
    });
    alpha_ = std::move(divided);
  }

  // Holds the variables and weights of these blocks only. Drops those of all others, which must not be
  // trained.
  void hold(const std::vector<int64_t>& chosen) {
    held_.assign(blocks(), false);
    for (int64_t b : check(chosen)) held_[b] = true;
    for (int64_t b = 0; b < blocks(); ++b)
      if (!held_[b]) alpha_[b] = {};
    if (dense_) model_.hold(held_);
  }

  // Export the results of some blocks, and import them into another object of the same problem.
  PackedVariables<T> variables_of(const std::vector<int64_t>& chosen) const {
    return {alpha_, check(chosen)};
  }
  void set_variables(const std::vector<int64_t>& chosen, const PackedView<T>& packed) {
    also_hold(chosen);
    std::vector<BlockVariables<T>> found(alpha_.size());
    unpack_variables(
        data_.rows.n, std::ssize(chosen),
        [&](int64_t k) {
          return std::pair(chosen[k], (1u << data_.problems.blocks()[chosen[k]].many()) - 1);
        },
        packed, found);
    with_loss(loss_, [&]<Binary loss>() {
      for (int64_t b : chosen) check_states<loss>("values", found[b], [&](int32_t i) { return data_.C[i]; });
    });
    check_sides(found);
    for (int64_t b : chosen) alpha_[b] = std::move(found[b]);
  }
  int64_t features() const { return model_.features(); }
  int64_t columns(const std::vector<int64_t>& chosen) const { return model_.count(check(chosen)); }
  void copy_columns(const std::vector<int64_t>& chosen, T* out) { model_.copy_to(out, check_held(chosen)); }
  void set_columns(const std::vector<int64_t>& chosen, const T* in) {
    also_hold(chosen);
    if (dense_) model_.copy_from(in, chosen);
  }

  // Frees memory for the model after training.
  void release() {
    work_.clear();
    if (shared_.use_count() == 1) data_.rows = {};
  }

  // Whether the model is a dense matrix (features x problems): if most weights are non-zero, or it is small.
  bool has_dense_model() const { return dense_; }
  Buffer<T> take_dense_model() {
    model_.hold(std::vector<bool>(blocks(), true));
    Buffer<T> columns = model_.take();
    if (!data_.pairs) return columns;
    // Only for one-vs-rest are the problems of a block neighbours.
    Buffer<T> ordered(columns.size());
    for (int64_t f = 0, from = 0; f < model_.features(); ++f)
      for (int64_t b = 0; b < blocks(); ++b)
        for (int32_t problem : problems_of(b))
          ordered.data()[f * problems() + problem] = columns.data()[from++];
    return ordered;
  }

  int64_t dual_bytes() const {
    return total_of(alpha_, [](const auto& a) { return a.bytes(); });
  }
  const Layout<T>& rows() const { return data_.rows; }

 private:
  BinaryBlocks(std::shared_ptr<BinaryData<T>> data, const BlockOptions& options, bool holds_all)
      : shared_(std::move(data)),
        options_(options),
        dense_(model_is_dense()),
        alpha_(data_.problems.blocks().size()),
        held_(alpha_.size(), holds_all) {
    if (method_ == Method::either && (!smooth() || options.reduced || !dense_)) method_ = Method::dual;
    if (!dense_) return;
    model_ = ModelColumns<T>(data_.problems, options.features);
    model_.hold(held_);
  }

  // Checks that variables (not states) are within their bounds.
  void check_variables(const std::vector<BlockVariables<T>>& found) const {
    const bool bounded = with_loss(loss_, []<Binary loss>() { return BinaryLoss<loss>::bounded; });
    for (const BlockVariables<T>& one : found)
      one.for_each([&](int32_t i, int, T a) {
        const T high = bounded ? with_rounding(data_.C[i]) : std::numeric_limits<T>::max();
        if (!(a >= 0 && a <= high))
          reject("values", "that of row " + std::to_string(i) + " is " + in_digits(a) + ", outside 0 to " +
                               in_digits(high));
      });
  }

  // Checks for one-vs-one that rows have variables only in problems in which they take part.
  void check_sides(const std::vector<BlockVariables<T>>& found) const {
    if (!data_.pairs) return;
    RowSides sides = data_.no_sides();
    for (size_t b = 0; b < found.size(); ++b) {
      if (found[b].row.empty()) continue;
      data_.add_sides(static_cast<int64_t>(b), sides);
      for (size_t r = 0; r < found[b].row.size(); ++r) {
        const int32_t i = found[b].row[r];
        if (found[b].lanes[r] & ~(sides.positive[i] | sides.negative[i]))
          reject("lanes", "row " + std::to_string(i) + " takes no part in its problem");
      }
      data_.clear_sides(static_cast<int64_t>(b), sides);
    }
  }

  const std::vector<int64_t>& check(const std::vector<int64_t>& chosen) const {
    for (int64_t b : chosen)
      if (b < 0 || b >= blocks()) throw std::out_of_range("no such block");
    return chosen;
  }

  const std::vector<int64_t>& check_held(const std::vector<int64_t>& chosen) const {
    for (int64_t b : check(chosen))
      if (!held_[b]) throw std::logic_error("this object does not hold the block");
    return chosen;
  }

  void also_hold(const std::vector<int64_t>& chosen) {
    for (int64_t b : check(chosen)) held_[b] = true;
    if (dense_) model_.hold(held_);
  }

  bool smooth() const {
    return with_loss(loss_, []<Binary loss>() { return BinaryLoss<loss>::smooth; });
  }

  // One-vs-one with the hinge has few non-zero variables, from which a sparse model is computed.
  bool model_is_dense() const {
    const bool small = stored_dense<T>(options_.features, problems());
    if (data_.pairs) return small && smooth();
    const bool sparse = with_loss(loss_, []<Binary loss>() { return BinaryLoss<loss>::sparse; });
    return small || !sparse || method_ == Method::newton;
  }

  template <Binary loss>
  BlockResult train_block(int64_t b, const TrainingRule& rule, uint64_t seed, BlockWork<T>& work,
                          Interrupt& interrupt) {
    BlockTraining<T, loss> training(data_, b, alpha_[b], method_, rule, work, interrupt);
    const BlockResult result = training.train(seed);
    if (options_.keep_variables || !dense_) alpha_[b] = training.variables();
    if (dense_) training.copy_weights(model_);
    return result;
  }

  std::shared_ptr<BinaryData<T>> shared_;
  BinaryData<T>& data_ = *shared_;
  const BlockOptions options_;
  const Binary loss_ = options_.loss;
  Method method_ = options_.method;
  const bool dense_;
  std::vector<BlockVariables<T>> alpha_;  // by block
  std::vector<bool> held_;                // by block
  ModelColumns<T> model_;                 // empty unless dense_
  std::deque<BlockWork<T>> work_;  // by thread; a deque, because Newton keeps references to its elements
};

}  // namespace manyclass
