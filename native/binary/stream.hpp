// One-vs-rest on rows that arrive block by block. The weights of all classes, or of a range of them, stay in
// memory; the dual variables come and go with their rows. A row may have any number of labels.
//
// Vectors of neighbouring classes are trained independently (binary/step.hpp). Threads share the vectors, and
// the result does not depend on how. A row rests for a vector of classes after a visit that changed none of
// its variables; the caller decides when to visit all rows again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "binary/loss.hpp"
#include "binary/step.hpp"
#include "binary/variables.hpp"
#include "dual/certificate.hpp"
#include "dual/exact_weights.hpp"
#include "parallel/interrupt.hpp"
#include "parallel/shuffle.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/scores.hpp"
#include "rows/sparse_rows.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

// A visit of the rows for one vector of classes.
struct StreamVisit {
  int64_t vector;
  bool all;        // also visit resting rows
  double rest;     // see step_rows
  int64_t rounds;  // the most visits of each row
  double quiet;    // stop when a round sees at most this share of the first round's gap
};

template <class T>
class BinaryStream {
 public:
  static constexpr int width = Lanes<T>::count;

  // first: the number of vectors of classes before these that other objects hold.
  BinaryStream(int64_t heads, int64_t classes, Binary loss, int64_t first)
      : heads_(heads), K_(classes), first_(first), loss_(loss), variables_((classes + width - 1) / width) {
    for (int64_t b = 0; b < vectors(); ++b) W_.emplace_back(heads * width);
  }
  BinaryStream(const BinaryStream&) = delete;

  int64_t vectors() const { return std::ssize(variables_); }
  int64_t many(int64_t b) const { return std::min<int64_t>(width, K_ - b * width); }
  int64_t classes() const { return K_; }
  int64_t heads() const { return heads_; }
  int64_t labelled() const { return std::ssize(C_); }
  Binary loss() const { return loss_; }
  int64_t weight_bytes() const { return std::ssize(W_) * heads_ * width * sizeof(T); }
  const Layout<T>& rows() const { return rows_; }
  Buffer<T>& weights_of(int64_t b) { return W_.at(b); }
  T* weight(int64_t head, int64_t c) { return W_[c / width].data() + head * width + c % width; }

