// The max-margin loss with an elastic net (PD-Sparse; Yen et al., ICML 2016), by coordinate ascent on the
// dual, one row at a time:
//
//     P(W) = lambda sum_jc |w_jc| + tau/2 |W|^2
//            + sum_i C_i max(0, max_{n not in P_i} max_{p in P_i} 1 + s_in - s_ip),       s_i = W' x_i,
//     D(alpha) = sum_i sum_{p in P_i} alpha_ip - tau/2 |W|^2,
//     W = soft(V, lambda) / tau,   V = sum_i x_i u_i',   u_ip = alpha_ip,   u_in = -alpha_in,
//     alpha >= 0,   sum_{p in P_i} alpha_ip = sum_{n not in P_i} alpha_in <= C_i.
//
// P_i are the labels of row i. The constant feature has no l1 term. Rows with no labels, or with all of them,
// take no part.
//
//   for each wave of rows:
//     for each row:   propose the labels that violate most, by the sparse weights     threads share the rows
//     for each row:   add them to the labels in use, and solve for all of these       one row after another
//
// The dual is not quadratic, because weights of 0 have no curvature. Along the variables of a row its
// curvature is at most q = x.x / tau, and often far less. A step first assumes the share of q that the row's
// last step has found. If that lowers the dual, the step is undone and repeated with q itself, which always
// raises the dual. Labels whose variable becomes 0 are dropped. Between full passes, cheap ones do only the
// second part.
//
// The first part only proposes labels. Scores for these few labels are recomputed before a row moves, so the
// rows of a wave do not interfere, and the result does not depend on the number of threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "coupled/loss.hpp"
#include "dual/pass_stats.hpp"
#include "dual/rows.hpp"
#include "max_margin/certificate.hpp"
#include "max_margin/equal_sums.hpp"
#include "max_margin/shrunk_rows.hpp"
#include "max_margin/touched_scores.hpp"
#include "parallel/shuffle.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/row_labels.hpp"

namespace manyclass {

template <class T>
class MaxMarginSolver {
 public:
  // constant: the index of the constant feature, or -1.
  MaxMarginSolver(Layout<T> layout, RowLabels labels, std::vector<T> C, int64_t classes, double lambda,
                  double tau, int64_t constant)
      : rows_(std::move(layout)),
        labels_(std::move(labels)),
        C_(std::move(C)),
        K_(classes),
        net_{lambda, tau, constant},
        alpha_(rows_.n),
        V_(rows_.heads()),
        ease_(rows_.n, T(1)) {
    for (int64_t h = 0; h < rows_.heads(); ++h)
      V_[h].set_lambda(static_cast<T>(net_.lambda_of(rows_.head_features[h])));
  }

  // Resets the sums of the pass.
  void begin_pass() { seen_ = {}; }

  // Visits rows once. In a full sweep at most `most_new` new labels join each row; otherwise only those in
  // use move. Returns the sums of the pass so far, each row measured just before its own step.
  PassStats sweep(const int64_t* order, int64_t count, int64_t wave, bool full, int64_t most_new,
                  uint64_t seed, int threads) {
    std::vector<std::vector<int32_t>> proposed(full ? wave : 1);
    SubProblem sub;
    Team team(full ? threads : 1);
    team.run([&](int me) {
      Scratch mine(full ? K_ : 0);
      for (int64_t first = 0; first < count; first += wave) {
        const int64_t last = std::min(count, first + wave);
        team.meet();
        if (full)
          team.share_out(last - first, me,
                         [&](int64_t r) { propose(order[first + r], most_new, seed, mine, proposed[r]); });
        team.meet();
        if (me != 0) continue;
        for (int64_t r = first; r < last; ++r) step(order[r], proposed[full ? r - first : 0], sub);
      }
    });
    return seen_;
  }

  // Recomputes V from the dual variables, without accumulated rounding errors and without labels that no row
  // uses any more.
  void refresh(int threads) {
    certifier().sums(threads,
                     [&](int64_t h, const auto& labels, const auto& v) { V_[h].assign(labels, v, K_); });
  }
  // The number of values of V.
  int64_t entries() const {
    return total_of(V_, [](const auto& row) { return row.size(); });
  }

  Certificate certify(int threads) {
    const auto certificate = certifier();
    const SparseModel<T> model = certificate.model(threads);
    squares_ = model.squares;
    return certificate.certify(model, threads);
  }
  SparseModel<T> model(int threads) const { return certifier().model(threads); }

  const Layout<T>& rows() const { return rows_; }
  // After changes, call `refresh`: V still belongs to the old variables.
  DualRows<T>& alpha() { return alpha_; }
  int64_t classes() const { return K_; }
  T penalty(int64_t i) const { return C_[i]; }

