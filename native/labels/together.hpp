// Trains a vector of labels (labels/elastic_net.hpp) together on all rows, one label per lane. This is for
// labels to which so many rows matter that searching for them does not pay. A row rests after a visit that
// changed none of its variables; when the active rows look done, all rows are visited again. Each label ends
// with its own certificate, in float64 over all rows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "binary/loss.hpp"
#include "binary/step.hpp"
#include "dual/certificate.hpp"
#include "labels/elastic_net.hpp"
#include "labels/inverted_index.hpp"
#include "labels/training.hpp"
#include "parallel/shuffle.hpp"
#include "rows/layout.hpp"
#include "simd/lane_masks.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"
#include "simd/wide.hpp"

namespace manyclass {

template <class T>
class LabelsTogether {
 public:
  static constexpr int width = Lanes<T>::count, L = Wide<T>::L, parts = Wide<T>::parts;

  explicit LabelsTogether(const LabelData<T>& data)
      : data_(data),
        X_(data.X),
        net_(data.net),
        v_((X_.n_features + 1) * width),
        exact_((X_.n_features + 1) * width),
        a_(X_.n_rows * width),
        curve_(X_.n_rows),
        own_(X_.n_rows) {
    for (int64_t i = 0; i < X_.n_rows; ++i) {
      double norm = net_.constant * net_.constant;
      for (int64_t e = X_.ptr[i]; e < X_.ptr[i + 1]; ++e) norm += double(X_.value[e]) * double(X_.value[e]);
      curve_[i] = usable_norm<T>(norm / net_.tau, Layout<T>::largest);
      if (curve_[i] > 0) filled_.push_back(static_cast<int32_t>(i));
    }
  }

  // Trains these labels, starting from the variables of their active rows, until all are done or
  // `most_passes` are over: a few hard labels are better trained alone after that. Sets their weights,
  // variables and certificates.
  void train(const std::vector<LabelTraining<T>*>& labels, const TrainingRule& rule, uint64_t seed,
             auto interrupted) {
    data_.squared ? train_with<Binary::squared_hinge>(labels, rule, seed, interrupted)
                  : train_with<Binary::hinge>(labels, rule, seed, interrupted);
  }

  int64_t bytes() const {
    return (v_.size() + a_.size()) * static_cast<int64_t>(sizeof(T)) +
           exact_.size() * static_cast<int64_t>(sizeof(double)) +
           static_cast<int64_t>(own_.size() * (sizeof(uint16_t) + sizeof(T) + sizeof(int32_t)));
  }

 private:
  // As in binary/training.hpp.
  static constexpr int64_t most_passes = 24;
  static constexpr double most_trusted = 0.2, nearly_all = 0.7, wake = 0.2;

  template <Binary loss, class Interrupted>
  void train_with(const std::vector<LabelTraining<T>*>& labels, const TrainingRule& rule, uint64_t seed,
                  Interrupted interrupted) {
    begin(labels);
    const int64_t many = std::ssize(labels);
    const auto is_warm = [](const LabelTraining<T>* label) { return label->warm(); };
    if (std::all_of(labels.begin(), labels.end(), is_warm) && certify<loss>(labels, rule, 1))
      return end(labels);
    std::vector<int32_t> active = filled_;
    double tol = rule.tol, last_of_all = 0;
    vec<T> last = {};
    for (int64_t pass = 1;; ++pass) {
      const double share = filled_.empty() ? 1 : double(active.size()) / double(filled_.size());
      shuffle(active, scramble(seed ^ scramble(labels[0]->label() * 0x10001 + pass)));
      const int64_t before = std::ssize(active);
      const LaneSums<T> seen = visit<loss>(active);
      for (LabelTraining<T>* label : labels) label->visited += static_cast<double>(before);
      bool quiet = true;
      double gap = 0;
      for (int64_t l = 0; l < many; ++l) {
        const double trust =
            last[l] > 0 ? std::clamp(double(seen.gaps[l] / last[l]), most_trusted, 1.0) : 1.0;
        const double primal = seen.losses[l] + seen.norms[l] / 2;
        quiet = quiet && (rule.by_gap ? seen.gaps[l] * trust <= tol * primal : seen.worst[l] <= tol);
        gap += seen.gaps[l];
      }
      last = seen.gaps;
      if (share == 1) last_of_all = gap;
      const bool last_pass = pass >= std::min(rule.limit, most_passes) || interrupted();
      if ((quiet && share >= (rule.by_gap ? nearly_all : 1)) || last_pass) {
        if (certify<loss>(labels, rule, pass) || last_pass) break;
        tol /= 2;
      }
      if (quiet || gap <= wake * last_of_all) active = filled_;
    }
    end(labels);
  }

