// A part of a model with sparse weights: the work for a row is proportional to the number of non-zero weights
// of its features, or less.
//
// If a row touches few classes, all others have their intercept as score, and the best of those are known
// beforehand. For rows with frequent features, see predict/frequent_features.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "predict/frequent_features.hpp"
#include "predict/part.hpp"
#include "predict/top_classes.hpp"
#include "predict/weights.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

template <class T, class V, class I>
class SparsePart : public Part<T> {
  using Base = Part<T>;

 public:
  SparsePart(int64_t first, SparseWeights<T, V, I> weights, Finish<T> finish)
      : Base(first, weights.classes, finish),
        weights_(weights),
        frequent_(weights),
        by_intercept_(weights.classes) {
    for (int64_t c = 0; c < weights.classes; ++c) {
      by_intercept_[c] = static_cast<int32_t>(c);
      if (std::isfinite(finish.intercept[c]))
        largest_intercept_ = std::max(largest_intercept_, std::abs(double(finish.intercept[c])));
      if (finish.scale) largest_scale_ = std::max(largest_scale_, std::abs(double(finish.scale[c])));
    }
    if (!finish.scale) largest_scale_ = 1;
    std::sort(by_intercept_.begin(), by_intercept_.end(),
              [&](int32_t a, int32_t b) { return better(finish.intercept[a], a, finish.intercept[b], b); });
    if (frequent_.count()) {
      largest_weight_ = static_cast<double>(weights.largest(0, weights.ptr[weights.features]));
      pad(finish);
    }
  }

  int64_t frequent_features() const override { return frequent_.count(); }
  int64_t sketch_bytes() const override { return frequent_.bytes(); }

  void add_row(const Workspace<T>& row, T* s) const override {
    for (int64_t e = 0; e < row.size(); ++e) weights_.add(row.feature[e], row.value[e], s);
  }

  void find_best(Workspace<T>& row, TopClasses<T>& top) const override {
    int64_t touched = 0;
    bool sketched = false;
    row.number.resize(row.size());
    for (int64_t e = 0; e < row.size(); ++e) {
      const int64_t j = row.feature[e], count = weights_.count(j);
      row.number[e] = frequent_.number(j, count);
      sketched = sketched || row.number[e] >= 0;
      touched += count;
      weights_.prefetch(j);
    }
    if (sketched && 2 * top.k() <= most_candidates && find_by_sketch(row, top)) return;
    T* s = row.sums.data();
    add_row(row, s);
    if (touched * 16 < this->classes_)
      offer_touched(row, s, top);
    else
      this->offer_all(s, top);
  }

 private:
  // Larger sums may overflow.
  static constexpr double out_of_range = std::numeric_limits<T>::max() / 4;
  // Few, because an exact score takes a search for each of its weights.
  static constexpr int64_t most_candidates = 64;

  void pad(const Finish<T>& finish) {
    const int64_t whole = (this->classes_ + sketch_block - 1) / sketch_block * sketch_block;
    intercept_.reset(whole);
    std::fill(std::copy(finish.intercept, finish.intercept + this->classes_, intercept_.data()),
              intercept_.data() + whole, -std::numeric_limits<T>::infinity());
    if (!finish.scale) return;
    scale_.reset(whole);
    std::copy(finish.scale, finish.scale + this->classes_, scale_.data());
  }

  // A class whose sum is 0 has the same score as one that was not touched.
  void offer_touched(const Workspace<T>& row, T* s, TopClasses<T>& top) const {
    for (int32_t c : by_intercept_) {
      if (s[c] != 0) continue;
      const T score = this->finish_(c, s[c]);
      if (!top.takes(score, static_cast<int32_t>(this->first_ + c))) break;
      this->offer(top, score, c);
    }
    for (int64_t j : row.feature)
      for (int64_t e = weights_.ptr[j]; e < weights_.ptr[j + 1]; ++e) {
        const int32_t c = weights_.index[e];
        if (s[c] == 0) continue;
        const T score = this->finish_(c, s[c]);
        s[c] = 0;  // so that it is not offered again
        if (!top.full() || score >= top.worst()) this->offer(top, score, c);
      }
  }

  // Estimates differ from scores by at most `error`. So the k-th best score is at least the k-th best
  // estimate minus `error`, and a class whose estimate is lower than that estimate by more than 2 `error` is
  // not among the best. Returns false, and offers nothing, if too many classes remain.
  bool find_by_sketch(Workspace<T>& row, TopClasses<T>& top) const {
    const double error = add_rare(row);
    row.candidates.clear();
    if (error < out_of_range) gather_candidates(row, top, static_cast<T>(2 * error));
    std::fill(row.sums.data(), row.sums.data() + this->classes_, T(0));
    if (error >= out_of_range || std::ssize(row.candidates) > most_candidates) return false;
    for (const auto& candidate : row.candidates)
      this->offer(top, exact_score(row, candidate.code), candidate.code);
    return true;
  }

