// Many binary problems on the same rows, and how they are divided into blocks: a vector of problems, a lane
// each, that are trained together.
//
//   one-vs-rest   problem c: the rows of class c against all others; a block is a vector of classes. A row
//   may
//                 be of any number of classes
//   one-vs-one    problem (a, b), a < b: the rows of class a against those of class b, all pairs of a in a
//                 row; a block is a few classes a and a few classes b, so that each of its rows takes part in
//                 as many of its problems as there are classes on the other side
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "simd/vector.hpp"

namespace manyclass {

template <class T>
struct BinaryBlock {
  static constexpr int width = Lanes<T>::count;

  bool pairs;
  std::vector<int32_t> positive, negative;  // of each lane, the classes; negative of one-vs-one only
  std::vector<int32_t> problem;             // of each lane, ascending

  int64_t many() const { return static_cast<int64_t>(problem.size()); }

  // One-vs-one: the classes whose rows take part.
  std::vector<int32_t> classes() const {
    std::vector<int32_t> out = positive;
    out.insert(out.end(), negative.begin(), negative.end());
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
    count_ = pairs ? classes * (classes - 1) / 2 : classes;
    if (count_ > std::numeric_limits<int32_t>::max()) throw std::length_error("more than 2^31 problems");
    if (pairs)
      divide_pairs(classes);
    else
      for (int64_t c = 0; c < classes; c += width) {
        BinaryBlock<T>& block = add_block();
        for (int64_t l = c; l < std::min(c + width, classes); ++l) {
          block.positive.push_back(static_cast<int32_t>(l));
          block.problem.push_back(static_cast<int32_t>(l));
        }
      }
  }

  int64_t count() const { return count_; }
  const std::vector<BinaryBlock<T>>& blocks() const { return blocks_; }

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
          for (int64_t b = std::max(left, a + 1); b < std::min(left + wide, classes); ++b) {
            block.positive.push_back(static_cast<int32_t>(a));
            block.negative.push_back(static_cast<int32_t>(b));
            const int64_t first = a * (2 * classes - a - 1) / 2;  // of the pairs of a
            block.problem.push_back(static_cast<int32_t>(first + b - a - 1));
          }
      }
  }

  BinaryBlock<T>& add_block() { return blocks_.emplace_back(BinaryBlock<T>{pairs_, {}, {}, {}}); }

  bool pairs_;
  int64_t count_;
  std::vector<BinaryBlock<T>> blocks_;
};

}  // namespace manyclass
