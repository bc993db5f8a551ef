// The weights of one feature for all classes, in float64, directly from the coefficients of the rows:
//     w_fc = sum_i x_if coef_ic, rows in order.
// Certificates and the final model come from here, never from the training weights, which accumulate rounding
// errors.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/sparse_rows.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

// Whether a model (features x classes) is stored as a dense matrix: if that takes at most 16 MB, or no more
// than a sparse one would.
template <class T>
bool stored_dense(int64_t features, int64_t classes, int64_t nonzeros = 0) {
  const int64_t bytes = features * classes * static_cast<int64_t>(sizeof(T));
  const int64_t sparse_bytes = nonzeros * static_cast<int64_t>(sizeof(int32_t) + sizeof(T));
  return bytes <= int64_t(1) << 24 || sparse_bytes >= bytes;
}

// The rows by feature, in the caller's numbering of the features.
template <class T>
SparseRows<T> columns_of(const Layout<T>& rows, int64_t features) {
  return sorted_rows<T>(features, [&](auto see) {
    for (int64_t i = 0; i < rows.n; ++i) rows.for_each(i, [&](int64_t f, T x) { see(f, i, x); });
  });
}

// Computes one feature at a time. Coefs has
//   size(i)          the number of coefficients of row i
//   for_each(i, f)   calls f(class, coefficient of row i in w_class)
//   centred()        whether to subtract the mean over the classes from every weight
//   reduced()        whether a feature has weights only for the classes, labels(i), of rows that have it
template <class T, class Coefs>
class FeatureWeights {
 public:
  FeatureWeights(const SparseRows<T>& columns, const Coefs& coef, int64_t classes)
      : columns_(columns), coef_(coef), classes_(classes), sums_(padded<T>(classes)), seen_(classes, false) {}

  void load(int64_t f) {
    clear();
    const int64_t terms = count_terms(f);
    few_ = are_few(terms) && !(coef_.centred() && terms > 0);
    for (int64_t e = columns_.ptr[f]; e < columns_.ptr[f + 1]; ++e) {
      const double x = columns_.value[e];
      const int32_t row = columns_.index[e];
      if (few_)
        coef_.for_each(row, [&](int32_t c, double v) {
          sums_[c] += x * v;
          touched_.push_back(c);
        });
      else
        coef_.for_each(row, [&](int32_t c, double v) { sums_[c] += x * v; });
    }
    if (coef_.centred() && !few_) centre();
    if (few_) sort_unique(touched_);
    if (coef_.reduced()) reduce(f);
  }

  // An upper bound on the number of weights of a feature that are not 0, at a fraction of the cost of
  // computing them.
  int64_t most_nonzeros(int64_t f) {
    const auto in_use = [&](auto see) {
      for (int64_t e = columns_.ptr[f]; e < columns_.ptr[f + 1]; ++e)
        if (coef_.reduced())
          for (int32_t c : coef_.labels(columns_.index[e])) see(seen_[c]);
        else
          coef_.for_each(columns_.index[e], [&](int32_t c, double) { see(seen_[c]); });
    };
    const int64_t terms = count_terms(f);
    if (coef_.centred() && terms > 0) return classes_;
    int64_t count = 0;
    if (are_few(terms)) {
      in_use([&](char& seen) {
        count += !seen;
        seen = true;
      });
      in_use([](char& seen) { seen = false; });
    } else {
      in_use([](char& seen) { seen = true; });
      for (char& seen : seen_) count += std::exchange(seen, false);
    }
    return count;
  }

  // Copies the non-zero weights as the model stores them, and returns their number; classes ascend.
  int64_t copy_sparse(int32_t* classes, T* values) const {
    const T* const first = values;
    const auto put = [&](int64_t c) {
      const T w = static_cast<T>(sums_[c]);
      if (w == 0) return;
      *classes++ = static_cast<int32_t>(c);
      *values++ = w;
    };
    if (few_) {
      for (int32_t c : touched_) put(c);
      return values - first;
    }
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      __m512i id = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      for (int64_t c = 0; c < sums_.size(); c += 16, id = _mm512_add_epi32(id, _mm512_set1_epi32(16))) {
        const __m256 low = _mm512_cvtpd_ps(_mm512_load_pd(sums_.data() + c));
        const __m256 high = _mm512_cvtpd_ps(_mm512_load_pd(sums_.data() + c + 8));
        const __m512 w = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
        const __mmask16 found = _mm512_cmp_ps_mask(w, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        _mm512_mask_compressstoreu_epi32(classes, found, id);
        _mm512_mask_compressstoreu_ps(values, found, w);
        classes += __builtin_popcount(found);
        values += __builtin_popcount(found);
      }
      return values - first;
    }
#endif
    for (int64_t c = 0; c < sums_.size(); ++c) put(c);
    return values - first;
  }

