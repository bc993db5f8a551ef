// Scores of one row through sparse weights: only labels that some weight touches are ever looked at, unless
// they are so many that it is cheaper to take all of them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "vector.hpp"

namespace manyclass {

template <class A>
class TouchedScores {
 public:
  explicit TouchedScores(int64_t K) : s_(padded<A>(K)), seen_(K, 0), K_(K) {}

  // Of a row that reads this many weights. All scores are 0.
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

  bool all() const { return all_; }
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
  bool touched(int32_t c) const { return all_ || seen_[c]; }
  // Labels whose score is 0 because no weight touches them.
  int64_t untouched() const { return all_ ? 0 : K_ - static_cast<int64_t>(touched_.size()); }

  // f(label) for those that are touched.
  template <class F>
  void for_each(F f) const {
    if (all_)
      for (int32_t c = 0; c < K_; ++c) f(c);
    else
      for (int32_t c : touched_) f(c);
  }

 private:
  Buffer<A> s_;
  std::vector<uint8_t> seen_;
  std::vector<int32_t> touched_;
  const int64_t K_;
  bool all_ = false;
};

}  // namespace manyclass
