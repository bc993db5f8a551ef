// Numbers in byte planes: the lowest bytes of all of them, then the next ones, and so on. What neighbours
// have in common comes together there, where a general compressor finds it. A plane of zeros only need not be
// there.
//
// The indices of a row ascend, and are kept as differences: the first one as it is.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace manyclass {

// planes: one behind the other, `count` bytes each.
template <class Word>
void split_planes(const Word* numbers, int64_t count, uint8_t* planes) {
  for (size_t p = 0; p < sizeof(Word); ++p)
    for (int64_t k = 0; k < count; ++k)
      planes[static_cast<int64_t>(p) * count + k] = static_cast<uint8_t>(numbers[k] >> (8 * p));
}

// planes: sizeof(Word) of them, or null for zeros; numbers [first, first + count) of them.
template <class Word>
void join_planes(const std::vector<const uint8_t*>& planes, int64_t first, int64_t count, Word* numbers) {
  std::fill_n(numbers, count, Word(0));
  for (size_t p = 0; p < sizeof(Word); ++p) {
    if (!planes[p]) continue;
    const uint8_t* plane = planes[p] + first;
    for (int64_t k = 0; k < count; ++k) numbers[k] |= static_cast<Word>(plane[k]) << (8 * p);
  }
}

// ptr: where each row begins, and the last one ends. Word is the unsigned type of Index.
template <class Index, class Word>
void to_differences(const int64_t* ptr, int64_t rows, const Index* index, Word* differences) {
  for (int64_t i = 0; i < rows; ++i) {
    Word before = 0;
    for (int64_t k = ptr[i]; k < ptr[i + 1]; ++k) {
      const Word now = static_cast<Word>(index[k]);
      differences[k] = now - before;
      before = now;
    }
  }
}

// The other way, from planes. What they hold may come from anywhere: indices that do not ascend or are not
// below n_features are refused.
template <class Index, class Word>
void indices_of(const std::vector<const uint8_t*>& planes, const int64_t* ptr, int64_t rows,
                int64_t n_features, Index* index) {
  constexpr int64_t at_once = 4096;  // so that what was joined is still in the cache
  auto* words = reinterpret_cast<Word*>(index);
  for (int64_t begin = 0; begin < rows;) {
    int64_t end = begin + 1;
    while (end < rows && ptr[end + 1] - ptr[begin] <= at_once) ++end;
    join_planes(planes, ptr[begin], ptr[end] - ptr[begin], words + ptr[begin]);
    for (int64_t i = begin; i < end; ++i) {
      uint64_t now = 0;
      bool repeats = false;
      for (int64_t k = ptr[i]; k < ptr[i + 1]; ++k) {
        repeats |= k > ptr[i] && words[k] == 0;
        now += words[k];
        words[k] = static_cast<Word>(now);
      }
      if (repeats) throw std::invalid_argument("indices of a row do not ascend");
      if (now >= static_cast<uint64_t>(n_features) && ptr[i] < ptr[i + 1])
        throw std::invalid_argument("an index is too large");
    }
    begin = end;
  }
}

}  // namespace manyclass
