// Features with weights for many classes, such as common words, make up nearly all the work of scoring,
// although their weights are small. They get a sketch of one byte per class:
//
//   v_jc = step_j q_jc + e,     |e| <= step_j / 2,     q_jc an integer from -127 to 127.
//
// Sums over the sketches show which classes can be among the best; only for these are the weights themselves
// read. A sketch has no indices, so a row's frequent features are read sequentially.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "predict/weights.hpp"
#include "simd/memory.hpp"

namespace manyclass {

// Classes are processed in blocks of this size, a multiple of the vector length of every type.
inline constexpr int64_t sketch_block = 64;
// With fewer classes, reading the weights themselves costs next to nothing.
inline constexpr int64_t sketched_classes = 512;

class FrequentFeatures {
 public:
  FrequentFeatures() = default;

  template <class T, class V, class I>
  explicit FrequentFeatures(const SparseWeights<T, V, I>& weights) {
    if (weights.classes < sketched_classes) return;
    // With that many weights, a sketch is hardly larger than the weights in float32.
    many_ = (weights.classes + 7) / 8;
    blocks_ = (weights.classes + sketch_block - 1) / sketch_block;
    for (int64_t j = 0; j < weights.features; ++j)
      if (weights.count(j) >= many_) features_.push_back(j);
    if (features_.empty()) return;
    sketch_.reset(count() * blocks_ * sketch_block);
    first_.resize(count() * (blocks_ + 1));
    step_.resize(count());
    for (int64_t h = 0; h < count(); ++h) draw(weights, h);
  }

  int64_t blocks() const { return blocks_; }
  int64_t count() const { return std::ssize(features_); }
  int64_t bytes() const { return sketch_.bytes() + static_cast<int64_t>(8 * first_.size()); }
  // The number of a feature among the frequent ones, or -1. weights: the number of its weights.
  int64_t number(int64_t feature, int64_t weights) const {
    if (features_.empty() || weights < many_) return -1;
    return std::lower_bound(features_.begin(), features_.end(), feature) - features_.begin();
  }
  double step(int64_t h) const { return step_[h]; }
  const int8_t* sketch(int64_t h) const { return sketch_.data() + h * blocks_ * sketch_block; }
  // The weight of class c for frequent feature h.
  template <class T, class V, class I>
  T find(const SparseWeights<T, V, I>& weights, int64_t h, int32_t c) const {
    const int64_t* first = first_.data() + h * (blocks_ + 1) + c / sketch_block;
    return weights.find(first[0], first[1], c);
  }

 private:
  template <class T, class V, class I>
  void draw(const SparseWeights<T, V, I>& weights, int64_t h) {
    const int64_t j = features_[h];
    const double largest = static_cast<double>(weights.largest(weights.ptr[j], weights.ptr[j + 1]));
    step_[h] = largest / 127;
    const double per_step = largest > 0 ? 127 / largest : 0;
    int8_t* q = sketch_.data() + h * blocks_ * sketch_block;
    int64_t* first = first_.data() + h * (blocks_ + 1);
    int64_t b = 0;
    for (int64_t e = weights.ptr[j]; e < weights.ptr[j + 1]; ++e) {
      const int32_t c = weights.index[e];
      q[c] = static_cast<int8_t>(std::lrint(static_cast<double>(weights.value[e]) * per_step));
      while (b <= c / sketch_block) first[b++] = e;
    }
    while (b <= blocks_) first[b++] = weights.ptr[j + 1];
  }

  int64_t many_ = 0, blocks_ = 0;
  std::vector<int64_t> features_, first_;  // first_: by feature and block, where the weights begin
  std::vector<double> step_;
  Buffer<int8_t> sketch_;  // by feature, padded to whole blocks
};

}  // namespace manyclass
