// Weston-Watkins by matches of leagues (groups of classes), after the schedule of Alber, Zimmert, Dogan and
// Kloft (Distributed optimization of multi-class SVMs, 2016), but with all variables between a row and a
// league as one step.
//
//   A match (A, B) visits each row i of A with its variables alpha_ic, c in B, and each row of B with those
//   for A. A visit solves the sub-problem of coupled/relative_margin.hpp over these classes:
//       v_c = alpha_ic - ((w_y - w_c).x_i - 1) / k_i,    beta_c = clip(v_c - tau, 0, C_i)
//       w_y += (sum of the changes) x_i,    w_c -= (change of alpha_ic) x_i
//   It reads and writes only the weights of A and B and these variables. So matches without a common league
//   run in parallel, and the result does not depend on the threads.
//
//   Shrinking: between full passes, a row is visited only for the classes with positive variables, and it
//   rests for a league if its last visit there found little to do.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "coupled/loss.hpp"
#include "coupled/step.hpp"
#include "dual/pass_stats.hpp"
#include "dual/rows.hpp"
#include "leagues/certificate.hpp"
#include "leagues/league.hpp"
#include "leagues/parcel.hpp"
#include "parallel/shuffle.hpp"
#include "parallel/team.hpp"
#include "rows/layout.hpp"
#include "rows/scores.hpp"
#include "simd/memory.hpp"
#include "simd/vector.hpp"

namespace manyclass {

struct MatchStats : PassStats {
  int64_t visits = 0;
};

template <class T>
class Leagues {
 public:
  // `full`, `enter` and `most_new` as in Visit.
  struct Rules {
    bool full;
    T enter;
    int64_t most_new;
    bool by_gap;    // whether `rest` bounds the gap that a visit finds, or its largest violation
    double rest;    // a row rests if its visit finds at most this
    uint64_t seed;  // of this pass
  };

  // league: the league of each class.
  Leagues(Layout<T> layout, std::vector<int32_t> labels, std::vector<T> C, const std::vector<int32_t>& league,
          int64_t leagues)
      : rows_(std::move(layout)),
        y_(std::move(labels)),
        C_(std::move(C)),
        place_(league.size()),
        single_norm_(rows_.n, T(0)),
        leagues_(leagues) {
    for (int64_t i = 0; i < rows_.n; ++i) {
      double norm = 0;
      for (int64_t j = rows_.single_ptr[i]; j < rows_.single_ptr[i + 1]; ++j)
        norm += double(rows_.single_value[j]) * rows_.single_value[j];
      single_norm_[i] = static_cast<T>(norm);
    }
    divide(league);
  }

  // Assigns the classes to leagues anew. All leagues lose their weights and variables, and must be started
  // again where they are needed.
  void divide(const std::vector<int32_t>& league) {
    league_ = league;
    for (auto& l : leagues_) l = {};
    duels_.clear();
    duels_.resize(leagues() * leagues());
    for (size_t c = 0; c < league.size(); ++c) {
      auto& classes = leagues_[league[c]].classes;
      place_[c] = static_cast<int32_t>(classes.size());
      classes.push_back(static_cast<int32_t>(c));
    }
    for (auto& l : leagues_) l.stride = padded<T>(l.size());
    for (int64_t i = 0; i < rows_.n; ++i) leagues_[league[y_[i]]].members.push_back(static_cast<int32_t>(i));
  }

  Leagues(const Leagues&) = delete;

  // Plays matches that have no league in common. A match of a league with itself visits its rows with its own
  // classes.
  std::vector<MatchStats> play(const std::vector<std::pair<int32_t, int32_t>>& matches, const Rules& rules,
                               int threads) {
    std::vector<MatchStats> stats(matches.size());
    for (const auto& [a, b] : matches) {
      if (!leagues_[a].here || !leagues_[b].here) throw std::logic_error("a league is at another worker");
      duel(a, b);
      duel(b, a);
    }
    team_tasks(std::ssize(matches), threads,
               [&](int64_t m) { stats[m] = play_match(matches[m].first, matches[m].second, rules); });
    return stats;
  }

  const Layout<T>& rows() const { return rows_; }
  const std::vector<int32_t>& labels() const { return y_; }
  const std::vector<T>& penalties() const { return C_; }
  League<T>& league(int64_t l) { return leagues_[l]; }
  const std::vector<League<T>>& all() const { return leagues_; }
  int64_t leagues() const { return std::ssize(leagues_); }
  int64_t classes() const { return std::ssize(league_); }

  // Leagues come and go in turns: each reuses the memory of one that has left.
  void leave(League<T>& league) {
    if (!league.here) return;
    left_.push_back({std::move(league.W), std::move(league.tail)});
    league.here = false;
  }
  void unpack(int64_t l, const uint8_t* from, size_t size) {
    if (!leagues_[l].here) {
      LeagueMemory<T> left;
      if (!left_.empty()) {
        left = std::move(left_.back());
        left_.pop_back();
      }
      leagues_[l].start_in(std::move(left), rows_);
    }
    LeagueParcel<T>::unpack(from, size, leagues_[l], rows_);
  }

