// Coordinate ascent on the duals of binary/loss.hpp: one step per row, for all problems of a block at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "binary/data.hpp"
#include "binary/loss.hpp"
#include "dual/kept_weights.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

// Sums of a pass over the active rows of a block, each row measured before its step; the number of rows
// visited, and the number that changed and stay active.
struct BlockSums {
  double loss = 0, gap = 0, norm = 0, violation = 0;
  int64_t visited = 0, kept = 0;
};

// The sides of rows, as `step_rows` needs them. One-vs-rest:
template <class T>
struct LabelSides {
  static constexpr bool some_take_no_part = false, all_kept = true;
  const uint16_t* positive;

  vec<T> signs(int64_t i) const { return signs_of_lanes<T>(positive[i]); }
  // The part of the variables of row i that enters the weights of features that only row i has.
  vec<T> of_singles(int64_t, vec<T> a) const { return a; }
};

// One-vs-rest with feature reduction.
template <class T>
struct ReducedSides : LabelSides<T> {
  static constexpr bool all_kept = false;
  const KeptWeights& kept;
  int64_t first;  // the class of lane 0

  vec<T> of_singles(int64_t i, vec<T> a) const { return this->signs(i) > vec<T>{} ? a : vec<T>{}; }
  // The part of a change that a head feature keeps.
  vec<T> kept_part(int64_t feature, vec<T> change) const {
    return kept.where_kept<T>(feature, first, change);
  }
};

// One-vs-one.
template <class T>
struct PairSides {
  static constexpr bool some_take_no_part = true, all_kept = true;
  const RowSides& sides;

  vec<T> signs(int64_t i) const { return sides.signs<T>(i); }
  vec<T> of_singles(int64_t, vec<T> a) const { return a; }
};

// Rows in the order of their visits, for one vector of problems. W: head features x lanes. states: rows x
// lanes.
template <class T, class Sides = LabelSides<T>>
struct VisitedRows {
  const Layout<T>& rows;
  const std::vector<T>& penalties;
  Sides sides;
  std::vector<int32_t>& order;
  int64_t lanes;
  T* W;
  T* states;

  static constexpr int width = Lanes<T>::count;

  int64_t count() const { return std::ssize(order); }
  void prefetch(int64_t place) const {
    if (place >= count()) return;
    const int64_t i = order[place];
    __builtin_prefetch(states + i * width);
    for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h)
      __builtin_prefetch(W + int64_t(rows.head_index[h]) * width);
  }
  // x_i.W, without the features that only row i has.
  vec<T> score(int64_t i) const {
    vec<T> s = {};
    for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h)
      s += rows.head_value[h] * load(W + int64_t(rows.head_index[h]) * width);
    return s;
  }
  // to += x_i change
  void add(int64_t i, vec<T> change, T* to) const {
    for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h) {
      T* w = to + int64_t(rows.head_index[h]) * width;
      store(w, load(w) + rows.head_value[h] * change);
    }
  }
};

// t_i a_i in float64; t: the sides of the row.
template <Binary loss, class T>
Wide<T> signed_variables(const T* state, vec<T> t, T C) {
  Wide<T> a(state);
  const Wide<T> sides(t);
  for (int v = 0; v < Wide<T>::parts; ++v)
    a.part[v] = BinaryLoss<loss>::variable(a.part[v], double(C)) * sides.part[v];
  return a;
}

// Sums over visits, by lane.
template <class T>
struct LaneSums {
  vec<T> losses = {}, gaps = {}, norms = {}, worst = {};

  // product: the variable times the margin.
  void add(const Measured<T>& seen, vec<T> product) {
    losses += seen.loss;
    gaps += seen.loss - seen.gain + product;
    norms += product;
    worst = larger<T>(worst, seen.violation);
  }
  BlockSums over(int64_t lanes) const {
    BlockSums sums;
    sums.loss = sum_lanes<T>(losses, lanes);
    sums.gap = sum_lanes<T>(gaps, lanes);
    sums.norm = sum_lanes<T>(norms, lanes);
    for (int64_t l = 0; l < lanes; ++l) sums.violation = std::max<double>(sums.violation, worst[l]);
    return sums;
  }
};

// Visits the rows; those that change stay active and are moved to the front of the order. If the loss has no
// bounds at which variables rest (logistic), a variable moves only if it violates its optimality condition by
// more than `rest`. (The length of its step would not do as a criterion: with long rows all steps are short.)
template <Binary loss, class T, class Sides, class Interrupted>
BlockSums step_rows(const VisitedRows<T, Sides> on, T rest, Interrupted interrupted) {
  using Loss = BinaryLoss<loss>;
  constexpr int width = Lanes<T>::count;
  const Layout<T>& rows = on.rows;
  const int64_t count = on.count();
  int64_t kept = 0;
  LaneSums<T> sums;
  const vec<T> zero = {};
  for (int64_t r = 0; r < count; ++r) {
    if (r % 1024 == 0 && interrupted()) break;
    const int64_t i = on.order[r];
    const T C = on.penalties[i];
    on.prefetch(r + 2);
    const vec<T> s = on.score(i), state = load(on.states + i * width), a = Loss::variable(state, C);
    const vec<T> t = on.sides.signs(i);
    const vec<T> m = s * t + rows.tail_norm[i] * on.sides.of_singles(i, a);
    auto seen = Loss::measure(state, m, C);
    vec<T> next = Loss::best(state, m, rows.norm[i], C);
    if constexpr (!Loss::sparse) next = seen.violation > rest ? next : state;
    vec<T> product = a * m;
    if constexpr (Sides::some_take_no_part) {
      const vec<T> part = t * t;
      seen = {part * seen.loss, part * seen.gain, part * seen.violation};
      product *= part;
      next = part > zero ? next : state;
    }
    sums.add(seen, product);
    if (!any_nonzero<T>(next - state)) continue;
    on.order[kept++] = static_cast<int32_t>(i);
    store(on.states + i * width, next);
    const vec<T> change = t * (Loss::variable(next, C) - a);
    for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h) {
      T* w = on.W + int64_t(rows.head_index[h]) * width;
      vec<T> step = rows.head_value[h] * change;
      if constexpr (!Sides::all_kept) step = on.sides.kept_part(rows.head_index[h], step);
      store(w, load(w) + step);
    }
  }
  BlockSums all = sums.over(on.lanes);
  all.visited = count;
  all.kept = kept;
  return all;
}

}  // namespace manyclass
