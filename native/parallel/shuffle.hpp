// Seeded random orders. An order depends only on its seed, so it is the same on every thread and in every
// build.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace manyclass {

// A bijective hash (the output function of SplitMix64).
inline uint64_t scramble(uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Fisher-Yates with xorshift64; `state` must not be 0.
inline void shuffle(std::vector<int32_t>& v, uint64_t state) {
  for (size_t j = v.size(); j > 1; --j) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::swap(v[j - 1], v[(static_cast<unsigned __int128>(state) * j) >> 64]);
  }
}

}  // namespace manyclass
