// Scores of rows, and their k best classes. A model consists of parts, each with the weights of consecutive
// classes; predict/weights.hpp states the formula of a score.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "parallel/tasks.hpp"
#include "predict/frequent_features.hpp"
#include "predict/part.hpp"
#include "predict/top_classes.hpp"

namespace manyclass {

// All parts of a model. Several threads may call it at the same time.
template <class T>
class Scorer {
 public:
  explicit Scorer(int64_t features) : features_(features) {}

  int64_t features() const { return features_; }
  int64_t classes() const { return parts_.empty() ? 0 : parts_.back()->first() + parts_.back()->classes(); }
  void add(std::unique_ptr<Part<T>> part) {
    widest_ = std::max(widest_, part->classes());
    parts_.push_back(std::move(part));
  }

  // The sum of f(part).
  int64_t over_parts(auto f) const {
    return total_of(parts_, [&](const auto& part) { return f(*part); });
  }

  // out: rows x classes
  void scores(const auto& X, T* out, int threads) {
    const int64_t K = classes();
    for (const auto& part : parts_)
      for_each_row(X, threads,
                   [&](int64_t i, Workspace<T>& row) { part->score(row, out + i * K + part->first()); });
  }

  // The k best classes of each row, best first; ties go to the lower class.
  void top_classes(const auto& X, int64_t k, int32_t* codes, T* scores, int threads) {
    for (const auto& part : parts_)
      for_each_row(X, threads, [&](int64_t i, Workspace<T>& row) {
        TopClasses<T> top(k, codes + i * k, scores + i * k, std::min(k, part->first()));
        part->find_best(row, top);
        if (part == parts_.back()) top.sort();
      });
  }

 private:
  using Space = std::unique_ptr<Workspace<T>>;
  static constexpr int64_t rows_a_task = 16;

  void for_each_row(const auto& X, int threads, auto f) {
    const int64_t tasks = (X.n_rows + rows_a_task - 1) / rows_a_task;
    const auto work = [&](int64_t begin, int64_t end, Workspace<T>& row) {
      for (int64_t i = begin; i < end; ++i) {
        row.read(X, i);
        f(i, row);
      }
    };
    if (threads == 1 || tasks <= 1) {
      Space space = take();
      work(0, X.n_rows, *space);
      give_back(std::move(space));
      return;
    }
    std::vector<Space> used;
    for (int64_t t = 0; t < std::min<int64_t>(threads, tasks); ++t) used.push_back(take());
    parallel_tasks(
        tasks, 1, static_cast<int>(used.size()), [&] { return used[omp_get_thread_num()].get(); },
        [&](int64_t t, Workspace<T>* space) {
          work(t * rows_a_task, std::min(X.n_rows, (t + 1) * rows_a_task), *space);
        });
    for (Space& space : used) give_back(std::move(space));
  }

  Space take() {
    Space space;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      if (!spare_.empty()) {
        space = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!space) space = std::make_unique<Workspace<T>>();
    space->sums.reserve((widest_ + sketch_block - 1) / sketch_block * sketch_block);
    return space;
  }
  void give_back(Space space) {
    const std::lock_guard<std::mutex> guard(lock_);
    spare_.push_back(std::move(space));
  }

  const int64_t features_;
  int64_t widest_ = 0;
  std::vector<std::unique_ptr<Part<T>>> parts_;
  std::mutex lock_;
  std::vector<Space> spare_;
};

}  // namespace manyclass