  // Adds the features that are not frequent to the sums, and lists the others. Returns a bound on the error
  // of estimates: from the sketches, from a different order of summation, and from underflow of products.
  double add_rare(Workspace<T>& row) const {
    double of_sketches = 0, size = 0;
    row.sketched.clear();
    for (int64_t e = 0; e < row.size(); ++e) {
      const int64_t j = row.feature[e];
      const T x = row.value[e];
      const int64_t h = row.number[e];
      if (h < 0) {
        weights_.add(j, x, row.sums.data());
        size += std::abs(double(x)) * largest_weight_;
        continue;
      }
      const double step = frequent_.step(h);
      row.sketched.push_back({frequent_.sketch(h), static_cast<T>(x * step)});
      of_sketches += std::abs(double(x)) * step / 2;
      size += std::abs(double(x)) * step * 127;
    }
    // An upper bound of all sums.
    const double most = largest_scale_ * size + largest_intercept_;
    if (!(most < out_of_range)) return out_of_range;
    const double terms = double(row.size() + 8);
    const double rounding = 4 * terms * std::numeric_limits<T>::epsilon() * most;
    const double too_small = 256 * terms * std::numeric_limits<T>::denorm_min() * (1 + largest_scale_);
    return 1.001 * largest_scale_ * of_sketches + rounding + too_small;
  }

  // Collects the classes that may be among the best, from the blocks whose largest estimate allows any.
  void gather_candidates(Workspace<T>& row, const TopClasses<T>& top, T margin) const {
    const T least = least_of_best(row, top);
    T cut = least - margin;
    row.best.clear();
    for (int64_t b = 0; b < frequent_.blocks(); ++b) {
      if (row.largest[b] < cut) continue;
      const int64_t c = b * sketch_block, width = std::min(sketch_block, this->classes_ - c);
      alignas(64) T estimates[sketch_block];
      estimate_block(row, c, [&](int64_t l, vec<T> v) { store(estimates + l, v); });
      for (int64_t l = 0; l < width; ++l)
        if (estimates[l] >= cut) {
          row.candidates.push_back({estimates[l], static_cast<int32_t>(c + l)});
          keep_best(row.best, estimates[l], top.k());
          if (std::ssize(row.best) == top.k()) cut = std::max(least, row.best.front()) - margin;
        }
    }
    std::erase_if(row.candidates, [&](const auto& candidate) { return candidate.estimate < cut; });
  }

  // A lower bound of the k-th best estimate: the k-th largest of the blocks' largest estimates.
  T least_of_best(Workspace<T>& row, const TopClasses<T>& top) const {
    row.best.clear();
    row.largest.resize(frequent_.blocks());
    for (int64_t b = 0; b < frequent_.blocks(); ++b) {
      vec<T> most = vec<T>{} - std::numeric_limits<T>::infinity();
      estimate_block(row, b * sketch_block, [&](int64_t, vec<T> v) { most = larger<T>(most, v); });
      row.largest[b] = largest_lane<T>(most);
    }
    for (int64_t b = 0; b < frequent_.blocks(); ++b) keep_best(row.best, row.largest[b], top.k());
    const bool enough = std::ssize(row.best) == top.k();
    return std::max(top.worst(), enough ? row.best.front() : -std::numeric_limits<T>::infinity());
  }

  static void keep_best(std::vector<T>& best, T value, int64_t k) {
    if (std::ssize(best) < k) {
      best.push_back(value);
      std::push_heap(best.begin(), best.end(), std::greater<>());
    } else if (value > best.front()) {
      std::pop_heap(best.begin(), best.end(), std::greater<>());
      best.back() = value;
      std::push_heap(best.begin(), best.end(), std::greater<>());
    }
  }

  // Calls write(l, v) for the vectors of estimates of a block: v has those of the classes from c + l on.
  void estimate_block(const Workspace<T>& row, int64_t c, auto write) const {
    constexpr int L = Lanes<T>::count, parts = sketch_block / L;
    vec<T> sum[parts];
    for (int v = 0; v < parts; ++v) sum[v] = load(row.sums.data() + c + v * L);
    for (const auto& feature : row.sketched)
      for (int v = 0; v < parts; ++v) sum[v] += feature.x * widened<T>(feature.sketch + c + v * L);
    for (int v = 0; v < parts; ++v) {
      if (this->finish_.scale) sum[v] *= load(scale_.data() + c + v * L);
      write(v * L, sum[v] + load(intercept_.data() + c + v * L));
    }
  }

  T exact_score(const Workspace<T>& row, int32_t c) const {
    T s = 0;
    for (int64_t e = 0; e < row.size(); ++e) {
      const int64_t j = row.feature[e];
      const int64_t h = row.number[e];
      s += row.value[e] *
           (h >= 0 ? frequent_.find(weights_, h, c) : weights_.find(weights_.ptr[j], weights_.ptr[j + 1], c));
    }
    return this->finish_(c, s);
  }

  const SparseWeights<T, V, I> weights_;
  const FrequentFeatures frequent_;
  std::vector<int32_t> by_intercept_;
  double largest_weight_ = 0, largest_intercept_ = 0, largest_scale_ = 0;
  Buffer<T> intercept_, scale_;  // copies for the estimates, padded to whole blocks
};

}  // namespace manyclass
