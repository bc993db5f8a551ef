// Many binary problems on the same rows, divided into blocks. A block is a vector of problems, one per lane,
// that are trained together.
//
//   one-vs-rest   Problem c: the rows of class c against all others. A block is a vector of classes. Rows may
//                 have any number of classes.
//   one-vs-one    Problem (a, b), a < b: the rows of class a against those of class b, numbered with all
//                 pairs of the same a together. A block is a few classes a times a few classes b, so that
//                 each row of class a takes part in as many of its problems as there are classes b.
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
  bool pairs;
  std::vector<int32_t> positive, negative;  // the classes of each lane; `negative` for one-vs-one only
  std::vector<int32_t> problem;             // the problem of each lane, ascending

  int64_t many() const { return std::ssize(problem); }

  // The classes whose rows take part in the block, for one-vs-one.
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
  // Divides the triangle of pairs into rectangles. In the order of blocks, and of lanes within them, the
  // problems of each class ascend.
  void divide_pairs(int64_t classes) {
    constexpr int64_t high = width == 16 ? 4 : 2, wide = width / high;
    for (int64_t top = 0; top < classes; top += high)
      for (int64_t left = top / wide * wide; left < classes; left += wide) {
        if (std::min(left + wide, classes) - 1 <= top) continue;  // contains no a < b
        BinaryBlock<T>& block = add_block();
        for (int64_t a = top; a < std::min(top + high, classes); ++a)
          for (int64_t b = std::max(left, a + 1); b < std::min(left + wide, classes); ++b) {
            block.positive.push_back(static_cast<int32_t>(a));
            block.negative.push_back(static_cast<int32_t>(b));
            const int64_t first = a * (2 * classes - a - 1) / 2;  // pair (a, a + 1)
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
