// Rows in waves: all rows of a wave are scored and solved with the weights from before it, then move together
// by a factor theta <= 1. Threads share out the tiles of classes to score, the rows to solve, and the slices
// of classes to update, and meet in between.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dual/pass_stats.hpp"
#include "parallel/team.hpp"

namespace manyclass {

struct WaveShape {
  int64_t rows;    // of a wave
  int64_t tiles;   // of classes, to score; 0: rows are scored where they are solved
  int64_t slices;  // of classes, to update
  int64_t groups;  // of rows, scored by different threads where tiles are few

  WaveShape(int64_t rows, int64_t tiles, int64_t most_slices, int threads)
      : rows(rows),
        tiles(tiles),
        slices(threads == 1 ? 1 : std::min<int64_t>(most_slices, 2 * threads)),
        groups(tiles == 0 ? 1 : std::min(rows, (2 * threads + tiles - 1) / tiles)) {}
};

// The places of a wave. Each has the step of its row, and of the pass so far what it has seen (`total`): sums
// have a fixed order, however a pass is divided into pieces.
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
  // Of all rows visited since.
  PassStats total() const {
    PassStats sum = waves;
    for (const auto& step : steps_) sum.add(step.total);
    return sum;
  }

  // What `total` adds up: of the waves, then of each place.
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

// Over `count` rows; adds to `waves` and `theta` of the statistics.
//   score(tile, first, low, high)        the rows first + [low, high)
//   prepare(me, first, r)                where processes share the classes: what a row's scores still lack
//   exchange(first, size)                then tell the others, and hear from them
//   tell_steps(size)                     and where they share the rows to solve, once more
//   solve(me, first, r)                  row first + r, in place r of the wave
//   find_theta(me, size)                 for a wave of `size` rows
//   move(me, size, slice, low, high, theta)   the slice's weights, and the variables of the rows [low, high);
//                                        called again with theta < 1 where a full step was too long
template <class T, class Score, class Prepare, class Exchange, class Solve, class TellSteps, class FindTheta,
          class Move>
void run_waves(Team& team, int64_t count, const WaveShape& shape, bool alone, PassStats& stats, Score score,
               Prepare prepare, Exchange exchange, Solve solve, TellSteps tell_steps, FindTheta find_theta,
               Move move) {
  T theta = 1;
  team.run([&](int me) {
    for (int64_t first = 0; first < count; first += shape.rows) {
      const int64_t size = std::min(shape.rows, count - first);
      if (shape.tiles > 0) {
        team.share_out(shape.tiles * shape.groups, me, [&](int64_t t) {
          const int64_t g = t % shape.groups;
          score(t / shape.groups, first, g * size / shape.groups, (g + 1) * size / shape.groups);
        });
        team.meet();
      }
      if (!alone) {
        team.share_out(size, me, [&](int64_t r) { prepare(me, first, r); });
        team.meet();
        team.share_out(1, me, [&](int64_t) { exchange(first, size); });
        team.meet();
      }
      team.share_out(size, me, [&](int64_t r) { solve(me, first, r); });
      team.meet();
      if (!alone) {
        team.share_out(1, me, [&](int64_t) { tell_steps(size); });
        team.meet();
      }
      const auto move_slice = [&](int64_t slice, T by) {
        move(me, size, slice, slice * size / shape.slices, (slice + 1) * size / shape.slices, by);
      };
      // Rows all but always move by a full step: one thread finds out while the others take it.
      team.share_out(1 + shape.slices, me, [&](int64_t t) {
        if (t == 0)
          theta = find_theta(me, size);
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