  void begin(const std::vector<LabelTraining<T>*>& labels) {
    std::fill_n(a_.data(), a_.size(), T(0));
    std::fill(own_.begin(), own_.end(), uint16_t(0));
    for (size_t l = 0; l < labels.size(); ++l) {
      const int64_t c = labels[l]->label();
      for (int64_t e = data_.own_ptr[c]; e < data_.own_ptr[c + 1]; ++e)
        own_[data_.own[e]] |= static_cast<uint16_t>(1 << l);
      const ActiveRows<T>& rows = labels[l]->rows();
      for (int64_t r = 0; r < rows.count(); ++r)
        a_[int64_t(rows.row[r]) * width + l] = static_cast<T>(rows.a[r]);
    }
    // A row without features has margin 0, for which a = C_i is optimal.
    for (int64_t i = 0; i < X_.n_rows; ++i)
      if (curve_[i] == 0) store(a_.data() + i * width, vec<T>{} + static_cast<T>(data_.C[i]));
    set_exact();
    set_training_weights();
  }

  // HingeLoss has no factor 1/2 in the squared hinge, so C_i is halved here.
  template <Binary loss, class A>
  A penalty(int64_t i) const {
    return static_cast<A>(loss == Binary::squared_hinge ? data_.C[i] / 2 : data_.C[i]);
  }

  // Soft thresholding. During training, v_ holds v / tau, and the weights are soft(v / tau, lambda / tau).
  template <class A>
  static vec<A> soft(vec<A> v, A lambda) {
    const vec<A> zero = {}, high = zero + lambda, low = zero - lambda;
    const vec<A> capped = v < high ? v : high;
    return v - (capped > low ? capped : low);
  }

  template <Binary loss>
  LaneSums<T> visit(std::vector<int32_t>& active) {
    using Loss = BinaryLoss<loss>;
    const T lambda = static_cast<T>(net_.lambda / net_.tau), constant = static_cast<T>(net_.constant);
    const T rate = static_cast<T>(1 / net_.tau);
    T* const V = v_.data();
    T* const bias = V + X_.n_features * width;
    const int64_t count = std::ssize(active);
    int64_t kept = 0;
    LaneSums<T> seen;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = active[r];
      if (r + 2 < count) prefetch(active[r + 2]);
      const int64_t b = X_.ptr[i], e = X_.ptr[i + 1];
      vec<T> s = constant * load(bias);
      for (int64_t h = b; h < e; ++h)
        s += X_.value[h] * soft<T>(load(V + int64_t(X_.index[h]) * width), lambda);
      T* const at = a_.data() + i * width;
      const T C = penalty<loss, T>(i);
      const vec<T> a = load(at), t = signs_of_lanes<T>(own_[i]), m = s * t;
      const vec<T> next = Loss::best(a, m, curve_[i], C);
      seen.add(Loss::measure(a, m, C), a * m);
      if (!any_nonzero<T>(next - a)) continue;
      active[kept++] = static_cast<int32_t>(i);
      store(at, next);
      const vec<T> change = t * (next - a) * rate;
      for (int64_t h = b; h < e; ++h) {
        T* v = V + int64_t(X_.index[h]) * width;
        store(v, load(v) + X_.value[h] * change);
      }
      store(bias, load(bias) + constant * change);
    }
    active.resize(kept);
    return seen;
  }

  void prefetch(int64_t i) const {
    __builtin_prefetch(a_.data() + i * width);
    for (int64_t h = X_.ptr[i]; h < X_.ptr[i + 1]; ++h)
      __builtin_prefetch(v_.data() + int64_t(X_.index[h]) * width);
  }

