// Trains independent blocks of classes on several threads, and possibly in several processes. Each thread
// asks for the next block when it has finished one, so no thread is idle while blocks are left.
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

// Returns the next block, or a negative number if none is left. Threads may call it concurrently.
using Deal = std::function<int64_t()>;

// Calls train_block(me, block) -> result on every thread until no block is left or an interrupt is requested.
// Returns the blocks trained by this process and their results, in ascending order of the blocks.
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
    // Only thread 0 listens for Ctrl-C, so it keeps polling while the others work.
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