  // The variables of the rows of league a for the classes of league b.
  struct Duel {
    Duel(int64_t rows) : alpha(rows), rests(rows, 0) {}
    DualRows<T> alpha;           // classes are numbered by their places in b
    std::vector<uint8_t> rests;  // until the next full pass
  };
  Duel& duel(int64_t a, int64_t b) {
    auto& found = duels_[a * leagues() + b];
    if (!found) found = std::make_unique<Duel>(std::ssize(leagues_[a].members));
    return *found;
  }
  const Duel* duel_if_any(int64_t a, int64_t b) const { return duels_[a * leagues() + b].get(); }
  const std::vector<std::unique_ptr<Duel>>& duels() const { return duels_; }  // null if there was no match

  // Recomputes the weights of the leagues that are here from all variables, without accumulated rounding
  // errors. Returns 1/2 |w|^2 by league, as it enters a certificate; 0 for leagues elsewhere.
  std::vector<Certificate> refresh(const DualRows<T>& alpha, int threads) {
    const auto certificate = certificate_of(alpha);
    std::vector<Certificate> found(leagues());
    team_tasks(leagues(), threads, [&](int64_t l) {
      if (leagues_[l].here) found[l] = certificate.set_weights(static_cast<int32_t>(l), leagues_[l]);
    });
    return found;
  }

  // With the weights of `refresh`: the scores of league l's rows for their own classes and, given these for
  // all rows, the contribution of the classes of league l to a certificate, by parts of the rows.
  std::vector<double> own_scores(int64_t l, const DualRows<T>& alpha) const {
    return certificate_of(alpha).own_scores(leagues_[l]);
  }
  std::vector<Certificate> certify(int32_t l, const DualRows<T>& alpha, const double* own,
                                   int threads) const {
    const auto certificate = certificate_of(alpha);
    std::vector<Certificate> found(certificate.parts());
    team_tasks(certificate.parts(), threads,
               [&](int64_t part) { found[part] = certificate.certify(l, leagues_[l], part, own); });
    return found;
  }

  // Sets the variables of the rows of league a for the classes of league b, from all variables.
  void set_duel(int64_t a, int64_t b, const DualRows<T>& alpha) {
    Duel& to = duel(a, b);
    std::vector<int32_t> classes;
    std::vector<T> values;
    for (size_t m = 0; m < leagues_[a].members.size(); ++m) {
      const auto held = alpha[leagues_[a].members[m]];
      classes.clear();
      values.clear();
      for (int32_t e = 0; e < held.size; ++e) {
        if (league_[held.classes[e]] != b) continue;
        classes.push_back(place_[held.classes[e]]);
        values.push_back(held.values[e]);
      }
      to.alpha.assign(static_cast<int64_t>(m), classes.data(), values.data(), std::ssize(values));
      to.rests[m] = 0;
    }
  }

 private:
  LeagueCertificate<T> certificate_of(const DualRows<T>& alpha) const {
    return {rows_, y_, C_, league_, place_, alpha};
  }

  struct Scratch {
    Scratch(const CoupledLoss& loss, int64_t others, int64_t most)
        : solver(loss, others, padded<T>(others)), scores(padded<T>(most) + Lanes<T>::count) {}
    RowSolver<T> solver;
    Buffer<T> scores;
    RowStep<T> step;
    std::vector<int32_t> changed;
    std::vector<T> change;
  };

  MatchStats play_match(int32_t a, int32_t b, const Rules& rules) {
    // Members of a are numbered from 0, those of b from `first`.
    const int32_t first = static_cast<int32_t>(leagues_[a].members.size());
    std::vector<int32_t> order;
    const auto enlist = [&](int32_t of, int32_t against, int32_t begin) {
      const Duel& duel = *duels_[of * leagues() + against];
      for (size_t m = 0; m < duel.rests.size(); ++m)
        if (rules.full || (duel.alpha[m].size > 0 && !duel.rests[m]))
          order.push_back(begin + static_cast<int32_t>(m));
    };
    enlist(a, b, 0);
    if (a != b) enlist(b, a, first);
    shuffle(order, scramble(rules.seed ^ scramble(static_cast<uint64_t>(a) * 0x100001 + b)));
    MatchStats stats;
    const CoupledLoss loss = CoupledLoss::named("ww", classes(), 0.5);
    // The row's own class counts as one more class after those of the other league.
    Scratch of_a(loss, leagues_[b].size() + (a != b), leagues_[b].size() + 1);
    Scratch of_b(loss, leagues_[a].size() + 1, leagues_[a].size() + 1);
    for (int32_t o : order)
      if (o < first)
        visit(o, leagues_[a], leagues_[b], *duels_[a * leagues() + b], rules, of_a, stats);
      else
        visit(o - first, leagues_[b], leagues_[a], *duels_[b * leagues() + a], rules, of_b, stats);
    return stats;
  }

  // Sets the scores s of row i for the classes of `other`; returns that for its own class y of `mine`. Leaves
  // out the features that only this row has.
  T score_all(int64_t i, int32_t y, const League<T>& mine, const League<T>& other, T* s) const {
    score_rows(rows_, i, i + 1, other.W.data(), other.stride, s);
    score_tail(i, other, s);
    return &mine == &other ? s[y] : own_score(i, y, mine);
  }

