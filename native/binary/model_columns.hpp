// The weights of binary problems as a dense matrix, features x problems. Only the columns of the blocks that
// are held are stored, so a worker that trains a few blocks needs memory for those alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "binary/problems.hpp"
#include "simd/memory.hpp"

namespace manyclass {

template <class T>
class ModelColumns {
 public:
  ModelColumns() = default;  // for models that are not dense
  ModelColumns(const BinaryProblems<T>& problems, int64_t features)
      : features_(features), first_(problems.blocks().size(), -1) {
    for (const auto& block : problems.blocks()) many_.push_back(block.many());
  }

  // The weights of a feature in a block, which must be held.
  T* at(int64_t feature, int64_t b) { return values_.data() + feature * columns_ + first_[b]; }

  // Holds exactly these blocks. Blocks that were held before keep their weights.
  void hold(const std::vector<bool>& held) {
    std::vector<int64_t> first(first_.size(), -1);
    int64_t columns = 0;
    for (size_t b = 0; b < first.size(); ++b)
      if (held[b]) first[b] = std::exchange(columns, columns + many_[b]);
    if (first == first_) return;
    Buffer<T> values(features_ * columns);
    for (size_t b = 0; b < first.size(); ++b)
      if (first[b] >= 0 && first_[b] >= 0)
        for (int64_t f = 0; f < features_; ++f)
          std::copy_n(at(f, b), many_[b], values.data() + f * columns + first[b]);
    first_ = std::move(first);
    columns_ = columns;
    values_ = std::move(values);
  }

  // The columns of these blocks side by side: features x `count`.
  int64_t count(const std::vector<int64_t>& blocks) const {
    return first_.empty() ? 0 : total_of(blocks, [&](int64_t b) { return many_[b]; });
  }
  void copy_to(T* out, const std::vector<int64_t>& blocks) {
    for_each_part(blocks, [&](T* held, int64_t many) { out = std::copy_n(held, many, out); });
  }
  void copy_from(const T* in, const std::vector<int64_t>& blocks) {
    for_each_part(blocks, [&](T* held, int64_t many) {
      std::copy_n(in, many, held);
      in += many;
    });
  }

  int64_t features() const { return features_; }
  Buffer<T> take() { return std::move(values_); }

 private:
  void for_each_part(const std::vector<int64_t>& blocks, auto f) {
    for (int64_t feature = 0; feature < features_; ++feature)
      for (int64_t b : blocks) f(at(feature, b), many_[b]);
  }

  int64_t features_ = 0, columns_ = 0;
  std::vector<int64_t> many_;   // the number of problems of each block
  std::vector<int64_t> first_;  // the first column of each block, or -1 if it is not held
  Buffer<T> values_;
};

}  // namespace manyclass
