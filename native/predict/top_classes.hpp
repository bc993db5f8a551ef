// The k best classes of a row so far: a heap in the caller's arrays, with the worst of them on top.
#pragma once
#include <cstdint>
#include <limits>

namespace manyclass {

// A larger score is better; ties go to the lower class.
template <class T>
inline bool better(T score, int32_t code, T than_score, int32_t than_code) {
  return score > than_score || (score == than_score && code < than_code);
}

template <class T>
class TopClasses {
 public:
  TopClasses(int64_t k, int32_t* codes, T* scores, int64_t found = 0)
      : k_(k), found_(found), codes_(codes), scores_(scores) {}

  int64_t k() const { return k_; }
  bool full() const { return found_ == k_; }
  // The score to beat: minus infinity while there is room.
  T worst() const { return full() ? scores_[0] : -std::numeric_limits<T>::infinity(); }
  bool takes(T score, int32_t code) const { return !full() || better(score, code, scores_[0], codes_[0]); }

  void offer(T score, int32_t code) {
    if (!full()) {
      int64_t at = found_++;
      for (; at > 0 && better(scores_[(at - 1) / 2], codes_[(at - 1) / 2], score, code); at = (at - 1) / 2)
        put(at, scores_[(at - 1) / 2], codes_[(at - 1) / 2]);
      put(at, score, code);
    } else if (better(score, code, scores_[0], codes_[0])) {
      sink(score, code, k_);
    }
  }

  // Sorts the classes, best first. Nothing can be offered afterwards.
  void sort() {
    for (int64_t last = found_ - 1; last > 0; --last) {
      const T score = scores_[last];
      const int32_t code = codes_[last];
      put(last, scores_[0], codes_[0]);
      sink(score, code, last);
    }
  }

 private:
  void put(int64_t at, T score, int32_t code) {
    scores_[at] = score;
    codes_[at] = code;
  }
  // Replaces the worst class of a heap of this size.
  void sink(T score, int32_t code, int64_t size) {
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && better(scores_[child], codes_[child], scores_[child + 1], codes_[child + 1]))
        ++child;
      if (!better(score, code, scores_[child], codes_[child])) break;
      put(at, scores_[child], codes_[child]);
    }
    put(at, score, code);
  }

  int64_t k_, found_;
  int32_t* codes_;
  T* scores_;
};

}  // namespace manyclass