  // V, with the rounding errors of every step, and everything else that a fit needs to resume with the same
  // bits.
  std::vector<ShrunkRow<T>>& sums() { return V_; }
  std::vector<T>& ease() { return ease_; }
  double squares() const { return squares_; }
  PassStats seen() const { return seen_; }
  void set_pass(double squares, const PassStats& seen) {
    squares_ = squares;
    seen_ = seen;
  }
  int64_t weight_bytes() const {
    return total_of(V_, [](const auto& row) { return row.bytes(); });
  }
  // sum_p alpha_p - tau/2 |W|^2
  double dual_value(double alpha_sum) const { return alpha_sum - squares_ / (2 * net_.tau); }

 private:
  // The sub-problem of a row: all of its own labels, then some others.
  struct SubProblem {
    std::vector<int32_t> label;
    std::vector<T> a;
    std::vector<double> s, v;
    int64_t own = 0;

    int64_t size() const { return std::ssize(label); }
    void add(int32_t c, T value) {
      label.push_back(c);
      a.push_back(value);
    }
    double sign(int64_t e) const { return e < own ? 1 : -1; }
    EqualSums equal;
    std::vector<T> change;
  };

  struct Scratch {
    explicit Scratch(int64_t K) : s(K) {}
    TouchedScores<T> s;
    SubProblem sub;
  };

  MaxMarginCertificate<T> certifier() const { return {rows_, labels_, C_, alpha_, K_, net_}; }

  bool takes_part(int64_t i) const {
    return labels_.size(i) > 0 && labels_.size(i) < K_ && rows_.norm[i] > 0 && C_[i] > 0;
  }

  // Collects the row's own labels and those in use.
  void gather(int64_t i, SubProblem& sub) const {
    const auto own = labels_(i);
    sub.label.assign(own.begin(), own.end());
    sub.own = sub.size();
    sub.a.assign(sub.own, T(0));
    const auto alpha = alpha_[i];
    for (int32_t e = 0; e < alpha.size; ++e) {
      const auto at = std::lower_bound(own.begin(), own.end(), alpha.classes[e]);
      if (at != own.end() && *at == alpha.classes[e])
        sub.a[at - own.begin()] = alpha.values[e];
      else
        sub.add(alpha.classes[e], alpha.values[e]);
    }
  }

  // Adds the scores of features that only this row has; their weights follow from its own variables.
  void add_single_scores(int64_t i, SubProblem& sub) const {
    const int64_t first = rows_.single_ptr[i], last = rows_.single_ptr[i + 1];
    for (int64_t e = 0; e < sub.size() && first < last; ++e) {
      if (sub.a[e] == 0) continue;
      const double u = sub.sign(e) * sub.a[e];
      double sum = 0;
      for (int64_t j = first; j < last; ++j) {
        const double x = rows_.single_value[j];
        sum += x * soft(x * u, net_.lambda);
      }
      sub.s[e] += sum / net_.tau;
    }
  }

  // An upper bound of the curvature of the dual along the variables of a row.
  double curvature(int64_t i) const { return workable_curvature<double>(rows_.norm[i] / net_.tau, C_[i]); }

  Cuts solve(int64_t i, double q, SubProblem& sub) const {
    sub.v.resize(sub.size());
    for (int64_t e = 0; e < sub.size(); ++e)
      sub.v[e] = sub.a[e] + (e < sub.own ? 1 - sub.s[e] : sub.s[e]) / q;
    return sub.equal.solve(sub.v.data(), sub.own, sub.v.data() + sub.own, sub.size() - sub.own, C_[i]);
  }

  // Leaves out features that only this row has: labels that are not in use have no weights for them.
  void score(int64_t i, TouchedScores<T>& s) const {
    const int64_t begin = rows_.head_ptr[i], end = rows_.head_ptr[i + 1];
    int64_t reads = 0;
    for (int64_t h = begin; h < end; ++h) reads += V_[rows_.head_index[h]].reads();
    s.begin(reads);
    const T by = static_cast<T>(1 / net_.tau);
    for (int64_t h = begin; h < end; ++h)
      V_[rows_.head_index[h]].add_to(rows_.head_value[h] * by, s.data(), [&](int32_t c) { s.touch(c); });
  }

  // Proposes the labels with the largest scores that are not in use and would get a positive variable. Ties,
  // which are common early on, go to the labels that come first after a random one.
  void propose(int64_t i, int64_t most_new, uint64_t seed, Scratch& mine, std::vector<int32_t>& out) const {
    out.clear();
    if (!takes_part(i)) return;
    auto& s = mine.s;
    score(i, s);
    auto& sub = mine.sub;
    gather(i, sub);
    sub.s.resize(sub.size());
    for (int64_t e = 0; e < sub.size(); ++e) sub.s[e] = s[sub.label[e]];
    add_single_scores(i, sub);
    const double q = curvature(i);
    const T floor = static_cast<T>(q * solve(i, q, sub).others);
    for (int32_t c : sub.label) s.set(c, -std::numeric_limits<T>::infinity());

    const auto start =
        static_cast<int32_t>(scramble(seed ^ static_cast<uint64_t>(i)) % static_cast<uint64_t>(K_));
    s.collect(floor, most_new, start, out);
    std::sort(out.begin(), out.end());
  }