  // Replaces the rows, and sets all variables to their initial values. The labels of row i are at ptr[i] to
  // ptr[i + 1]. `layout` receives the old rows.
  void swap_rows(Layout<T>& layout, const int64_t* ptr, const int32_t* labels, std::vector<T> C) {
    std::swap(rows_, layout);
    C_ = std::move(C);
    if (rows_.tails() != 0 || rows_.heads() != heads_)
      throw std::logic_error("the rows have features other than those of this stream");
    for (auto& one : variables_) one = {};
    active_.assign(vectors(), std::vector<uint8_t>(rows_.n, 1));
    filled_.clear();
    empty_C_ = 0;
    for (int64_t i = 0; i < rows_.n; ++i) {
      if (C_[i] == 0) continue;
      if (rows_.norm[i] == 0)
        empty_C_ += C_[i];
      else
        filled_.push_back(static_cast<int32_t>(i));
    }
    own_ptr_.assign(vectors() + 1, 0);
    for (int64_t e = 0; e < ptr[rows_.n]; ++e) ++own_ptr_[labels[e] / width + 1];
    for (int64_t b = 0; b < vectors(); ++b) own_ptr_[b + 1] += own_ptr_[b];
    own_.resize(own_ptr_.back());
    std::vector<int64_t> next(own_ptr_.begin(), own_ptr_.end() - 1);
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e)
        own_[next[labels[e] / width]++] = {static_cast<int32_t>(i), labels[e] % width};
  }
  void return_rows(Layout<T>& layout) { std::swap(rows_, layout); }

  // Visits the rows for each of these vectors of classes. Returns the sums of their first rounds.
  std::vector<BlockSums> visit(const std::vector<StreamVisit>& visits, uint64_t seed, int threads,
                               Interrupt& interrupt) {
    std::vector<BlockSums> sums(visits.size());
    for_each(std::ssize(visits), threads, [&](int64_t k, Work& work) {
      with_loss(loss_, [&]<Binary loss>() { sums[k] = visit_one<loss>(visits[k], seed, work, interrupt); });
    });
    return sums;
  }

  // Visits all rows for all vectors of classes by another method: calls step(b, VisitedRows, interrupted).
  template <Binary loss, class Step>
  void visit_all(uint64_t seed, int threads, Interrupt& interrupt, Step step) {
    if (loss != loss_) throw std::logic_error("this stream was made for another loss");
    for_each(vectors(), threads, [&](int64_t b, Work& work) {
      unpack<loss>(b, work);
      work.active = filled_;
      shuffle(work.active, order(seed, b, 0));
      step(b, visited(b, work), listening(interrupt));
      keep<loss>(b, work);
    });
  }

  // Adds these rows to the exact weights of a range of classes.
  void add_to(ExactWeights<T>& exact, int threads) {
    const int64_t first = exact.low() / width, last = (exact.high() + width - 1) / width;
    for_each(last - first, threads, [&](int64_t k, Work& work) {
      with_loss(loss_, [&]<Binary loss>() { add_one<loss>(first + k, exact, work); });
    });
  }

  // The contributions of these rows to the certificates of all vectors of classes, at the current weights.
  std::vector<Certificate> measure(int threads) {
    std::vector<Certificate> found(vectors());
    for_each(vectors(), threads, [&](int64_t b, Work& work) {
      with_loss(loss_, [&]<Binary loss>() { found[b] = measure_one<loss>(b, work); });
    });
    return found;
  }

  std::vector<int32_t> best(int threads) const {
    return best_classes(
        rows_,
        [&](int64_t i, int64_t c, T* s) { score_row(rows_, i, W_[c / width].data(), width, s, width); },
        width, K_, threads);
  }

  // The states (binary/loss.hpp) of the rows [first, last) that differ from their initial value, numbered
  // from `first`.
  PackedVariables<T> variables_of(int64_t first, int64_t last) const {
    PackedVariables<T> out;
    for (const auto& one : variables_) {
      const size_t from = std::lower_bound(one.row.begin(), one.row.end(), first) - one.row.begin();
      const size_t to = std::lower_bound(one.row.begin(), one.row.end(), last) - one.row.begin();
      size_t begin = 0, end = 0;
      for (size_t r = 0; r < to; ++r) (r < from ? begin : end) += __builtin_popcount(one.lanes[r]);
      out.counts.push_back(static_cast<int64_t>(to - from));
      for (size_t r = from; r < to; ++r) out.row.push_back(static_cast<int32_t>(one.row[r] - first));
      out.lanes.insert(out.lanes.end(), one.lanes.begin() + from, one.lanes.begin() + to);
      out.values.insert(out.values.end(), one.values.begin() + begin, one.values.begin() + begin + end);
    }
    return out;
  }
  // The inverse; to be called for ascending ranges of rows.
  void set_variables(int64_t first, int64_t last, const PackedView<T>& packed) {
    std::vector<BlockVariables<T>> part(vectors());
    unpack_variables(
        last - first, vectors(), [&](int64_t b) { return std::pair(b, (1u << many(b)) - 1); }, packed, part);
    with_loss(loss_, [&]<Binary loss>() {
      for (const auto& one : part)
        check_states<loss>("values", one, [&](int32_t r) { return C_[first + r]; });
    });
    for (int64_t b = 0; b < vectors(); ++b) {
      BlockVariables<T>& all = variables_[b];
      if (!all.row.empty() && all.row.back() >= first)
        throw std::invalid_argument("the variables of earlier rows must be set first");
      all.append(part[b], first);
    }
  }

  // Which of the rows [first, last) are active, one bit per row, for all vectors of classes.
  std::vector<uint8_t> active_of(int64_t first, int64_t last) const {
    const int64_t bytes = (last - first + 7) / 8;
    std::vector<uint8_t> bits(bytes * vectors(), 0);
    for (int64_t b = 0; b < vectors(); ++b)
      for (int64_t i = first; i < last; ++i)
        bits[b * bytes + (i - first) / 8] |= static_cast<uint8_t>(active_[b][i] << (i - first) % 8);
    return bits;
  }
  void set_active(int64_t first, int64_t last, const uint8_t* bits, int64_t size) {
    const int64_t bytes = (last - first + 7) / 8;
    if (size != bytes * vectors()) throw std::invalid_argument("wrong number of marks for these rows");
    for (int64_t b = 0; b < vectors(); ++b)
      for (int64_t i = first; i < last; ++i)
        active_[b][i] = bits[b * bytes + (i - first) / 8] >> (i - first) % 8 & 1;
  }

  // The coefficients of the weights, by row.
  struct Coefficients : SparseRows<double> {
    static constexpr bool centred() { return false; }
    void for_each(int64_t i, auto f) const {
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) f(index[e], value[e]);
    }
  };
  // Only for rows that have features of their own; SingleWeights needs no others.
  Coefficients coefficients() {
    Coefficients out;
    std::vector<std::vector<std::pair<int32_t, double>>> by_row(rows_.n);
    with_loss(loss_, [&]<Binary loss>() {
      Work work(rows_.n);
      for (int64_t b = 0; b < vectors(); ++b) {
        unpack<loss>(b, work);
        for (int32_t i : filled_) {
          if (rows_.single_ptr[i] == rows_.single_ptr[i + 1]) continue;
          const Wide<T> coef = coefficient<loss>(i, work);
          for (int64_t l = 0; l < many(b); ++l)
            if (coef[l] != 0) by_row[i].emplace_back(static_cast<int32_t>(b * width + l), coef[l]);
        }
      }
    });
    for (const auto& row : by_row) {
      for (const auto& [c, v] : row) out.add(c, v);
      out.end_row();
    }
    return out;
  }

 private:
  static constexpr int L = Wide<T>::L, parts = Wide<T>::parts;

  // Scratch memory of a thread.
  struct Work {
    explicit Work(int64_t n) : state(n * width), positive(n, 0) {}
    Buffer<T> state;
    std::vector<uint16_t> positive;  // by row, the lanes whose class is among its labels
    std::vector<int32_t> active;
  };

  void for_each(int64_t count, int threads, auto f) {
    team_tasks(count, threads, [&] { return Work(rows_.n); }, f);
  }

  uint64_t order(uint64_t seed, int64_t b, int64_t round) const {
    return scramble(seed ^ scramble((first_ + b) * 0x10001 + round));
  }
  static auto listening(Interrupt& interrupt) {
    return [&] { return interrupted(interrupt); };
  }

  VisitedRows<T> visited(int64_t b, Work& work) {
    return {rows_, C_, {work.positive.data()}, work.active, many(b), W_[b].data(), work.state.data()};
  }

  template <Binary loss>
  void unpack(int64_t b, Work& work) const {
    const vec<T> nothing = vec<T>{} + static_cast<T>(BinaryLoss<loss>::start);
    for (int64_t i = 0; i < rows_.n; ++i) store(work.state.data() + i * width, nothing);
    variables_[b].for_each(
        [&](int32_t i, int lane, T state) { work.state[int64_t(i) * width + lane] = state; });
    std::fill(work.positive.begin(), work.positive.end(), uint16_t(0));
    for (int64_t e = own_ptr_[b]; e < own_ptr_[b + 1]; ++e)
      work.positive[own_[e].first] |= static_cast<uint16_t>(1u << own_[e].second);
  }

  template <Binary loss>
  BlockSums visit_one(const StreamVisit& how, uint64_t seed, Work& work, Interrupt& interrupt) {
    const int64_t b = how.vector;
    unpack<loss>(b, work);
    work.active.clear();
    std::vector<uint8_t>& marks = active_.at(b);
    for (int32_t i : filled_)
      if (how.all || marks[i]) work.active.push_back(i);
    BlockSums first;
    for (int64_t round = 0; round < how.rounds; ++round) {
      shuffle(work.active, order(seed, b, round));
      const BlockSums seen =
          step_rows<loss>(visited(b, work), static_cast<T>(how.rest), listening(interrupt));
      if (round == 0) first = seen;
      work.active.resize(seen.kept);
      if (seen.kept == 0 || seen.gap <= how.quiet * first.gap * (round > 0)) break;
    }
    std::fill(marks.begin(), marks.end(), uint8_t(0));
    for (int32_t i : work.active) marks[i] = 1;
    keep<loss>(b, work);
    return first;
  }

  template <Binary loss>
  void keep(int64_t b, const Work& work) {
    const uint32_t real = (1u << many(b)) - 1;
    variables_[b] = {};  // frees the old ones first
    variables_[b] = BlockVariables<T>::packed(filled_, work.state.data(), [&](vec<T> state, int32_t) {
      return nonzero_lanes<T>(state - static_cast<T>(BinaryLoss<loss>::start)) & real;
    });
  }

  // The feature of an entry some way after h, to prefetch its weights while rows are visited in order.
  int64_t head_ahead(int64_t h) const {
    return rows_.head_index[std::min<int64_t>(h + 48, rows_.head_index.size() - 1)];
  }

  // t_i a_i
  template <Binary loss>
  Wide<T> coefficient(int64_t i, const Work& work) const {
    return signed_variables<loss>(work.state.data() + i * width, signs_of_lanes<T>(work.positive[i]), C_[i]);
  }

  template <Binary loss>
  void add_one(int64_t b, ExactWeights<T>& exact, Work& work) const {
    unpack<loss>(b, work);
    for (int32_t i : filled_) {
      if (BinaryLoss<loss>::sparse && !any_nonzero<T>(load(work.state.data() + int64_t(i) * width))) continue;
      const Wide<T> coef = coefficient<loss>(i, work);
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        const double* soon = exact.at(head_ahead(h), b * width);
        for (int v = 0; v < parts; ++v) __builtin_prefetch(soon + v * L, 1);
        coef.add_to(exact.at(rows_.head_index[h], b * width), rows_.head_value[h]);
      }
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        for (int64_t l = 0; l < many(b); ++l)
          exact.add_square(b * width + l, coef[l] * rows_.single_value[j]);
    }
  }

  template <Binary loss>
  Certificate measure_one(int64_t b, Work& work) const {
    unpack<loss>(b, work);
    const T* W = W_[b].data();
    Wide<T> losses, gains, worst;
    for (int32_t i : filled_) {
      Wide<T> s;
      for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
        __builtin_prefetch(W + head_ahead(h) * width);
        s.add_scaled(rows_.head_value[h], W + int64_t(rows_.head_index[h]) * width);
      }
      const Wide<T> state(work.state.data() + int64_t(i) * width), t(signs_of_lanes<T>(work.positive[i]));
      if (rows_.single_ptr[i] != rows_.single_ptr[i + 1]) {
        const Wide<T> coef = coefficient<loss>(i, work);
        for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
          for (int64_t l = 0; l < width; ++l)
            s[l] += double(rows_.single_value[j]) * static_cast<T>(coef[l] * rows_.single_value[j]);
      }
      for (int v = 0; v < parts; ++v) {
        const auto seen = BinaryLoss<loss>::measure(state.part[v], s.part[v] * t.part[v], double(C_[i]));
        losses.part[v] += seen.loss;
        gains.part[v] += seen.gain;
        worst.part[v] = larger<double>(worst.part[v], seen.violation);
      }
    }
    // A row without features has margin 0 for any weights, and its largest dual value equals its loss.
    const double empty = double(many(b)) * empty_C_ * BinaryLoss<loss>::at_zero;
    return {losses.sum(many(b)) + empty, gains.sum(many(b)) + empty, worst.largest(many(b))};
  }

  const int64_t heads_, K_, first_;
  const Binary loss_;
  Layout<T> rows_;
  std::vector<T> C_;
  std::vector<int32_t> filled_;  // the rows with C_i > 0 and features
  double empty_C_ = 0;           // sum of C_i over rows without features
  std::vector<int64_t> own_ptr_;
  // All by vector of classes:
  std::vector<std::pair<int32_t, int32_t>> own_;  // rows, and the lanes of their labels
  std::vector<BlockVariables<T>> variables_;
  std::vector<std::vector<uint8_t>> active_;  // whether each row is active
  std::vector<Buffer<T>> W_;
};

}  // namespace manyclass
