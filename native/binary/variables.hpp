// The dual variables of binary problems: by block for training, by row for models and warm starts.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "binary/data.hpp"
#include "binary/loss.hpp"
#include "binary/problems.hpp"
#include "rows/array_checks.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// The non-zero variables of one block: for each row that has any, its lanes and their states
// (binary/loss.hpp), which resolve the variables more finely than T could.
template <class T>
struct BlockVariables {
  static_assert(Lanes<T>::count <= 16);
  std::vector<int32_t> row;
  std::vector<uint16_t> lanes;
  std::vector<T> values;

  // Of these rows, whose states are rows x lanes: the lanes that chosen(state, row) marks.
  static BlockVariables packed(const std::vector<int32_t>& rows, const T* states, auto chosen) {
    const auto for_each_row = [&](auto f) {
      for (int32_t i : rows) {
        const vec<T> state = load(states + int64_t(i) * Lanes<T>::count);
        if (const uint32_t marked = chosen(state, i)) f(i, marked, state);
      }
    };
    size_t with_any = 0, entries = 0;
    for_each_row([&](int32_t, uint32_t marked, const vec<T>&) {
      ++with_any;
      entries += __builtin_popcount(marked);
    });
    BlockVariables out;
    out.row.reserve(with_any);
    out.lanes.reserve(with_any);
    out.values.reserve(entries);
    for_each_row([&](int32_t i, uint32_t marked, const vec<T>& state) {
      out.row.push_back(i);
      out.lanes.push_back(static_cast<uint16_t>(marked));
      for (; marked != 0; marked &= marked - 1) out.values.push_back(state[__builtin_ctz(marked)]);
    });
    return out;
  }

  // Appends the variables of further rows, whose numbers grow by `shift`.
  void append(const BlockVariables& other, int64_t shift = 0) {
    for (int32_t i : other.row) row.push_back(static_cast<int32_t>(i + shift));
    lanes.insert(lanes.end(), other.lanes.begin(), other.lanes.end());
    values.insert(values.end(), other.values.begin(), other.values.end());
  }

  // f(row, lane, value)
  void for_each(auto f) const {
    const T* value = values.data();
    for (size_t r = 0; r < row.size(); ++r)
      for (uint32_t left = lanes[r]; left != 0; left &= left - 1) f(row[r], __builtin_ctz(left), *value++);
  }

  // value = f(row, value)
  void replace(auto f) {
    T* value = values.data();
    for (size_t r = 0; r < row.size(); ++r)
      for (uint32_t left = lanes[r]; left != 0; left &= left - 1, ++value) *value = f(row[r], *value);
  }

  int64_t bytes() const {
    return static_cast<int64_t>(row.capacity() * sizeof(int32_t) + lanes.capacity() * sizeof(uint16_t) +
                                values.capacity() * sizeof(T));
  }
};

// The variables of several blocks, one after the other, to be sent or stored.
template <class T>
struct PackedVariables : BlockVariables<T> {
  std::vector<int64_t> counts;  // the number of rows of each block

  PackedVariables() = default;
  PackedVariables(const std::vector<BlockVariables<T>>& all, const std::vector<int64_t>& blocks) {
    size_t rows = 0, entries = 0;
    for (int64_t b : blocks) {
      rows += all[b].row.size();
      entries += all[b].values.size();
    }
    this->row.reserve(rows);  // growing would take up to twice the memory
    this->lanes.reserve(rows);
    this->values.reserve(entries);
    for (int64_t b : blocks) {
      counts.push_back(std::ssize(all[b].row));
      this->append(all[b]);
    }
  }
};

// The arrays of a PackedVariables from outside: `rows` rows and `entries` values in all.
template <class T>
struct PackedView {
  const int64_t* counts;
  const int32_t* row;
  const uint16_t* lanes;
  int64_t rows;
  const T* values;
  int64_t entries;
};

// The inverse, for n rows. block(k): the number of the k-th of `blocks` blocks, and a mask of its lanes.
template <class T, class BlockOf>
void unpack_variables(int64_t n, int64_t blocks, BlockOf block, PackedView<T> in,
                      std::vector<BlockVariables<T>>& all) {
  const auto differ = [] { throw std::invalid_argument("the arrays have different lengths"); };
  for (int64_t k = 0; k < blocks; ++k) {
    const auto [number, real] = block(k);
    const int64_t count = in.counts[k];
    if (count < 0 || count > in.rows) differ();
    int64_t own = 0;
    for (int64_t r = 0; r < count; ++r) {
      if (in.row[r] < 0 || in.row[r] >= n || (in.lanes[r] & ~real) != 0)
        throw std::invalid_argument("variables of a row or a problem that does not exist");
      if (r > 0 && in.row[r] <= in.row[r - 1])
        throw std::invalid_argument("variables whose rows do not ascend");
      own += __builtin_popcount(in.lanes[r]);
    }
    if (own > in.entries) differ();
    all[number] = {{in.row, in.row + count}, {in.lanes, in.lanes + count}, {in.values, in.values + own}};
    in.row += count;
    in.lanes += count;
    in.rows -= count;
    in.values += own;
    in.entries -= own;
  }
  if (in.rows != 0 || in.entries != 0) differ();
}

