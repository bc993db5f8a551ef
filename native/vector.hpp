// Dense loops over classes. One 64-byte vector is the unit: the compiler splits it where the processor is
// narrower. Arrays start on 64-byte borders and are padded to whole vectors, so no loop here has a remainder.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace manyclass {

template <class T>
struct Lanes {
  static constexpr int count = 64 / sizeof(T);
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using vec = typename Lanes<T>::type;

template <class T>
inline vec<T> load(const T* p) {
  return *reinterpret_cast<const vec<T>*>(p);
}
template <class T>
inline void store(T* p, vec<T> v) {
  *reinterpret_cast<vec<T>*>(p) = v;
}
// The same past the caches, for memory that is not read again soon; `streamed` before other threads read it.
template <class T>
inline void stream(T* p, vec<T> v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#else
  store(p, v);
#endif
}
inline void streamed() {
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}
template <class T>
inline vec<T> larger(vec<T> a, vec<T> b) {
  return a > b ? a : b;
}

// The lanes that are not 0, a bit each.
template <class T>
inline uint32_t nonzero_lanes(vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
#endif
  uint32_t lanes = 0;
  for (int l = 0; l < Lanes<T>::count; ++l) lanes |= static_cast<uint32_t>(v[l] != T(0)) << l;
  return lanes;
}
template <class T>
inline bool any_nonzero(vec<T> v) {
  return nonzero_lanes<T>(v) != 0;
}

// 1 in the chosen lanes, -1 in the others.
template <class T>
inline vec<T> signs_of_lanes(uint32_t lanes) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Bits bits __attribute__((vector_size(64)));
  bits own = {};
  for (int l = 0; l < Lanes<T>::count; ++l) own[l] = Bits(1) << l;
  return (own & static_cast<Bits>(lanes)) != 0 ? vec<T>{} + 1 : vec<T>{} - 1;
}

// Writes the chosen lanes one behind the other, anywhere; beyond them up to a whole vector may be written.
template <class T>
inline void compress_lanes(uint8_t* to, uint32_t lanes, vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(static_cast<__mmask16>(lanes), (__m512)v));
    return;
  }
#endif
  for (; lanes; lanes &= lanes - 1, to += sizeof(T)) {
    const T value = v[__builtin_ctz(lanes)];
    std::memcpy(to, &value, sizeof(T));
  }
}
// The other way: reads as many as there are lanes; the others are 0.
template <class T>
inline vec<T> expand_lanes(const uint8_t* from, uint32_t lanes) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_maskz_expandloadu_ps(static_cast<__mmask16>(lanes), from);
#endif
  vec<T> v = {};
  for (; lanes; lanes &= lanes - 1, from += sizeof(T)) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    v[__builtin_ctz(lanes)] = value;
  }
  return v;
}

// Classes are padded to whole vectors.
template <class T>
constexpr int64_t padded(int64_t classes) {
  constexpr int64_t lanes = Lanes<T>::count;
  return (classes + lanes - 1) / lanes * lanes;
}

// Zeroed memory on a 64-byte border. Large pieces come straight from the system and go back to it when they
// are freed; very large ones ask for huge pages, since scattered reads of weight rows would otherwise miss
// the translation buffer on nearly every row.
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes) {
    if (bytes < large) {
      begin_ = std::aligned_alloc(64, (std::max<size_t>(bytes, 1) + 63) / 64 * 64);
      if (!begin_) throw std::bad_alloc();
      std::memset(begin_, 0, bytes);
      return;
    }
    const size_t border = bytes >= 2 * huge ? huge : 0;
    mapped_ = bytes + border;
    begin_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin_ == MAP_FAILED) {
      mapped_ = 0;
      begin_ = nullptr;
      throw std::bad_alloc();
    }
#if defined(MADV_HUGEPAGE)
    if (border) madvise(begin_, mapped_, MADV_HUGEPAGE);  // a wish: nothing depends on it
#endif
  }
  Memory(Memory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Memory() {
    if (mapped_)
      munmap(begin_, mapped_);
    else
      std::free(begin_);
  }

  void* data() const {
    const auto address = reinterpret_cast<uintptr_t>(begin_);
    return mapped_ >= 3 * huge ? reinterpret_cast<void*>((address + huge - 1) / huge * huge) : begin_;
  }

 private:
  static constexpr size_t large = size_t(1) << 20, huge = size_t(1) << 21;
  void* begin_ = nullptr;
  size_t mapped_ = 0;
};

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t n) { reset(n); }
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    std::swap(memory_, taken.memory_);
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    return *this;
  }
  void reset(int64_t n) {
    memory_ = Memory();
    memory_ = Memory(sizeof(T) * static_cast<size_t>(n));
    data_ = static_cast<T*>(memory_.data());
    size_ = n;
  }
  void reserve(int64_t n) {
    if (n > size_) reset(n);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }

 private:
  Memory memory_;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

// As many numbers as a vector of A has, which may be wider than the numbers themselves.
template <class A, class T>
inline vec<A> load_as(const T* p) {
  if constexpr (sizeof(A) == sizeof(T)) {
    return load(p);
  } else {
#if defined(__AVX512F__)
    return (vec<A>)_mm512_cvtps_pd(_mm256_load_ps(p));
#else
    typedef T Narrow __attribute__((vector_size(Lanes<A>::count * sizeof(T))));
    return __builtin_convertvector(*reinterpret_cast<const Narrow*>(p), vec<A>);
#endif
  }
}

