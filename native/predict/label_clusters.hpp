// Orders labels so that those with similar vectors are neighbours: the leaves of a balanced tree.
//
// A node with n labels has b children, where child i gets the labels n i / b .. n (i + 1) / b. To divide the
// labels, the list of children is halved repeatedly. Each half gets its share of the labels by two-means on
// the sphere with fixed sizes:
//
//   sort the labels l by  v_l' c_1 / |c_1| - v_l' c_2 / |c_2|;  the first ones go to the first half,
//   c_h = sum of v_l over half h,
//
// where v_l is the vector of a label divided by its norm. This is repeated until the halves no longer change,
// at most two_means_rounds times. Each halving runs on one thread and depends on its own labels only, so the
// order is the same for any number of threads.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "parallel/shuffle.hpp"
#include "parallel/tasks.hpp"
#include "rows/sparse_rows.hpp"

namespace manyclass {

inline constexpr int two_means_rounds = 8;

template <class T>
class LabelClusters {
 public:
  LabelClusters(const SparseRowsView<T>& vectors, int64_t branching, uint64_t seed)
      : w_(vectors), branching_(branching), seed_(seed), scale_(vectors.n_rows), order_(vectors.n_rows) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int64_t l = 0; l < w_.n_rows; ++l) {
      double sum = 0;
      for (int64_t e = w_.ptr[l]; e < w_.ptr[l + 1]; ++e)
        sum += static_cast<double>(w_.value[e]) * w_.value[e];
      scale_[l] = sum > 0 ? static_cast<float>(1 / std::sqrt(sum)) : 0;
    }
  }

  std::vector<int32_t> run(int threads) {
    std::vector<Halving> now{{0, w_.n_rows, 0, branching_}};
    while (!now.empty()) {
      std::vector<Halving> next(2 * now.size());
      parallel_tasks(
          std::ssize(now), 1, threads, [&] { return Scratch(w_.n_features); },
          [&](int64_t j, Scratch& scratch) { halve(now[j], &next[2 * j], scratch); });
      std::erase_if(next, [](const Halving& h) { return h.size == 0; });
      now = std::move(next);
    }
    return order_;
  }

 private:
  // The children first .. last of a node whose labels are at begin .. begin + size.
  struct Halving {
    int64_t begin = 0, size = 0, first = 0, last = 0;
  };

  struct Scratch {
    explicit Scratch(int64_t features) : centre{std::vector<float>(features), std::vector<float>(features)} {}
    std::vector<float> centre[2];
    std::vector<std::pair<float, int32_t>> by_side;  // negated preference for the first half, and label
    std::vector<float> dot[2];
  };

  int64_t bound(const Halving& h, int64_t child) const { return h.begin + h.size * child / branching_; }

  // Divides the labels, and puts the halvings that remain into next[0] and next[1].
  void halve(const Halving& h, Halving* next, Scratch& scratch) {
    if (h.size <= branching_) return std::sort(&order_[h.begin], &order_[h.begin] + h.size);
    const int64_t middle = (h.first + h.last) / 2;
    const int64_t begin = bound(h, h.first), cut = bound(h, middle), end = bound(h, h.last);
    two_means(begin, cut, end, scratch);
    next[0] = {h.begin, h.size, h.first, middle};
    next[1] = {h.begin, h.size, middle, h.last};
    for (int half : {0, 1}) {
      Halving& other = next[half];
      if (other.last - other.first > 1) continue;
      const int64_t from = bound(h, other.first), to = bound(h, other.last);
      other = {from, to - from, 0, branching_};  // a single child becomes a node
    }
  }

  void two_means(int64_t begin, int64_t cut, int64_t end, Scratch& scratch) {
    int32_t* label = order_.data();
    // Sorted, so that sums do not depend on earlier halvings.
    std::sort(label + begin, label + end);
    const int64_t n = end - begin;
    const int32_t seed =
        label[begin + static_cast<int64_t>(scramble(seed_ ^ scramble(begin + w_.n_rows * n)) % n)];
    add(scratch.centre[0], seed);
    for (int64_t i = begin; i < end; ++i)
      scratch.by_side.emplace_back(dot(scratch.centre[0], label[i]), label[i]);
    clear(scratch.centre[0], seed);
    // The first halves are the labels most and least similar to the seed.
    for (auto& [side, l] : scratch.by_side) side = -side;
    int rounds = 0;
    do {
      std::nth_element(scratch.by_side.begin(), scratch.by_side.begin() + (cut - begin),
                       scratch.by_side.end());
      if (!take(begin, cut, end, scratch) && rounds > 0) break;
      compare(begin, cut, end, scratch);
    } while (++rounds < two_means_rounds);
    scratch.by_side.clear();
  }

  // Copies the halves to the order. Returns whether they have changed.
  bool take(int64_t begin, int64_t cut, int64_t end, Scratch& scratch) {
    std::vector<int32_t> before(&order_[begin], &order_[begin] + (cut - begin));
    for (int64_t i = begin; i < end; ++i) order_[i] = scratch.by_side[i - begin].second;
    std::sort(&order_[begin], &order_[begin] + (cut - begin));
    std::sort(&order_[begin] + (cut - begin), &order_[begin] + (end - begin));
    return !std::equal(before.begin(), before.end(), &order_[begin]);
  }

  // Computes the preference of each label for one of the two centres.
  void compare(int64_t begin, int64_t cut, int64_t end, Scratch& scratch) {
    for (int64_t i = begin; i < end; ++i) add(scratch.centre[i >= cut], order_[i]);
    double square[2] = {0, 0};  // |c_h|^2 = sum of v_l' c_h over half h
    for (int half : {0, 1}) scratch.dot[half].resize(end - begin);
    for (int64_t i = begin; i < end; ++i) {
      for (int half : {0, 1}) scratch.dot[half][i - begin] = dot(scratch.centre[half], order_[i]);
      square[i >= cut] += scratch.dot[i >= cut][i - begin];
    }
    const auto inverse = [](double s) { return s > 0 ? static_cast<float>(1 / std::sqrt(s)) : 0.0f; };
    const float first = inverse(square[0]), second = inverse(square[1]);
    for (int64_t i = begin; i < end; ++i)
      scratch.by_side[i - begin] = {scratch.dot[1][i - begin] * second - scratch.dot[0][i - begin] * first,
                                    order_[i]};
    for (int64_t i = begin; i < end; ++i) clear(scratch.centre[i >= cut], order_[i]);
  }

  void add(std::vector<float>& centre, int32_t l) const {
    for (int64_t e = w_.ptr[l]; e < w_.ptr[l + 1]; ++e)
      centre[w_.index[e]] += scale_[l] * static_cast<float>(w_.value[e]);
  }

  void clear(std::vector<float>& centre, int32_t l) const {
    for (int64_t e = w_.ptr[l]; e < w_.ptr[l + 1]; ++e) centre[w_.index[e]] = 0;
  }

  float dot(const std::vector<float>& centre, int32_t l) const {
    float sum = 0;
    for (int64_t e = w_.ptr[l]; e < w_.ptr[l + 1]; ++e)
      sum += centre[w_.index[e]] * static_cast<float>(w_.value[e]);
    return scale_[l] * sum;
  }

  const SparseRowsView<T> w_;
  const int64_t branching_;
  const uint64_t seed_;
  std::vector<float> scale_;
  std::vector<int32_t> order_;
};

}  // namespace manyclass