  T own_score(int64_t i, int32_t y, const League<T>& mine) const {
    T own = 0;
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h)
      own += rows_.head_value[h] * mine.W[rows_.head_index[h] * mine.stride + y];
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t)
      own += rows_.tail_value[t] * mine.tail.find(rows_.tail_index[t], y);
    return own;
  }

  void score_tail(int64_t i, const League<T>& league, T* s) const {
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t) {
      const auto list = league.tail[rows_.tail_index[t]];
      for (int32_t e = 0; e < list.size; ++e) s[list.classes[e]] += rows_.tail_value[t] * list.values[e];
    }
  }

  // s_c for M classes, from the head.
  template <int M>
  void score_few(int64_t i, const League<T>& league, const int32_t* classes, T* s) const {
    T sum[M] = {};
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
      const T* w = league.W.data() + rows_.head_index[h] * league.stride;
      for (int m = 0; m < M; ++m) sum[m] += rows_.head_value[h] * w[classes[m]];
    }
    for (int m = 0; m < M; ++m) s[classes[m]] = sum[m];
  }

  // Like `score_all`, for the classes in use only.
  T score_in_use(int64_t i, int32_t y, const League<T>& mine, const League<T>& other,
                 const typename DualRows<T>::Row& held, T* s) const {
    int32_t v = 0;
    for (; v + 4 <= held.size; v += 4) score_few<4>(i, other, held.classes + v, s);
    for (; v < held.size; ++v) score_few<1>(i, other, held.classes + v, s);
    score_tail(i, other, s);  // also writes to other classes, which are never read
    return own_score(i, y, mine);
  }

  // Visits row `member` of league `mine` with its variables for the classes of league `other`.
  void visit(int32_t member, League<T>& mine, League<T>& other, Duel& duel, const Rules& rules,
             Scratch& scratch, MatchStats& stats) {
    const int64_t i = mine.members[member];
    const T k = rows_.norm[i];
    if (k == 0) return;
    const int32_t y = place_[y_[i]];
    const bool inner = &mine == &other;
    const int32_t label = inner ? y : static_cast<int32_t>(other.size());
    const auto held = duel.alpha[member];
    T* s = scratch.scores.data();
    T own = rules.full ? score_all(i, y, mine, other, s) : score_in_use(i, y, mine, other, held, s);
    if (single_norm_[i] > 0) {
      for (int32_t v = 0; v < held.size; ++v) s[held.classes[v]] -= single_norm_[i] * held.values[v];
      own += single_norm_[i] * mine.sums[member];
    }
    // No positive variable, and no class violates the margin: nothing to solve.
    if (rules.full && held.size == 0 && !inner && largest_of(s, other.stride) <= own - 1) {
      duel.rests[member] = 1;
      ++stats.visits;
      return;
    }
    s[label] = own;

    RowStep<T>& step = scratch.step;
    step.row = i;
    scratch.solver.solve(step, {held, label, C_[i], k}, s, {rules.full, rules.enter, rules.most_new});
    stats.add(step.stats);
    ++stats.visits;
    duel.rests[member] = (rules.by_gap ? step.stats.gap : step.stats.violation) <= rules.rest;
    if (!step.changed) return;
    scratch.changed.clear();
    scratch.change.clear();
    step.for_each_change(label, classes(), [&](int32_t c, T change) {
      if (c == label) return;
      scratch.changed.push_back(c);
      scratch.change.push_back(change);
    });
    const size_t changes = scratch.changed.size();
    for (int64_t h = rows_.head_ptr[i]; h < rows_.head_ptr[i + 1]; ++h) {
      T* w = other.W.data() + rows_.head_index[h] * other.stride;
      const T x = rows_.head_value[h];
      for (size_t q = 0; q < changes; ++q) w[scratch.changed[q]] += x * scratch.change[q];
      mine.W[rows_.head_index[h] * mine.stride + y] += x * step.own_change;
    }
    for (int64_t t = rows_.tail_ptr[i]; t < rows_.tail_ptr[i + 1]; ++t) {
      const T x = rows_.tail_value[t];
      const int32_t feature = rows_.tail_index[t];
      for (size_t q = 0; q < changes; ++q) other.tail.add(feature, scratch.changed[q], x * scratch.change[q]);
      mine.tail.add(feature, y, x * step.own_change);
    }
    mine.sums[member] += step.own_change;
    duel.alpha.assign(member, step.classes.data(), step.after.data(), std::ssize(step.after));
  }

  Layout<T> rows_;
  std::vector<int32_t> y_;
  std::vector<T> C_;
  std::vector<int32_t> league_, place_;  // by class: its league, and its place there
  std::vector<T> single_norm_;           // by row: the part of k_i from features that only this row has
  std::vector<League<T>> leagues_;
  std::vector<LeagueMemory<T>> left_;
  std::vector<std::unique_ptr<Duel>> duels_;
};

}  // namespace manyclass