template <class T>
inline T largest_lane(vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_reduce_max_ps((__m512)v);
#endif
  T most = v[0];
  for (int l = 1; l < Lanes<T>::count; ++l) most = std::max(most, v[l]);
  return most;
}

// Small integers, one a lane, from anywhere.
template <class T>
inline vec<T> widened(const int8_t* p) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (vec<T>)_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  else
    return (vec<T>)_mm512_cvtepi32_pd(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  typedef int8_t Narrow __attribute__((vector_size(Lanes<T>::count)));
  Narrow small;
  std::memcpy(&small, p, sizeof(small));
  return __builtin_convertvector(small, vec<T>);
#endif
}

// The other way: rounds.
template <class A, class T>
inline void store_as(T* p, vec<A> v) {
  if constexpr (sizeof(A) == sizeof(T)) {
    store(p, v);
  } else {
#if defined(__AVX512F__)
    _mm256_store_ps(p, _mm512_cvtpd_ps((__m512d)v));
#else
    typedef T Narrow __attribute__((vector_size(Lanes<A>::count * sizeof(T))));
    *reinterpret_cast<Narrow*>(p) = __builtin_convertvector(v, Narrow);
#endif
  }
}

template <class T>
inline double sum_lanes(vec<T> v, int64_t lanes = Lanes<T>::count) {
  double sum = 0;
  for (int64_t l = 0; l < lanes; ++l) sum += v[l];
  return sum;
}

// s = sum_j x_j W[f_j, :] for V vectors of classes: the sums, of type A, stay in registers, and the weights
// of features further on (about a kilobyte ahead) are asked for while this one's are added.
template <int V, class A, class T>
inline void score_vectors(const T* W, int64_t stride, const int32_t* f, const T* x, int64_t nnz, A* s) {
  constexpr int L = Lanes<A>::count, ahead = V < 16 ? 16 / V : 1;
  vec<A> sum[V] = {};
  for (int64_t j = 0; j < nnz; ++j) {
    const T* w = W + f[j] * stride;
    const T* later = W + f[j + ahead < nnz ? j + ahead : j] * stride;
    for (int v = 0; v < V; ++v) {
      __builtin_prefetch(later + v * L);
      sum[v] += A(x[j]) * load_as<A>(w + v * L);
    }
  }
  for (int v = 0; v < V; ++v) store(s + v * L, sum[v]);
}

// The classes that `score_tile` takes at once: as many vectors as registers can hold.
template <class A>
constexpr int64_t tile_width = 16 * Lanes<A>::count;

// The same for up to tile_width classes, a whole number of vectors.
template <class A, class T>
inline void score_tile(const T* W, int64_t stride, const int32_t* f, const T* x, int64_t nnz, A* s,
                       int64_t width) {
  constexpr int L = Lanes<A>::count;
  switch (width / L) {
    case 16:
      return score_vectors<16>(W, stride, f, x, nnz, s);
    case 1:
      return score_vectors<1>(W, stride, f, x, nnz, s);
    case 2:
      return score_vectors<2>(W, stride, f, x, nnz, s);
    case 3:
      return score_vectors<3>(W, stride, f, x, nnz, s);
  }
  for (int64_t c = 0; c < width; c += 4 * L) {
    if (width - c >= 4 * L)
      score_vectors<4>(W + c, stride, f, x, nnz, s + c);
    else
      score_tile(W + c, stride, f, x, nnz, s + c, width - c);
  }
}

// What one look at a row's scores tells: sum and maximum of max(0, s_c + shift), and the classes with
// s_c > threshold, in order, written to `found` (room for all of them).
template <class T>
struct Scan {
  double hinge_sum;
  T largest;  // of s_c + shift; may be negative
  int32_t count;
};

template <class T>
inline Scan<T> scan_scores(const T* s, int64_t classes, T shift, T threshold, int32_t* found) {
  constexpr int L = Lanes<T>::count;
  vec<T> sum = {}, top = vec<T>{} + std::numeric_limits<T>::lowest();
  int32_t count = 0;
  for (int64_t c = 0; c < classes; c += L) {
    const vec<T> v = load(s + c);
    const vec<T> h = v + shift;
    sum += larger<T>(h, vec<T>{});
    top = larger<T>(top, h);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      const __mmask16 m = _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(threshold), _CMP_GT_OQ);
      if (m) {
        const __m512i id =
            _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(c)),
                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        _mm512_mask_compressstoreu_epi32(found + count, m, id);
        count += __builtin_popcount(m);
      }
      continue;
    }
#endif
    for (int l = 0; l < L; ++l) {
      found[count] = static_cast<int32_t>(c + l);
      count += s[c + l] > threshold;
    }
  }
  double hinge_sum = 0;
  T largest = top[0];
  for (int l = 0; l < L; ++l) {
    hinge_sum += sum[l];
    if (top[l] > largest) largest = top[l];
  }
  return {hinge_sum, largest, count};
}

}  // namespace manyclass
