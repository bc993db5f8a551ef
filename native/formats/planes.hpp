// Numbers as byte planes: the lowest bytes of all numbers, then the next ones, and so on. This brings
// together the bytes that neighbours have in common, where a general compressor finds them.
//
// A plane of zeros is omitted. A plane with at most 16 different bytes is packed: its palette lists them, and
// each byte becomes a palette index of 1, 2 or 4 bits, the first in the lowest bits. That leaves less to
// compress.
//
// The indices of a row ascend, and are stored as differences, the first one as it is.
#pragma once
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace manyclass {

// planes: one after the other, `count` bytes each.
template <class Word>
void split_planes(const Word* numbers, int64_t count, uint8_t* planes) {
  for (size_t p = 0; p < sizeof(Word); ++p)
    for (int64_t k = 0; k < count; ++k)
      planes[static_cast<int64_t>(p) * count + k] = static_cast<uint8_t>(numbers[k] >> (8 * p));
}

constexpr size_t largest_palette = 16;

// The different bytes of a plane, ascending; empty if there are too many.
inline std::vector<uint8_t> palette_of(const uint8_t* plane, int64_t count) {
  std::array<bool, 256> met{};
  size_t found = 0;
  for (int64_t k = 0; k < count; ++k) {
    found += !met[plane[k]];
    met[plane[k]] = true;
    if (found > largest_palette) return {};
  }
  std::vector<uint8_t> palette;
  for (int byte = 0; byte < 256; ++byte)
    if (met[byte]) palette.push_back(static_cast<uint8_t>(byte));
  return palette;
}

inline int palette_bits(size_t size) { return size <= 2 ? 1 : size <= 4 ? 2 : 4; }
inline int64_t packed_size(int64_t count, int bits) { return (count * bits + 7) / 8; }

inline std::vector<uint8_t> pack(const uint8_t* plane, int64_t count, const std::vector<uint8_t>& palette) {
  const int bits = palette_bits(palette.size());
  std::array<uint8_t, 256> number{};
  for (size_t k = 0; k < palette.size(); ++k) number[palette[k]] = static_cast<uint8_t>(k);
  std::vector<uint8_t> packed(packed_size(count, bits));
  for (int64_t k = 0; k < count; ++k)
    packed[k * bits / 8] |= static_cast<uint8_t>(number[plane[k]] << (k * bits % 8));
  return packed;
}

// A stored plane, which is unpacked part by part. Keeps a pointer to the bytes.
class Plane {
 public:
  static constexpr int64_t at_once = 4096;  // bytes per part, few enough for the cache

  // bytes: null for a plane of zeros. palette: null, or `size` bytes, at most 16.
  Plane(const uint8_t* bytes, const uint8_t* palette, size_t size) : bytes_(bytes) {
    if (!palette) return;
    bits_ = palette_bits(size);
    std::array<uint8_t, largest_palette> whole{};  // indices beyond the palette give 0
    std::copy_n(palette, size, whole.begin());
    const int a_byte = 8 / bits_;
    table_.resize(256 * a_byte);
    for (int packed = 0; packed < 256; ++packed)
      for (int k = 0; k < a_byte; ++k)
        table_[packed * a_byte + k] = whole[packed >> (k * bits_) & ((1 << bits_) - 1)];
  }

  // Bytes [first, first + count) of the plane, in the stored plane or in `room`. `first` is a multiple of
  // at_once, and `count` is at most at_once.
  const uint8_t* part(int64_t first, int64_t count, uint8_t* room) const {
    if (!bytes_) return std::fill_n(room, count, uint8_t(0)), room;
    if (bits_ == 8) return bytes_ + first;
    const uint8_t* from = bytes_ + first * bits_ / 8;
    if (bits_ == 1) unpack<8>(from, count, room);
    if (bits_ == 2) unpack<4>(from, count, room);
    if (bits_ == 4) unpack<2>(from, count, room);
    return room;
  }

 private:
  template <int a_byte>
  void unpack(const uint8_t* from, int64_t count, uint8_t* to) const {
    const uint8_t* table = table_.data();
    const int64_t whole = count / a_byte;
    for (int64_t k = 0; k < whole; ++k) std::memcpy(to + k * a_byte, table + from[k] * a_byte, a_byte);
    if (count % a_byte) std::memcpy(to + whole * a_byte, table + from[whole] * a_byte, count % a_byte);
  }

  const uint8_t* bytes_;
  int bits_ = 8;
  std::vector<uint8_t> table_;  // for each packed byte, the bytes that it stands for
};

// Joins sizeof(Word) planes to numbers, part by part. Keeps a reference to the planes.
template <class Word>
class Joiner {
 public:
  explicit Joiner(const std::vector<Plane>& planes) : planes_(planes), room_(width * Plane::at_once) {
    if (planes.size() != width) throw std::invalid_argument("wrong number of planes");
  }

  // Numbers [first, first + count). `first` is a multiple of Plane::at_once, and `count` is at most that.
  void part(int64_t first, int64_t count, Word* out) {
    std::array<const uint8_t*, width> from;
    for (size_t p = 0; p < width; ++p)
      from[p] = planes_[p].part(first, count, room_.data() + p * Plane::at_once);
    for (int64_t k = 0; k < count; ++k) {
      Word number = 0;
      for (size_t p = 0; p < width; ++p) number |= static_cast<Word>(from[p][k]) << (8 * p);
      out[k] = number;
    }
  }

 private:
  static constexpr size_t width = sizeof(Word);
  const std::vector<Plane>& planes_;
  std::vector<uint8_t> room_;
};

// Calls f(first, count) for the parts of `total` numbers.
void for_each_part(int64_t total, auto f) {
  for (int64_t first = 0; first < total; first += Plane::at_once)
    f(first, std::min(total - first, Plane::at_once));
}

// Replaces the indices of each row by differences. Word is the unsigned type of Index.
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

// Replaces words by their partial sums, starting from `sum`. Returns the last one.
template <class Word>
Word sum_up(Word* words, int64_t count, Word sum) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Word) == 4) {
    constexpr __mmask16 all = 0xffff;
    const __m512i zeros = _mm512_setzero_si512();
    __m512i before = _mm512_set1_epi32(static_cast<int>(sum));
    for (int64_t k = 0; k < count; k += 16) {
      const auto here = static_cast<__mmask16>(count - k < 16 ? (1 << (count - k)) - 1 : all);
      __m512i v = _mm512_maskz_loadu_epi32(here, words + k);
      v = _mm512_add_epi32(v, _mm512_maskz_alignr_epi32(all, v, zeros, 15));
      v = _mm512_add_epi32(v, _mm512_maskz_alignr_epi32(all, v, zeros, 14));
      v = _mm512_add_epi32(v, _mm512_maskz_alignr_epi32(all, v, zeros, 12));
      v = _mm512_add_epi32(_mm512_add_epi32(v, before), _mm512_maskz_alignr_epi32(all, v, zeros, 8));
      _mm512_mask_storeu_epi32(words + k, here, v);
      before = _mm512_maskz_permutexvar_epi32(all, _mm512_set1_epi32(15), v);
    }
    return static_cast<Word>(_mm512_cvtsi512_si32(before));
  }
