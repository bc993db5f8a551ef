// Feature reduction: class c has weights only for features that occur in rows of class c. One bit per weight
// says whether it is kept, by feature, for the head. (A feature of a single row has weights for the classes
// of that row only, and needs no bits.)
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "rows/layout.hpp"
#include "simd/vector.hpp"

namespace manyclass {

class KeptWeights {
 public:
  KeptWeights() = default;  // keeps all weights

  // labels(i): the classes of row i.
  template <class T, class Labels>
  KeptWeights(const Layout<T>& rows, const Labels& labels, int64_t classes)
      : stride_((classes + 63) / 64 * 8), bits_(rows.heads() * stride_, 0) {
    if (rows.tails() != 0) throw std::logic_error("feature reduction needs every shared feature in the head");
    for (int64_t i = 0; i < rows.n; ++i)
      for (int32_t c : labels(i))
        for (int64_t h = rows.head_ptr[i]; h < rows.head_ptr[i + 1]; ++h)
          bits_[rows.head_index[h] * stride_ + c / 8] |= static_cast<uint8_t>(1 << c % 8);
  }

  bool all() const { return stride_ == 0; }
  bool has(int64_t feature, int64_t c) const { return bits_[feature * stride_ + c / 8] >> c % 8 & 1; }

  // v in the lanes whose weights are kept, else 0. Lane l is class c + l; c is a multiple of the vector
  // length.
  template <class T>
  vec<T> where_kept(int64_t feature, int64_t c, vec<T> v) const {
    constexpr int L = Lanes<T>::count;
    uint16_t bits = 0;
    std::memcpy(&bits, bits_.data() + feature * stride_ + c / 8, L / 8);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return (vec<T>)_mm512_maskz_mov_ps(bits, (__m512)v);
    else
      return (vec<T>)_mm512_maskz_mov_pd(static_cast<__mmask8>(bits), (__m512d)v);
#else
    for (int l = 0; l < L; ++l)
      if (!(bits >> l & 1)) v[l] = 0;
    return v;
#endif
  }

 private:
  int64_t stride_ = 0;
  std::vector<uint8_t> bits_;
};

}  // namespace manyclass
