// The exchange of scores between processes that hold the weights of different classes.
//
// Each process scores the rows of a wave for its own classes. For losses on relative margins few scores
// matter. First, processes exchange the scores of each row's own class and of the classes whose variables are
// positive. They give a lower bound of the sub-problem's threshold (coupled/relative_margin.hpp). Then each
// process sends its scores above that bound, and those with a positive loss. Classes that no process reports
// are never read: they count as the lowest number of T, which leaves every sum and every comparison as it is.
// For the other losses, all scores are exchanged.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "parallel/processes.hpp"

namespace manyclass {

// scores: rows x stride, by class.
template <class T>
class ScoreExchange {
 public:
  ScoreExchange(const Processes& processes, T* scores, int64_t stride, int64_t rows)
      : processes_(processes), scores_(scores), stride_(stride), rows_(rows) {}

  void tell_all() const { processes_.exchange_columns(scores_, stride_, rows_); }

  // in_use(r, f) calls f(class) for row r's own class and for those with positive variables.
  void tell_in_use(auto in_use) const {
    processes_.exchange([&](int of, auto piece) {
      for (int64_t r = 0; r < rows_; ++r)
        in_use(r, [&](int32_t c) {
          if (processes_.ranges[of].has(c)) piece(row(r) + c, 1);
        });
    });
  }

  // Exchanges the scores of the classes in use, and of all other classes that matter.
  //   rests(r)       whether row r is not visited, so that its scores are not needed
  //   lowest(r, s)   the score that a class must exceed to matter, given those of the classes in use
  void tell_what_matters(auto in_use, auto rests, auto lowest) const {
    forget_others();
    tell_in_use(in_use);
    std::vector<int32_t> counts(rows_, 0), named;  // the classes that matter, row after row
    for (int64_t r = 0; r < rows_; ++r)
      if (!rests(r)) counts[r] = name(row(r), lowest(r, row(r)), named);
    processes_.exchange([&](int of, auto piece) {
      piece(counts.data(), rows_);
      named.resize(std::accumulate(counts.begin(), counts.end(), size_t(0)));
      piece(named.data(), std::ssize(named));
      const int32_t* c = named.data();
      for (int64_t r = 0; r < rows_; ++r)
        for (int32_t left = counts[r]; left > 0; --left, ++c) {
          if (!processes_.ranges[of].has(*c))
            throw std::runtime_error("another process sent a class that is not its own");
          piece(row(r) + *c, 1);
        }
    });
  }

 private:
  T* row(int64_t r) const { return scores_ + r * stride_; }

  void forget_others() const {
    const ClassRange& mine = processes_.mine();
    for (int64_t r = 0; r < rows_; ++r) {
      std::fill(row(r), row(r) + mine.low, std::numeric_limits<T>::lowest());
      std::fill(row(r) + mine.high, row(r) + processes_.ranges.back().high, std::numeric_limits<T>::lowest());
    }
  }

  // Appends the classes of this process that matter to `named`, and returns their number.
  int32_t name(const T* s, T lowest, std::vector<int32_t>& named) const {
    const ClassRange& mine = processes_.mine();
    const int64_t best = std::max_element(s + mine.low, s + mine.high) - s;  // always needed for the loss
    const size_t before = named.size();
    for (int64_t c = mine.low; c < mine.high; ++c)
      if (s[c] > lowest || c == best) named.push_back(static_cast<int32_t>(c));
    return static_cast<int32_t>(named.size() - before);
  }

  const Processes& processes_;
  T* const scores_;
  const int64_t stride_, rows_;
};

}  // namespace manyclass