  void step(int64_t i, const std::vector<int32_t>& proposed, SubProblem& sub) {
    if (!takes_part(i)) return;
    gather(i, sub);
    for (int32_t c : proposed) sub.add(c, T(0));
    sub.s.assign(sub.size(), 0.0);
    const int64_t begin = rows_.head_ptr[i], end = rows_.head_ptr[i + 1];
    for (int64_t h = begin; h < end; ++h) {
      const auto& row = V_[rows_.head_index[h]];
      const double x = rows_.head_value[h] / net_.tau;
      for (int64_t e = 0; e < sub.size(); ++e) sub.s[e] += x * row.shrunk(sub.label[e]);
    }
    add_single_scores(i, sub);
    see(i, sub);
    if (sub.size() > sub.own) ascend(i, sub);
    for (int64_t e = 0; e < sub.own; ++e) seen_.alpha_sum += sub.a[e];
  }

  // Adds the loss, gap and violation of a row before its step. (Its variables are added after the step, so
  // that the dual value is that of the end of the pass.)
  void see(int64_t i, const SubProblem& sub) {
    RowView<T> view(C_[i]);
    for (int64_t e = 0; e < sub.size(); ++e)
      e < sub.own ? view.see_own(sub.s[e], sub.a[e]) : view.see_other(sub.s[e], sub.a[e]);
    seen_.loss += C_[i] * view.loss();
    seen_.gap += view.gap();
    seen_.violation = std::max(seen_.violation, view.violation());
  }

  // The increase of the dual along a step, the decrease of its slope, and the squared length of the step.
  struct Along {
    double gain = 0, curvature = 0, square = 0;
  };

  void ascend(int64_t i, SubProblem& sub) {
    const double q = curvature(i);
    set_steps(solve(i, ease_[i] * q, sub), sub);
    Along along = move(i, sub);
    if (along.gain < 0 && ease_[i] < 1) {  // the curvature is larger than at the last visit
      for (T& change : sub.change) change = -change;
      move(i, sub);
      ease_[i] = 1;
      set_steps(solve(i, q, sub), sub);
      along = move(i, sub);
    }
    if (net_.lambda > 0 && tells_curvature(along, sub))
      ease_[i] = static_cast<T>(std::clamp(along.curvature / (along.square * q), least_ease, 1.0));
    if (along.square > 0) alpha_.assign(i, sub.label.data(), sub.a.data(), sub.size());
  }

  // Whether a step was long enough for the rounding of V to be negligible.
  static bool tells_curvature(const Along& along, const SubProblem& sub) {
    constexpr double share = 1e3 * double(std::numeric_limits<T>::epsilon());
    double square = 0;
    for (T a : sub.a) square += double(a) * a;
    return along.square > share * share * square;
  }

  void set_steps(const Cuts& cuts, SubProblem& sub) const {
    sub.change.resize(sub.size());
    for (int64_t e = 0; e < sub.size(); ++e) {
      const double to = std::max(0.0, sub.v[e] - (e < sub.own ? cuts.own : cuts.others));
      sub.change[e] = static_cast<T>(to) - sub.a[e];
    }
  }

  // a += change, and V with it.
  Along move(int64_t i, SubProblem& sub) {
    Along along;
    double squares = 0;
    const auto see = [&](double x, double u, double before, double after) {
      squares += after * after - before * before;
      along.curvature += x * u * (after - before) / net_.tau;
    };
    for (int64_t e = 0; e < sub.size(); ++e) {
      const double u = sub.sign(e) * sub.change[e], was = sub.sign(e) * sub.a[e];
      along.square += u * u;
      if (e < sub.own) along.gain += u;
      sub.a[e] += sub.change[e];
      for (int64_t j = rows_.single_ptr[i]; u != 0 && j < rows_.single_ptr[i + 1]; ++j) {
        const double x = rows_.single_value[j];
        see(x, u, soft(x * was, net_.lambda), soft(x * sub.sign(e) * sub.a[e], net_.lambda));
      }
    }
    if (along.square == 0) return along;
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
      auto& row = V_[rows_.head_index[h]];
      const T x = rows_.head_value[h];
      for (int64_t e = 0; e < sub.size(); ++e) {
        if (sub.change[e] == 0) continue;
        const T u = e < sub.own ? sub.change[e] : -sub.change[e];
        const auto [before, after] = row.add(sub.label[e], x * u, K_);
        see(x, u, before, after);
      }
    }
    squares_ += squares;
    along.gain -= squares / (2 * net_.tau);
    return along;
  }

  static constexpr double least_ease = 0.05;  // the curvature beyond the last step may be larger

  const Layout<T> rows_;
  const RowLabels labels_;
  const std::vector<T> C_;
  const int64_t K_;
  const MaxMarginPenalty net_;
  DualRows<T> alpha_;
  std::vector<ShrunkRow<T>> V_;  // by head feature
  std::vector<T> ease_;  // by row, the curvature found by its last step, as a share of the upper bound
  double squares_ = 0;   // |soft(V, lambda)|^2, updated with every step
  PassStats seen_;
};

}  // namespace manyclass
