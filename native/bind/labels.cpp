// Bindings of labels with an elastic net (labels/blocks.hpp).
#include <cstdint>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "bind/bindings.hpp"
#include "bind/deal.hpp"
#include "labels/blocks.hpp"
#include "parallel/interrupt.hpp"

namespace manyclass {

namespace {

// Returns freed memory to the system; glibc would keep what was freed in small pieces.
void give_back_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// The weights (features x labels), dense or sparse as in `model_weights`. Sparse ones are moved out of the
// blocks, which are empty afterwards.
template <class T>
nb::object label_weights(LabelBlocks<T>& labels) {
  const bool constant = labels.data().net.constant != 0;
  const int64_t features = labels.data().X.n_features + constant, K = labels.labels();
  std::vector<int64_t> ptr(features + 1, 0);
  const auto for_each = [&](int64_t b, auto f) {
    const BlockOfLabels<T>& block = labels.block(b);
    for (int64_t l = 0; l < std::ssize(block.constant); ++l) {
      for (int64_t e = block.weight_ptr[l]; e < block.weight_ptr[l + 1]; ++e)
        f(block.feature[e], labels.first(b) + l, block.weight.empty() ? T(1) : block.weight[e]);
      if (constant && block.constant[l] != 0) f(features - 1, labels.first(b) + l, block.constant[l]);
    }
  };
  for (int64_t b = 0; b < labels.blocks(); ++b) for_each(b, [&](int64_t f, int64_t, T) { ++ptr[f + 1]; });
  for (int64_t f = 0; f < features; ++f) ptr[f + 1] += ptr[f];
  const int64_t nonzeros = ptr.back();
  if (stored_dense<T>(features, K, nonzeros)) {
    auto W = new_array<T>({features, K});
    for (int64_t b = 0; b < labels.blocks(); ++b)
      for_each(b, [&](int64_t f, int64_t c, T w) { W.data()[f * K + c] = w; });
    return nb::cast(W);
  }
  labels.release_work();
  give_back_memory();
  // Values first, then classes: each can take over the memory of what it was made from.
  auto values = new_array<T>({nonzeros});
  std::vector<int64_t> next(ptr.begin(), ptr.end() - 1);
  for (int64_t b = 0; b < labels.blocks(); ++b) {
    for_each(b, [&](int64_t f, int64_t, T w) { values.data()[next[f]++] = w; });
    BlockOfLabels<T>& block = labels.block(b);
    for (T& w : block.constant) w = w != 0;  // from now on only this matters
    block.weight = std::vector<T>();         // clear() would keep the memory
  }
  give_back_memory();
  auto classes = new_array<int32_t>({nonzeros});
  std::copy(ptr.begin(), ptr.end() - 1, next.begin());
  for (int64_t b = 0; b < labels.blocks(); ++b) {
    for_each(b, [&](int64_t f, int64_t c, T) { classes.data()[next[f]++] = static_cast<int32_t>(c); });
    labels.block(b) = {};
  }
  give_back_memory();
  return nb::make_tuple(to_numpy(std::move(ptr)), classes, values);
}

template <class T>
int64_t checked_block(const LabelBlocks<T>& s, int64_t b) {
  check_number("block", b, 0, s.blocks() - 1);
  return b;
}

// Checks the weights of a block by label, features ascending, and its constants; all are empty if it was not
// trained.
template <class T>
void check_block_of_labels(const LabelBlocks<T>& s, int64_t b, const In<int64_t>& ptr,
                           const In<int32_t>& feature, const In<T>& weight, const In<T>& constant) {
  checked_block(s, b);
  check_length("weights", weight.size(), std::ssize(feature));
  check_length("constants", constant.size(), static_cast<int64_t>(ptr.size() ? ptr.size() - 1 : 0));
  check_finite("weights", weight);
  check_finite("constants", constant);
  if (ptr.size() == 0) return check_length("features", feature.size(), 0);
  check_length("weight_ptr", ptr.size(), s.many(b) + 1);
  check_pointers("weight_ptr", ptr, std::ssize(feature));
  check_ascending("features", ptr, feature, s.data().X.n_features);
}

// Checks the variables of a block by label, rows ascending; empty if they are not kept.
template <class T>
void check_variables_of_labels(const LabelBlocks<T>& s, int64_t b, const In<int64_t>& ptr,
                               const In<int32_t>& row, const In<T>& variable) {
  check_length("variables", variable.size(), std::ssize(row));
  if (ptr.size() == 0) return check_length("rows", row.size(), 0);
  check_length("row_ptr", ptr.size(), s.many(b) + 1);
  check_pointers("row_ptr", ptr, std::ssize(row));
  check_ascending("rows", ptr, row, s.data().X.n_rows);
  check_not_negative("variables", variable);
  if (s.data().squared) return;
  for (size_t e = 0; e < row.size(); ++e)
    if (variable.data()[e] > with_rounding(static_cast<T>(s.data().C[row.data()[e]])))
      reject("variables", "that of row " + std::to_string(row.data()[e]) + " is " +
                              in_digits(variable.data()[e]) + ", above its penalty");
}

template <class T, class Labels>
void bind_results(nb::class_<Labels>& labels) {
  labels
      .def(
          "sibling", [](const Labels& s) { return new Labels(&s); }, nb::rv_policy::take_ownership,
          nb::keep_alive<0, 1>())  // which keeps the arrays of the rows
      .def("block",
           // Weights by label, features ascending; constants; variables by label, rows ascending.
           [](Labels& s, int64_t b) {
             const BlockOfLabels<T>& block = s.block(checked_block(s, b));
             return std::make_tuple(to_numpy(block.weight_ptr), to_numpy(block.feature),
                                    to_numpy(block.weight), to_numpy(block.constant), to_numpy(block.row_ptr),
                                    to_numpy(block.row), to_numpy(block.variable));
           })
      .def("set_block",
           [](Labels& s, int64_t b, In<int64_t> weight_ptr, In<int32_t> feature, In<T> weight, In<T> constant,
              In<int64_t> row_ptr, In<int32_t> row, In<T> variable) {
             check_block_of_labels(s, b, weight_ptr, feature, weight, constant);
             check_variables_of_labels(s, b, row_ptr, row, variable);
             s.set_block(b, {to_vector(weight_ptr), to_vector(row_ptr), to_vector(feature), to_vector(row),
                             to_vector(weight), to_vector(constant), to_vector(variable)});
           })
      .def("clear", [](Labels& s, int64_t b) { s.block(checked_block(s, b)) = {}; })
      .def("weights", &label_weights<T>)
      .def("first", [](const Labels& s, int64_t b) { return s.first(checked_block(s, b)); })
      .def("many", [](const Labels& s, int64_t b) { return s.many(checked_block(s, b)); })
      .def_prop_ro("blocks", &Labels::blocks)
      .def_prop_ro("index_bytes", [](const Labels& s) { return s.data().index.bytes(); })
      .def_prop_ro("held_bytes", &Labels::held_bytes)
      .def_prop_ro("work_bytes", &Labels::work_bytes);
}

template <class T, class Labels = LabelBlocks<T>>
void bind_training(nb::class_<LabelBlocks<T>> labels) {
  labels
      .def(
          "__init__",
          // rows: a CSR matrix and its number of features. It is not copied: the tuple stays alive as long as
          // this object. own: the rows of each label. net: lambda, tau and the constant feature. search: the
          // features drawn, and `together` (labels/training.hpp).
          [](Labels* self, const std::tuple<In<int64_t>, In<int32_t>, In<T>, int64_t>& rows, In<double> C,
             const std::tuple<In<int64_t>, In<int32_t>>& own_rows, std::tuple<double, double, double> net,
             bool squared, std::tuple<int64_t, int64_t> search, bool keep_variables, Threads threads) {
            const auto& [ptr, index, value, features] = rows;
            const auto& [own_ptr, own] = own_rows;
            const auto [lambda, tau, constant] = net;
            const auto [draws, together] = search;
            check_rows(ptr, index, value.size(), features);
            const SparseRowsView<T> X{ptr.data(), index.data(), value.data(), std::ssize(ptr) - 1, features};
            check_number("n_features", features, 0, INT32_MAX);
            check_number("rows", X.n_rows, 0, INT32_MAX - 1);
            check_length("C", C.size(), X.n_rows);
            check_not_negative("C", C);
            check_pointers("own_ptr", own_ptr, std::ssize(own));
            check_ascending("own", own_ptr, own, X.n_rows);
            check_number("draws", draws, 0);
            check_number("together", together, 0, INT32_MAX);
            nb::gil_scoped_release nogil;
            auto data = std::make_shared<const LabelData<T>>(LabelData<T>{X,
                                                                          InvertedIndex<T>(X, threads),
                                                                          RowBounds(X),
                                                                          to_vector(C),
                                                                          to_vector(own_ptr),
                                                                          to_vector(own),
                                                                          {lambda, tau, constant},
                                                                          squared,
                                                                          draws,
                                                                          keep_variables,
                                                                          together});
            new (self) Labels(std::move(data), std::ssize(own_ptr) - 1);
          },
          "rows"_a.noconvert(), "C"_a, "own"_a, "net"_a, "squared"_a, "search"_a, "keep_variables"_a,
          "threads"_a, nb::keep_alive<1, 2>())
      .def(
          "train",
          // Returns the blocks trained, and one line per label: primal, dual, violation, rounds, visited,
          // support, done, cut.
          [](Labels& s, const nb::callable& deal, bool by_gap, double tol, int64_t max_rounds, uint64_t seed,
             Threads threads, Interrupt& interrupt) {
            const Deal dealt = deal_of(deal);
            std::vector<int64_t> trained;
            std::vector<LabelResult> found;
            {
              nb::gil_scoped_release nogil;
              for (const auto& [b, some] :
                   s.train(dealt, {by_gap, tol, max_rounds}, seed, threads, interrupt)) {
                trained.push_back(b);
                found.insert(found.end(), some.begin(), some.end());
              }
              give_back_memory();
            }
            auto out = new_array<double>({std::ssize(found), 8});
            double* to = out.data();
            for (const LabelResult& r : found)
              for (double number :
                   {r.certificate.primal, r.certificate.dual, r.certificate.violation, double(r.rounds),
                    r.visited, double(r.support), double(r.done), double(r.cut)})
                *to++ = number;
            return std::make_pair(trained, out);
          },
          "deal"_a, "by_gap"_a, "tol"_a, "max_rounds"_a, "seed"_a, "threads"_a, "interrupt"_a);
  bind_results<T>(labels);
}

}  // namespace

void bind_labels(nb::module_& m) {
  bind_both<LabelBlocks>(m, "LabelBlocks", [](auto labels) { bind_training(labels); });
}

}  // namespace manyclass
