// The active rows of a label: the few rows on which it is trained. They are copied out of the data, with
// their features renumbered, so that a pass over them reads little memory in one place.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "labels/elastic_net.hpp"
#include "labels/inverted_index.hpp"
#include "parallel/shuffle.hpp"

namespace manyclass {

// Sums over the rows of a pass, each measured before its step.
struct PassSums {
  double loss = 0, gap = 0;
};

template <class T>
class ActiveRows {
 public:
  explicit ActiveRows(const ElasticNet& net) : net_(net) {}

  int64_t count() const { return std::ssize(row); }
  int64_t features() const { return std::ssize(feature); }

  // place: maps the number of a feature in the data to its number here, or to -1 if it has none yet. The
  // caller keeps it from the first call to the last.
  void add(const SparseRowsView<T>& X, int32_t i, bool positive, double C, double variable,
           std::vector<int32_t>& place) {
    double norm = net_.constant * net_.constant;
    for (int64_t e = X.ptr[i]; e < X.ptr[i + 1]; ++e) {
      if (X.value[e] == 0) continue;
      int32_t& at = place[X.index[e]];
      if (at < 0) {
        at = static_cast<int32_t>(feature.size());
        feature.push_back(X.index[e]);
        v.push_back(0);
        w.push_back(0);
      }
      index_.push_back(at);
      value_.push_back(X.value[e]);
      norm += double(X.value[e]) * double(X.value[e]);
    }
    end_.push_back(std::ssize(index_));
    row.push_back(i);
    sign.push_back(positive ? 1 : -1);
    a.push_back(variable);
    C_.push_back(C);
    curve_.push_back(norm / net_.tau);
  }

  // Recomputes the weights from the variables, without accumulated rounding errors.
  void refresh() {
    std::fill(v.begin(), v.end(), 0.0);
    v_constant = 0;
    for (int64_t r = 0; r < count(); ++r)
      if (a[r] != 0) move<false>(r, sign[r] * a[r]);
    for (int64_t f = 0; f < features(); ++f) w[f] = net_.weight(v[f]);
  }

  double bias() const { return v_constant / net_.tau; }

  template <bool squared>
  PassSums pass(uint64_t seed) {
    using Loss = SparseLoss<squared>;
    PassSums sums;
    order_.resize(row.size());
    std::iota(order_.begin(), order_.end(), 0);
    shuffle(order_, scramble(seed));
    for (int32_t r : order_) {
      const double m = sign[r] * score(r), C = C_[r], before = a[r];
      sums.loss += Loss::loss(m, C);
      sums.gap += Loss::gap(before, m, C);
      const double next = Loss::best(before, m, curve_[r], C);
      if (next == before) continue;
      a[r] = next;
      move<true>(r, sign[r] * (next - before));
    }
    return sums;
  }

  // The score of row r without the constant, where weight(f) is the weight of feature f here.
  double score_with(int64_t r, auto weight) const {
    double s = 0;
    for (int64_t e = begin(r); e < end_[r]; ++e) s += weight(index_[e]) * double(value_[e]);
    return s;
  }

  double penalty_of(int64_t r) const { return C_[r]; }

  // Removes the rows for which keep(r) is false. Their variables must be 0.
  void keep_only(auto keep) {
    int64_t to = 0, to_entry = 0, from = 0;
    for (int64_t r = 0; r < count(); ++r) {
      const int64_t stop = end_[r];
      if (keep(r)) {
        for (int64_t e = from; e < stop; ++e, ++to_entry) {
          index_[to_entry] = index_[e];
          value_[to_entry] = value_[e];
        }
        row[to] = row[r];
        sign[to] = sign[r];
        a[to] = a[r];
        C_[to] = C_[r];
        curve_[to] = curve_[r];
        end_[to++] = to_entry;
      }
      from = stop;
    }
    for (auto* one : {&a, &C_, &curve_}) one->resize(to);
    row.resize(to);
    sign.resize(to);
    end_.resize(to);
    index_.resize(to_entry);
    value_.resize(to_entry);
  }

  std::vector<int32_t> row;
  std::vector<int8_t> sign;
  std::vector<double> a;
  std::vector<int32_t> feature;
  std::vector<double> v, w;  // by feature here
  double v_constant = 0;

 private:
  int64_t begin(int64_t r) const { return r == 0 ? 0 : end_[r - 1]; }

  double score(int64_t r) const {
    double s = net_.constant * v_constant / net_.tau;
    for (int64_t e = begin(r); e < end_[r]; ++e) s += w[index_[e]] * double(value_[e]);
    return s;
  }

  // v += by x_r, and the weights with it.
  template <bool with_weights>
  void move(int64_t r, double by) {
    v_constant += by * net_.constant;
    for (int64_t e = begin(r); e < end_[r]; ++e) {
      double& at = v[index_[e]];
      at += by * double(value_[e]);
      if (with_weights) w[index_[e]] = net_.weight(at);
    }
  }

  ElasticNet net_;
  std::vector<int64_t> end_;
  std::vector<int32_t> index_;
  std::vector<T> value_;
  std::vector<double> C_, curve_;
  std::vector<int32_t> order_;
};

}  // namespace manyclass
