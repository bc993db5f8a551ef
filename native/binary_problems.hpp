// Many binary problems on the same rows, and how they are divided into blocks: a vector of problems, a lane
// each, that are trained together.
//
//   one-vs-rest   problem c: the rows of class c against all others; a block is a vector of classes
//   one-vs-one    problem (a, b), a < b: the rows of class a against those of class b, all pairs of a in a
//                 row; a block is a few classes a and a few classes b, so that each of its rows takes part in
//                 as many of its problems as there are classes on the other side
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "vector.hpp"

namespace manyclass {

template <class T>
struct BinaryBlock {
  static constexpr int width = Lanes<T>::count;

  bool pairs;
  vec<T> positive, negative;     // the classes of each lane; -1: no such lane. One-vs-rest: all others
  std::vector<int32_t> problem;  // of each lane, ascending

  int64_t many() const { return static_cast<int64_t>(problem.size()); }

  // t of the rows of class y: +1 on the positive side, -1 on the negative one, 0 where they take no part.
  vec<T> signs(int32_t y) const { return pairs ? signs<true>(y) : signs<false>(y); }
  template <bool of_pairs>
  vec<T> signs(int32_t y) const {
    const vec<T> of_row = vec<T>{} + static_cast<T>(y), zero = {}, one = zero + 1;
    const vec<T> against = of_pairs ? (negative == of_row ? -one : zero) : -one;
    return positive == of_row ? one : against;
  }

  // v where the row's class is the positive one, else 0.
  vec<T> own_lane(int32_t y, vec<T> v) const {
    return positive == vec<T>{} + static_cast<T>(y) ? v : vec<T>{};
  }

  // One-vs-one: the classes whose rows take part.
  std::vector<int32_t> classes() const {
    std::vector<int32_t> out;
    for (int64_t l = 0; l < many(); ++l) {
      out.push_back(static_cast<int32_t>(positive[l]));
      out.push_back(static_cast<int32_t>(negative[l]));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
};

template <class T>
class BinaryProblems {
 public:
  static constexpr int width = Lanes<T>::count;

  BinaryProblems(int64_t classes, bool pairs) : pairs_(pairs) {
    if (classes > int64_t(1) << 24) throw std::length_error("more than 2^24 classes");
    for (int64_t c = 0; c <= classes; ++c) first_.push_back(pairs ? c * (2 * classes - c - 1) / 2 : c);
    if (pairs)
      divide_pairs(classes);
    else
      for (int64_t c = 0; c < classes; c += width) {
        BinaryBlock<T>& block = add_block();
        for (int64_t l = c; l < std::min(c + width, classes); ++l) add_lane(block, l, -1);
      }
  }

  int64_t count() const { return first_.back(); }
  const std::vector<BinaryBlock<T>>& blocks() const { return blocks_; }
  // The rows of class c are on the positive side of the problems [first(c), first(c + 1)).
  int64_t first(int64_t c) const { return first_[c]; }

 private:
  // The triangle of pairs in rectangles. In the order of blocks, and of lanes within them, the problems of
  // each class ascend.
  void divide_pairs(int64_t classes) {
    constexpr int64_t high = width == 16 ? 4 : 2, wide = width / high;
    for (int64_t top = 0; top < classes; top += high)
      for (int64_t left = top / wide * wide; left < classes; left += wide) {
        if (std::min(left + wide, classes) - 1 <= top) continue;  // no a < b here
        BinaryBlock<T>& block = add_block();
        for (int64_t a = top; a < std::min(top + high, classes); ++a)
          for (int64_t b = std::max(left, a + 1); b < std::min(left + wide, classes); ++b)
            add_lane(block, a, b);
      }
  }

  BinaryBlock<T>& add_block() {
    const vec<T> none = vec<T>{} - 1;
    return blocks_.emplace_back(BinaryBlock<T>{pairs_, none, none, {}});
  }

  void add_lane(BinaryBlock<T>& block, int64_t positive, int64_t negative) {
    const int64_t lane = block.many();
    block.positive[lane] = static_cast<T>(positive);
    block.negative[lane] = static_cast<T>(negative);
    block.problem.push_back(static_cast<int32_t>(first_[positive] + (pairs_ ? negative - positive - 1 : 0)));
  }

  bool pairs_;
  std::vector<int64_t> first_;
  std::vector<BinaryBlock<T>> blocks_;
};

}  // namespace manyclass
