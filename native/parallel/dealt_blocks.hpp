// Blocks that threads train as they are dealt: each asks for the next one when it is done with its last, so
// that nobody waits while there are blocks left, here or in the other processes that are dealt the same ones.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/interrupt.hpp"
#include "parallel/team.hpp"

namespace manyclass {

// The next block for whoever asks; less than 0: there is none any more. Threads may ask at the same time.
using Deal = std::function<int64_t()>;

// train_block(me, block) -> result on every thread until there are no more blocks, or an interrupt has come.
// The blocks that were trained here with their results, ascending.
template <class Result, class TrainBlock>
std::vector<std::pair<int64_t, Result>> train_dealt(int threads, const Deal& deal, Interrupt& interrupt,
                                                    TrainBlock train_block) {
  std::vector<std::vector<std::pair<int64_t, Result>>> found(threads);
  std::atomic<int> working{threads};
  struct Leaving {
    ~Leaving() { --working; }
    std::atomic<int>& working;
  };
  Team team(threads);
  team.run([&](int me) {
    {
      const Leaving leaving{working};
      for (int64_t b; !interrupt.requested() && (b = deal()) >= 0;)
        found[me].emplace_back(b, train_block(me, b));
    }
    // The thread that hears Ctrl-C stays awake while others work.
    if (me == 0)
      while (working.load() > 0) {
        interrupt.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
  });
  std::vector<std::pair<int64_t, Result>> all;
  for (auto& part : found)
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

}  // namespace manyclass