#endif
  for (int64_t k = 0; k < count; ++k) words[k] = sum += words[k];
  return sum;
}

// The number of words that are not larger than the one before.
template <class Word>
Word not_ascending(const Word* words, int64_t count) {
  Word found = 0;
  for (int64_t k = 1; k < count; ++k) found += words[k] <= words[k - 1];
  return found;
}

// The inverse of `to_differences`, part by part. The differences are not trusted: indices that do not ascend
// (also because a sum has overflowed), or are not below n_features, are rejected.
template <class Index, class Word>
class RowIndices {
 public:
  RowIndices(const int64_t* ptr, uint64_t n_features)
      : ptr_(ptr), limit_(std::min(n_features, uint64_t(std::numeric_limits<Index>::max()) + 1)) {}

  // Replaces the differences [first, first + count) by indices; parts must come in order.
  void part(Word* words, int64_t first, int64_t count) {
    int64_t falls = 0;  // indices not larger than the one before, within a row
    bool too_large = false;
    for (int64_t begin = first; begin < first + count; ++row_) {
      const int64_t end = std::min(ptr_[row_ + 1], first + count);
      if (begin == end) continue;
      const bool begun = begin > ptr_[row_];  // the row began in an earlier part
      const Word before = begin > first ? words[begin - first - 1] : before_;
      if (!begun && begin > 0) falls -= words[begin - first] <= before;
      too_large |= sum_up(words + (begin - first), end - begin, begun ? before : Word(0)) >= limit_;
      begin = end;
      if (end < ptr_[row_ + 1]) break;  // the row continues in the next part
    }
    falls += first > 0 && words[0] <= before_;
    falls += static_cast<int64_t>(not_ascending(words, count));
    before_ = words[count - 1];
    if (falls) throw std::invalid_argument("indices of a row do not ascend");
    if (too_large) throw std::invalid_argument("an index is too large");
  }

 private:
  const int64_t* ptr_;
  const uint64_t limit_;
  int64_t row_ = 0;
  Word before_ = 0;  // the last index of the part before
};

}  // namespace manyclass
