// Waves of rows: all rows of a wave are scored and solved at the weights from before the wave, and then move
// by a common factor theta <= 1. Threads share the tiles of classes to score, the rows to solve, and the
// slices of classes to update, and meet in between.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dual/pass_stats.hpp"
#include "parallel/team.hpp"

namespace manyclass {

struct WaveShape {
  int64_t rows;    // of a wave
  int64_t tiles;   // of classes, to score; 0 if each row is scored by the thread that solves it
  int64_t slices;  // of classes, to update
  int64_t groups;  // of rows, scored by different threads if there are few tiles

  WaveShape(int64_t rows, int64_t tiles, int64_t most_slices, int threads)
      : rows(rows),
        tiles(tiles),
        slices(threads == 1 ? 1 : std::min<int64_t>(most_slices, 2 * threads)),
        groups(tiles == 0 ? 1 : std::min(rows, (2 * threads + tiles - 1) / tiles)) {}
};

// The places of a wave. Each holds the step of its current row, and sums over all rows that were in this
// place during the pass (`total`). So the order of summation does not depend on how a pass is divided into
// pieces.
template <class Step>
class WavePlaces {
 public:
  Step& operator[](int64_t r) { return steps_[r]; }
  const Step& operator[](int64_t r) const { return steps_[r]; }
  void make_room(int64_t wave) { steps_.resize(std::max(steps_.size(), static_cast<size_t>(wave))); }

  void begin_pass() {
    waves = {};
    for (auto& step : steps_) step.total = {};
  }
  // Over all rows visited since `begin_pass`.
  PassStats total() const {
    PassStats sum = waves;
    for (const auto& step : steps_) sum.add(step.total);
    return sum;
  }

  // The terms of `total`: the waves first, then each place.
  std::vector<PassStats> sums() const {
    std::vector<PassStats> all{waves};
    for (const auto& step : steps_) all.push_back(step.total);
    return all;
  }
  void set_sums(const std::vector<PassStats>& all) {
    waves = all.at(0);
    steps_.resize(all.size() - 1);
    for (size_t r = 0; r < steps_.size(); ++r) steps_[r].total = all[r + 1];
  }

  PassStats waves;  // their number and the sum of their theta

 private:
  std::vector<Step> steps_;
};

// What happens in a wave. Row first + r of the order is in place r.
//   score(tile, first, low, high)   scores the rows first + [low, high) for a tile
//   prepare(me, first, r)           completes the scores of a row (only with several processes)
//   exchange(first, size)           exchanges the scores of a wave (only with several processes)
//   solve(me, first, r)             solves the sub-problem of a row
//   tell_steps(size)                exchanges the steps, if processes share the rows to solve
//   steps.find_theta(me, size)            computes the common step of a wave
//   move(me, size, slice, low, high, theta)   updates the weights of a slice, and the variables of the
//   rows
//                                   [low, high); called with theta = 1, and again if theta < 1
template <class Score, class Prepare, class Exchange, class Solve, class TellSteps, class FindTheta,
          class Move>
struct WaveSteps {
  Score score;
  Prepare prepare;
  Exchange exchange;
  Solve solve;
  TellSteps tell_steps;
  FindTheta find_theta;
  Move move;
};
template <class... Steps>
WaveSteps(Steps...) -> WaveSteps<Steps...>;

// Visits `count` rows in waves. Adds to `waves` and `theta` of the statistics. alone: there is one process.
template <class T, class Steps>
void run_waves(Team& team, int64_t count, const WaveShape& shape, bool alone, PassStats& stats,
               const Steps& steps) {
  T theta = 1;
  team.run([&](int me) {
    for (int64_t first = 0; first < count; first += shape.rows) {
      const int64_t size = std::min(shape.rows, count - first);
      if (shape.tiles > 0) {
        team.share_out(shape.tiles * shape.groups, me, [&](int64_t t) {
          const int64_t g = t % shape.groups;
          steps.score(t / shape.groups, first, g * size / shape.groups, (g + 1) * size / shape.groups);
        });
        team.meet();
      }
      if (!alone) {
        team.share_out(size, me, [&](int64_t r) { steps.prepare(me, first, r); });
        team.meet();
        team.share_out(1, me, [&](int64_t) { steps.exchange(first, size); });
        team.meet();
      }
      team.share_out(size, me, [&](int64_t r) { steps.solve(me, first, r); });
      team.meet();
      if (!alone) {
        team.share_out(1, me, [&](int64_t) { steps.tell_steps(size); });
        team.meet();
      }
      const auto move_slice = [&](int64_t slice, T by) {
        steps.move(me, size, slice, slice * size / shape.slices, (slice + 1) * size / shape.slices, by);
      };
      // theta is nearly always 1, so the others take the full step while one thread computes theta.
      team.share_out(1 + shape.slices, me, [&](int64_t t) {
        if (t == 0)
          theta = steps.find_theta(me, size);
        else
          move_slice(t - 1, T(1));
      });
      team.meet();
      if (theta != 1) {
        team.share_out(shape.slices, me, [&](int64_t slice) { move_slice(slice, theta); });
        team.meet();
      }
      if (me == 0) {
        ++stats.waves;
        stats.theta += theta;
      }
    }
  });
}

}  // namespace manyclass
