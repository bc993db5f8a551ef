// Bindings of label trees (predict/label_tree.hpp).
#include "predict/label_tree.hpp"

#include "bind/bindings.hpp"
#include "predict/label_clusters.hpp"

namespace manyclass {

namespace {

template <class T>
SparseRowsView<T> label_vectors(const In<int64_t>& ptr, const In<int32_t>& feature, const In<T>& value,
                                int64_t features) {
  check_number("n_features", features, 0, INT32_MAX);
  check_number("labels", std::ssize(ptr) - 1, 0, INT32_MAX);
  check_pointers("indptr", ptr, std::ssize(feature));
  check_length("values", value.size(), std::ssize(feature));
  check_ascending("indices", ptr, feature, features);
  return {ptr.data(), feature.data(), value.data(), std::ssize(ptr) - 1, features};
}

template <class T, class X, class I>
void bind_search(nb::class_<LabelTree<T>>& tree) {
  // Writes labels and scores (rows x k).
  tree.def(
      "best_labels",
      [](const LabelTree<T>& self, In<int64_t> ptr, In<I> index, In<X> value, int64_t features, int64_t beam,
         Out<int32_t> labels, Out<T> scores, Threads threads) {
        const auto rows = view(ptr, index, value, features);
        check_number("n_features", features, self.features(), self.features());
        check_number("beam", beam, 1);
        const int64_t k = scores.ndim() == 2 ? static_cast<int64_t>(scores.shape(1)) : 0;
        check_number("k", k, 1, self.labels());
        int32_t* const best = room_in("labels", labels, rows.n_rows, k);
        T* const out = room_in("scores", scores, rows.n_rows, k);
        nb::gil_scoped_release nogil;
        self.best_labels(rows, k, beam, best, out, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "beam"_a, "labels"_a, "scores"_a, "threads"_a);
}

// Weights are given by label, with ascending features.
template <class T>
void bind_clusters(nb::module_& m) {
  m.def(
      "cluster_labels",
      [](In<int64_t> ptr, In<int32_t> feature, In<T> value, int64_t features, int64_t branching,
         uint64_t seed, Threads threads) {
        check_number("branching", branching, 2, INT32_MAX);
        return to_numpy(without_gil([&] {
          const SparseRows<T> vectors = positive_part(label_vectors(ptr, feature, value, features));
          return LabelClusters<T>(vectors.view(features), branching, seed).run(threads);
        }));
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "branching"_a, "seed"_a, "threads"_a);
}

template <class T>
void bind_tree(nb::class_<LabelTree<T>> tree) {
  tree.def(
      "__init__",
      [](LabelTree<T>* self, In<int64_t> ptr, In<int32_t> feature, In<T> value, int64_t features,
         In<int32_t> order, In<T> intercept, int64_t branching, Threads threads) {
        const auto labels = std::ssize(ptr) - 1;
        check_number("labels", labels, 1);
        check_length("order", order.size(), labels);
        const std::vector<int64_t> leaves(order.data(), order.data() + order.size());
        check_order("order", leaves, labels);
        check_length("intercept", intercept.size(), labels);
        check_number("branching", branching, 2, INT32_MAX);
        nb::gil_scoped_release nogil;
        new (self) LabelTree<T>(label_vectors(ptr, feature, value, features), order.data(), intercept.data(),
                                branching, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "order"_a, "intercept"_a, "branching"_a,
      "threads"_a);
  tree.def_prop_ro("levels", &LabelTree<T>::levels);
  tree.def_prop_ro("nbytes", &LabelTree<T>::nbytes);
  for_matrix_types([&]<class X, class I>() { bind_search<T, X, I>(tree); });
}

}  // namespace

void bind_label_tree(nb::module_& m) {
  bind_clusters<float>(m);
  bind_clusters<double>(m);
  bind_both<LabelTree>(m, "LabelTree", [](auto tree) { bind_tree(tree); });
}

}  // namespace manyclass
