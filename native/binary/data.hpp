// The data that all blocks of binary problems share and only read: rows, labels, penalties, problems, sides.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "binary/problems.hpp"
#include "dual/kept_weights.hpp"
#include "rows/layout.hpp"
#include "rows/row_labels.hpp"
#include "simd/lane_masks.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The sides of rows in the problems of a block, one bit per lane. In one-vs-rest, rows that are not on the
// positive side are on the negative one. In one-vs-one, rows on neither side take no part.
struct RowSides {
  std::vector<uint16_t> positive, negative;

  template <class T>
  vec<T> signs(int64_t i) const {
    return negative.empty() ? signs_of_lanes<T>(positive[i])
                            : (signs_of_lanes<T>(positive[i]) - signs_of_lanes<T>(negative[i])) / 2;
  }
};

template <class T>
struct BinaryData {
  BinaryData(Layout<T> layout, RowLabels row_labels, std::vector<T> penalties, int64_t classes, bool pairs,
             bool reduced)
      : rows(std::move(layout)),
        labels(std::move(row_labels)),
        C(std::move(penalties)),
        problems(classes, pairs),
        pairs(pairs) {
    if (rows.tails() != 0) throw std::logic_error("this solver needs every shared feature in the head");
    sort_by_class(classes);
    if (reduced) kept = KeptWeights(rows, labels, classes);
    if (pairs) empty_C_of.assign(classes, 0.0);
    for (int64_t i = 0; i < rows.n; ++i) {
      if (rows.norm[i] != 0) {
        filled.push_back(static_cast<int32_t>(i));
        continue;
      }
      empty_C += C[i];
      if (pairs) empty_C_of[labels(i)[0]] += C[i];
    }
  }

  std::span<const int32_t> members(int64_t c) const {
    return {member.data() + member_ptr[c], static_cast<size_t>(member_ptr[c + 1] - member_ptr[c])};
  }

  // No row is on any side yet; `add_sides` fills them in.
  RowSides no_sides() const {
    return {std::vector<uint16_t>(rows.n, 0), std::vector<uint16_t>(pairs ? rows.n : 0, 0)};
  }
  void add_sides(int64_t b, RowSides& sides) const {
    for_each_side(b, sides, [](uint16_t& lanes, int64_t l) { lanes |= static_cast<uint16_t>(1u << l); });
  }
  void clear_sides(int64_t b, RowSides& sides) const {
    for_each_side(b, sides, [](uint16_t& lanes, int64_t) { lanes = 0; });
  }

  Layout<T> rows;
  RowLabels labels;
  std::vector<T> C;
  BinaryProblems<T> problems;
  bool pairs;
  KeptWeights kept;
  double empty_C = 0;              // sum of C_i over rows without features
  std::vector<double> empty_C_of;  // one-vs-one: the same by class
  std::vector<int32_t> filled;     // the rows that have features

 private:
  void for_each_side(int64_t b, RowSides& sides, auto f) const {
    const BinaryBlock<T>& block = problems.blocks()[b];
    for (int64_t l = 0; l < block.many(); ++l) {
      for (int32_t i : members(block.positive[l])) f(sides.positive[i], l);
      if (!pairs) continue;
      for (int32_t i : members(block.negative[l])) f(sides.negative[i], l);
    }
  }

  void sort_by_class(int64_t classes) {
    member_ptr.assign(classes + 1, 0);
    for (int32_t c : labels.labels) ++member_ptr[c + 1];
    for (int64_t c = 0; c < classes; ++c) member_ptr[c + 1] += member_ptr[c];
    member.resize(labels.labels.size());
    std::vector<int64_t> next(member_ptr.begin(), member_ptr.end() - 1);
    for (int64_t i = 0; i < rows.n; ++i) {
      if (pairs && labels(i).size() != 1) throw std::invalid_argument("one-vs-one needs one label per row");
      for (int32_t c : labels(i)) member[next[c]++] = static_cast<int32_t>(i);
    }
  }

  std::vector<int64_t> member_ptr;  // rows by class
  std::vector<int32_t> member;
};

}  // namespace manyclass
