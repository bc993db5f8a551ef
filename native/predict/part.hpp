// A part of a model: consecutive classes, which score a row and offer their best for it. Here dense weights;
// predict/sparse_part.hpp has sparse ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "predict/top_classes.hpp"
#include "predict/weights.hpp"
#include "simd/memory.hpp"

namespace manyclass {

// A row in the type of the scores, without zeros, and a thread's scratch memory for predicting it.
template <class T>
struct Workspace {
  std::vector<int64_t> feature;
  std::vector<T> value;
  std::vector<int64_t> number;  // the number among the frequent features, or -1
  Buffer<T> sums;               // all 0 between rows, padded to whole blocks
  struct Sketched {
    const int8_t* sketch;
    T x;
  };
  std::vector<Sketched> sketched;
  struct Candidate {
    T estimate;
    int32_t code;
  };
  std::vector<Candidate> candidates;
  std::vector<T> best;     // a heap of the best estimates, the worst of them in front
  std::vector<T> largest;  // the largest estimate of each block

  void read(const auto& X, int64_t i) {
    feature.clear();
    value.clear();
    for (int64_t e = X.row_begin(i); e < X.row_end(i); ++e)
      if (X.value[e] != 0) {
        feature.push_back(X.index[e]);
        value.push_back(static_cast<T>(X.value[e]));
      }
  }
  int64_t size() const { return std::ssize(feature); }
};

template <class T>
class Part {
 public:
  Part(int64_t first, int64_t classes, Finish<T> finish)
      : first_(first), classes_(classes), finish_(finish) {}
  virtual ~Part() = default;

  int64_t first() const { return first_; }
  int64_t classes() const { return classes_; }

  // Statistics of the sketches.
  virtual int64_t frequent_features() const { return 0; }
  virtual int64_t sketch_bytes() const { return 0; }

  // Adds the sums of this part's classes to s, which is all 0.
  virtual void add_row(const Workspace<T>& row, T* s) const = 0;
  // Offers all classes that may be among the best.
  virtual void find_best(Workspace<T>& row, TopClasses<T>& top) const = 0;

  void score(const Workspace<T>& row, T* out) const {
    std::fill(out, out + classes_, T(0));
    add_row(row, out);
    for (int64_t c = 0; c < classes_; ++c) out[c] = finish_(c, out[c]);
  }

 protected:
  void offer(TopClasses<T>& top, T score, int64_t c) const {
    top.offer(score, static_cast<int32_t>(first_ + c));
  }

  // Offers all classes that may be among the best, given all sums, and clears the sums.
  void offer_all(T* s, TopClasses<T>& top) const {
    int64_t c = 0;
    for (; c < classes_ && !top.full(); ++c) {
      offer(top, finish_(c, s[c]), c);
      s[c] = 0;
    }
    constexpr int64_t width = 64;
    for (; c < classes_; c += width) {
      const int64_t end = std::min(classes_, c + width);
      const T worst = top.worst();
      T scores[width];
      int above = 0;
      // Classes come in ascending order, so one that ties with the worst does not replace it.
      for (int64_t l = c; l < end; ++l) {
        scores[l - c] = finish_(l, s[l]);
        above += scores[l - c] > worst;
        s[l] = 0;
      }
      for (int64_t l = c; above && l < end; ++l)
        if (scores[l - c] > top.worst()) offer(top, scores[l - c], l);
    }
  }

  const int64_t first_, classes_;
  const Finish<T> finish_;
};

template <class T>
class DensePart : public Part<T> {
 public:
  DensePart(int64_t first, DenseWeights<T> weights, Finish<T> finish)
      : Part<T>(first, weights.classes, finish), weights_(weights) {}

  void add_row(const Workspace<T>& row, T* s) const override {
    // The sums of a tile stay in the L1 cache while the weights stream past.
    constexpr int64_t tile = 1024;
    for (int64_t c = 0; c < weights_.classes; c += tile)
      for (int64_t e = 0; e < row.size(); ++e)
        weights_.add(row.feature[e], row.value[e], s, c, std::min(weights_.classes, c + tile));
  }
  void find_best(Workspace<T>& row, TopClasses<T>& top) const override {
    add_row(row, row.sums.data());
    this->offer_all(row.sums.data(), top);
  }

 private:
  const DenseWeights<T> weights_;
};

}  // namespace manyclass
