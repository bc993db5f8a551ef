// The scores of one row from sparse weights. Only labels with some non-zero weight are looked at (touched),
// unless there are so many of them that a pass over all labels is cheaper.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class A>
class TouchedScores {
 public:
  explicit TouchedScores(int64_t K) : s_(padded<A>(K)), seen_(K, 0), K_(K) {}

  // Starts a row that reads this many weights; sets all scores to 0.
  void begin(int64_t reads) {
    if (all_)
      std::fill(s_.data(), s_.data() + K_, A(0));
    else
      for (int32_t c : touched_) {
        s_[c] = 0;
        seen_[c] = 0;
      }
    touched_.clear();
    all_ = 4 * reads >= K_;
  }

  A* data() { return s_.data(); }
  A operator[](int32_t c) const { return s_[c]; }
  void touch(int32_t c) {
    if (all_ || seen_[c]) return;
    seen_[c] = 1;
    touched_.push_back(c);
  }
  void set(int32_t c, A value) {
    touch(c);
    s_[c] = value;
  }
  // The number of labels whose score is 0 because no weight touches them.
  int64_t untouched() const { return all_ ? 0 : K_ - std::ssize(touched_); }

  // The largest score of the touched labels.
  A largest() const {
    A top = -std::numeric_limits<A>::infinity();
    if (all_) {
#pragma omp simd reduction(max : top)
      for (int64_t c = 0; c < K_; ++c) top = s_[c] > top ? s_[c] : top;
    } else {
      for (int32_t c : touched_) top = std::max(top, s_[c]);
    }
    return top;
  }

  // Finds the `most` labels with the largest scores above `floor`, in no particular order. Ties go to the
  // labels that come first from `start` on, cyclically.
  void collect(A floor, int64_t most, int32_t start, std::vector<int32_t>& found) const {
    found.clear();
    const auto rank = [&](int32_t c) { return c >= start ? c - start : c - start + K_; };
    const auto keep_best = [&] {
      if (std::ssize(found) <= most) return;
      std::nth_element(found.begin(), found.begin() + (most - 1), found.end(), [&](int32_t a, int32_t b) {
        return s_[a] > s_[b] || (s_[a] == s_[b] && rank(a) < rank(b));
      });
      found.resize(most);
    };
    if (!all_) {
      for (int32_t c : touched_)
        if (s_[c] > floor) found.push_back(c);
      int64_t left = floor < 0 ? std::min(most, untouched()) : 0;
      for (int64_t c = start; left > 0; c = c + 1 < K_ ? c + 1 : 0) {
        if (seen_[c]) continue;
        found.push_back(static_cast<int32_t>(c));
        --left;
      }
      keep_best();
      return;
    }
    const auto look = [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        if (!(s_[c] > floor)) continue;
        found.push_back(static_cast<int32_t>(c));
        if (std::ssize(found) < 2 * most) continue;
        keep_best();
        floor = s_[found.back()];  // a later label has to be better than the worst of these
      }
    };
    look(start, K_);
    look(0, start);
    keep_best();
  }

 private:
  Buffer<A> s_;
  std::vector<uint8_t> seen_;
  std::vector<int32_t> touched_;
  const int64_t K_;
  bool all_ = false;
};

}  // namespace manyclass