  void copy_dense(T* out) const {
    for (int64_t c = 0; c < classes_; ++c) out[c] = static_cast<T>(sums_[c]);
  }

  // f(class, weight in float64) for the weights that are not 0; classes ascend.
  void for_each(auto f) const {
    const int64_t many = few_ ? std::ssize(touched_) : sums_.size();
    for (int64_t j = 0; j < many; ++j) {
      const int32_t c = few_ ? touched_[j] : static_cast<int32_t>(j);
      if (sums_[c] != 0) f(c, sums_[c]);
    }
  }

  // Adds sum_c w_fc^2 for the weights in float64, and for the weights as the model stores them.
  void add_squares(double& exact, double& rounded) const {
    const int64_t many = few_ ? std::ssize(touched_) : sums_.size();
    double e = 0, r = 0;
#pragma omp simd reduction(+ : e, r)
    for (int64_t j = 0; j < many; ++j) {
      const double w = sums_[few_ ? touched_[j] : j], stored = static_cast<T>(w);
      e += w * w;
      r += stored * stored;
    }
    exact += e;
    rounded += r;
  }

 private:
  int64_t count_terms(int64_t f) const {
    int64_t terms = 0;
    for (int64_t e = columns_.ptr[f]; e < columns_.ptr[f + 1]; ++e) terms += coef_.size(columns_.index[e]);
    return terms;
  }
  bool are_few(int64_t terms) const { return terms * 16 < sums_.size(); }

  static void sort_unique(std::vector<int32_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
  }

  void reduce(int64_t f) {
    kept_.clear();
    for (int64_t e = columns_.ptr[f]; e < columns_.ptr[f + 1]; ++e)
      for (int32_t c : coef_.labels(columns_.index[e])) kept_.push_back(c);
    sort_unique(kept_);
    const auto keep = [&](int32_t c) {
      if (!std::binary_search(kept_.begin(), kept_.end(), c)) sums_[c] = 0;
    };
    if (few_)
      for (int32_t c : touched_) keep(c);
    else
      for (int64_t c = 0; c < classes_; ++c) keep(static_cast<int32_t>(c));
  }

  void centre() {
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += sums_[c];
    for (int64_t c = 0; c < classes_; ++c) sums_[c] -= sum / double(classes_);
  }

  void clear() {
    if (few_)
      for (int32_t c : touched_) sums_[c] = 0;
    else
      std::fill(sums_.data(), sums_.data() + sums_.size(), 0.0);
    touched_.clear();
  }

  const SparseRows<T>& columns_;
  const Coefs& coef_;
  const int64_t classes_;
  Buffer<double> sums_;
  bool few_ = true;               // whether only the classes in `touched_` may have a weight
  std::vector<int32_t> touched_;  // ascending
  std::vector<int32_t> kept_;     // reduce: the classes that have a weight
  std::vector<char> seen_;        // most_nonzeros: by class; all false in between
};

inline constexpr int64_t features_a_chunk = 64;

// Calls visit(feature, a FeatureWeights) for all features, on several threads. `visit` loads the feature.
template <class T, class Coefs, class F>
void for_each_feature(const SparseRows<T>& columns, const Coefs& coef, int64_t classes, int threads,
                      F visit) {
  using Weights = FeatureWeights<T, Coefs>;
  const int64_t features = std::ssize(columns.ptr) - 1;
  team_tasks((features + features_a_chunk - 1) / features_a_chunk, threads,
             [&] { return Weights(columns, coef, classes); },
             [&](int64_t chunk, Weights& weights) {
               const int64_t last = std::min(features, (chunk + 1) * features_a_chunk);
               for (int64_t f = chunk * features_a_chunk; f < last; ++f) visit(f, weights);
             });
}

}  // namespace manyclass