// Checks that states (binary/loss.hpp) are within the bounds that training keeps. C(i): the penalty of row i.
template <Binary loss, class T, class Penalty>
void check_states(const char* name, const BlockVariables<T>& states, Penalty C) {
  using Loss = BinaryLoss<loss>;
  constexpr T most = std::numeric_limits<T>::max();
  states.for_each([&](int32_t i, int, T state) {
    const T low = Loss::stores_variables ? T(0) : -most;
    const T high = Loss::stores_variables && Loss::bounded ? with_rounding(C(i)) : most;
    if (!(state >= low && state <= high))
      reject(name, "that of row " + std::to_string(i) + " is " + in_digits(state) + ", outside " +
                       in_digits(low) + " to " + in_digits(high));
  });
}

// The variables of all blocks by row; also the coefficients t_i a_i of the weights, in float64, as
// certificates compute them. Keeps a reference to `data`.
template <class T>
struct VariablesByRow {
  std::vector<int64_t> ptr;
  std::vector<int32_t> problem;  // ascending within a row
  std::vector<T> state;          // if that is the variable itself: with the sign of its coefficient
  std::vector<bool> positive;    // otherwise: the signs
  const BinaryData<T>& data;
  const Binary loss;
  const bool stored = with_loss(loss, []<Binary loss>() { return BinaryLoss<loss>::stores_variables; });

  // release: whether to free the variables of each block once they have been copied.
  VariablesByRow(std::vector<BlockVariables<T>>& blocks, const BinaryData<T>& data, Binary loss, bool release)
      : ptr(data.rows.n + 1, 0), data(data), loss(loss) {
    for (const auto& block : blocks)
      for (size_t r = 0; r < block.row.size(); ++r)
        ptr[block.row[r] + 1] += __builtin_popcount(block.lanes[r]);
    for (size_t i = 1; i < ptr.size(); ++i) ptr[i] += ptr[i - 1];
    problem.resize(ptr.back());
    state.resize(ptr.back());
    if (!stored) positive.resize(ptr.back());
    std::vector<int64_t> next(ptr.begin(), ptr.end() - 1);
    RowSides sides = data.no_sides();
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto& number = data.problems.blocks()[b].problem;
      data.add_sides(b, sides);
      blocks[b].for_each([&](int32_t i, int lane, T value) {
        const bool plus = sides.positive[i] >> lane & 1;
        problem[next[i]] = number[lane];
        if (!stored) positive[next[i]] = plus;
        state[next[i]++] = stored && !plus ? -value : value;
      });
      data.clear_sides(b, sides);
      if (release) blocks[b] = {};
    }
  }

  // The variable of the e-th state, which belongs to row i.
  double variable(int64_t i, int64_t e) const {
    if (stored) return std::abs(state[e]);
    return with_loss(
        loss, [&]<Binary loss>() { return BinaryLoss<loss>::variable(double(state[e]), double(data.C[i])); });
  }
  std::vector<T> variables() const {
    std::vector<T> all(state.size());
    for (size_t i = 0; i + 1 < ptr.size(); ++i)
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) all[e] = static_cast<T>(variable(i, e));
    return all;
  }

  static constexpr bool centred() { return false; }
  bool reduced() const { return !data.kept.all(); }
  std::span<const int32_t> labels(int64_t i) const { return data.labels(i); }
  int64_t size(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  void for_each(int64_t i, auto f) const {
    if (stored)
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) f(problem[e], double(state[e]));
    else
      for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e)
        f(problem[e], positive[e] ? variable(i, e) : -variable(i, e));
  }
};

// The inverse: sorts variables given by row into blocks. The values of the blocks are variables, not states.
template <class T>
void divide_variables(const BinaryProblems<T>& problems, int64_t n, const int64_t* ptr,
                      const int32_t* problem, const T* values, std::vector<BlockVariables<T>>& blocks) {
  struct Place {
    int32_t block;
    uint16_t lane;
  };
  std::vector<Place> place(problems.count());
  for (size_t b = 0; b < problems.blocks().size(); ++b)
    for (int64_t l = 0; l < problems.blocks()[b].many(); ++l)
      place[problems.blocks()[b].problem[l]] = {static_cast<int32_t>(b), static_cast<uint16_t>(1u << l)};
  for (auto& block : blocks) block = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t e = ptr[i]; e < ptr[i + 1]; ++e) {
      const Place at = place[problem[e]];
      BlockVariables<T>& block = blocks[at.block];
      if (block.row.empty() || block.row.back() != i) {
        block.row.push_back(static_cast<int32_t>(i));
        block.lanes.push_back(0);
      }
      block.lanes.back() |= at.lane;
      block.values.push_back(values[e]);
    }
}

}  // namespace manyclass