  // Computes v from the variables, in float64.
  void set_exact() {
    std::fill_n(exact_.data(), exact_.size(), 0.0);
    for (int64_t i = 0; i < X_.n_rows; ++i) {
      const vec<T> a = load(a_.data() + i * width);
      if (!any_nonzero<T>(a)) continue;
      const Wide<T> wide(a * signs_of_lanes<T>(own_[i]));
      for (int64_t h = X_.ptr[i]; h < X_.ptr[i + 1]; ++h)
        wide.add_to(exact_.data() + int64_t(X_.index[h]) * width, X_.value[h]);
      wide.add_to(exact_.data() + X_.n_features * width, net_.constant);
    }
  }

  void set_training_weights() {
    for (int64_t at = 0; at < v_.size(); at += L)
      store_as<double>(v_.data() + at, load(exact_.data() + at) / net_.tau);
  }

  // Computes the certificates of all labels, and sets their weights, rounded as the model will store them.
  // Returns whether all labels are done. (v_ temporarily holds the rounded weights.)
  template <Binary loss>
  bool certify(const std::vector<LabelTraining<T>*>& labels, const TrainingRule& rule, int64_t pass) {
    using Loss = BinaryLoss<loss>;
    set_exact();
    Wide<T> primal, dual, worst;
    for (int64_t f = 0; f <= X_.n_features; ++f)
      for (int p = 0; p < parts; ++p) {
        const bool is_constant = f == X_.n_features;
        const int64_t at = f * width + p * L;
        const vec<double> v = load(exact_.data() + at);
        const vec<double> w = (is_constant ? v : soft<double>(v, net_.lambda)) / net_.tau;
        store_as<double>(v_.data() + at, w);
        const vec<double> stored = load_as<double>(v_.data() + at);
        if (!is_constant) primal.part[p] += net_.lambda * larger<double>(stored, -stored);
        primal.part[p] += net_.tau / 2 * stored * stored;
        dual.part[p] -= net_.tau / 2 * w * w;
      }
    for (int64_t i = 0; i < X_.n_rows; ++i) {
      Wide<T> s;
      for (int64_t h = X_.ptr[i]; h < X_.ptr[i + 1]; ++h)
        s.add_scaled(X_.value[h], v_.data() + int64_t(X_.index[h]) * width);
      const Wide<T> t(signs_of_lanes<T>(own_[i])), a(a_.data() + i * width),
          bias(v_.data() + X_.n_features * width);
      for (int p = 0; p < parts; ++p) {
        const vec<double> m = (s.part[p] + net_.constant * bias.part[p]) * t.part[p];
        const auto found = Loss::measure(a.part[p], m, penalty<loss, double>(i));
        primal.part[p] += found.loss;
        dual.part[p] += found.gain;
        worst.part[p] = larger<double>(worst.part[p], found.violation);
      }
    }
    bool all_done = true;
    for (size_t l = 0; l < labels.size(); ++l) {
      LabelTraining<T>& label = *labels[l];
      label.certificate = {primal[l], dual[l], worst[l]};
      label.rounds = pass;
      label.done = rule.met(label.certificate);
      all_done = all_done && label.done;
      keep_weights(label, l);
    }
    set_training_weights();
    return all_done;
  }

  void keep_weights(LabelTraining<T>& label, size_t l) const {
    label.weights = {};
    for (int64_t f = 0; f < X_.n_features; ++f) {
      const T w = v_[f * width + l];
      if (w == 0) continue;
      label.weights.feature.push_back(static_cast<int32_t>(f));
      label.weights.weight.push_back(static_cast<double>(w));
    }
    label.constant_weight = v_[X_.n_features * width + l];
  }

  void end(const std::vector<LabelTraining<T>*>& labels) {
    for (size_t l = 0; l < labels.size(); ++l) {
      labels[l]->together = true;
      labels[l]->variables.clear();
      for (int64_t i = 0; i < X_.n_rows; ++i)
        if (const T a = a_[i * width + l]; a != 0)
          labels[l]->variables.emplace_back(static_cast<int32_t>(i), static_cast<double>(a));
    }
  }

  const LabelData<T>& data_;
  const SparseRowsView<T>& X_;
  const ElasticNet net_;
  Buffer<T> v_;                  // v / tau, features x lanes
  Buffer<double> exact_;         // v in float64, for certificates
  Buffer<T> a_;                  // rows x lanes
  std::vector<T> curve_;         // by row: x.x / tau
  std::vector<uint16_t> own_;    // by row: the lanes whose label the row has
  std::vector<int32_t> filled_;  // the rows that have features, counting the constant one
};

}  // namespace manyclass
