// A tree over the labels of a model.
#pragma once
#include "bind_arrays.hpp"
#include "label_clusters.hpp"
#include "label_tree.hpp"

namespace manyclass {

template <class T>
SparseRowsView<T> label_vectors(const In<int64_t>& ptr, const In<int32_t>& feature, const In<T>& value,
                                int64_t features) {
  return {ptr.data(), feature.data(), value.data(), static_cast<int64_t>(ptr.size()) - 1, features};
}

template <class T, class X, class I>
void bind_search(nb::class_<LabelTree<T>>& tree) {
  // out: labels and scores (rows x k)
  tree.def(
      "best_labels",
      [](const LabelTree<T>& self, In<int64_t> ptr, In<I> index, In<X> value, int64_t features, int64_t beam,
         Out<int32_t> labels, Out<T> scores, int threads) {
        const auto rows = view(ptr, index, value, features);
        nb::gil_scoped_release nogil;
        self.best_labels(rows, static_cast<int64_t>(scores.shape(1)), beam, labels.data(), scores.data(),
                         threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "beam"_a, "labels"_a, "scores"_a, "threads"_a);
}

template <class T>
void bind_label_trees(nb::module_& m, const char* name) {
  // Weights are given by label, with ascending features.
  m.def(
      "cluster_labels",
      [](In<int64_t> ptr, In<int32_t> feature, In<T> value, int64_t features, int64_t branching,
         uint64_t seed, int threads) {
        std::vector<int32_t> order;
        {
          nb::gil_scoped_release nogil;
          const SparseRows<T> vectors = positive_part(label_vectors(ptr, feature, value, features));
          order = LabelClusters<T>(vectors.view(), branching, seed).run(threads);
        }
        return to_numpy(std::move(order));
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "branching"_a, "seed"_a, "threads"_a);
  nb::class_<LabelTree<T>> tree(m, name);
  tree.def(
      "__init__",
      [](LabelTree<T>* self, In<int64_t> ptr, In<int32_t> feature, In<T> value, int64_t features,
         In<int32_t> order, In<T> intercept, int64_t branching, int threads) {
        nb::gil_scoped_release nogil;
        new (self) LabelTree<T>(label_vectors(ptr, feature, value, features), order.data(), intercept.data(),
                                branching, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "features"_a, "order"_a, "intercept"_a, "branching"_a,
      "threads"_a);
  tree.def_prop_ro("levels", &LabelTree<T>::levels);
  tree.def_prop_ro("nbytes", &LabelTree<T>::nbytes);
  bind_search<T, float, int32_t>(tree);
  bind_search<T, float, int64_t>(tree);
  bind_search<T, double, int32_t>(tree);
  bind_search<T, double, int64_t>(tree);
}

}  // namespace manyclass
