// Scores and the best classes of a model.
#pragma once
#include "bind_arrays.hpp"
#include "predict.hpp"

namespace manyclass {

template <class T, class X, class I>
void bind_prediction(nb::module_& m) {
  // out: scores (rows x classes), or with `classes` the k best (rows x k)
  const auto run = [](const auto& rows, const auto& weights, const In<T>& intercept, nb::object classes,
                      Out<T> scores, int threads) {
    if (classes.is_none()) {
      nb::gil_scoped_release nogil;
      score_rows<T>(rows, weights, intercept.data(), scores.data(), threads);
    } else {
      const auto best = nb::cast<Out<int32_t>>(classes);
      nb::gil_scoped_release nogil;
      best_classes<T>(rows, weights, intercept.data(), scores.shape(1), best.data(), scores.data(), threads);
    }
  };
  m.def(
      "score_dense",
      [run](In<int64_t> ptr, In<I> index, In<X> value, nb::ndarray<const T, nb::ndim<2>, nb::c_contig> W,
            In<T> intercept, nb::object classes, Out<T> scores, int threads) {
        run(view(ptr, index, value, W.shape(0)), DenseWeights<T>{W.data(), static_cast<int64_t>(W.shape(1))},
            intercept, classes, scores, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "W"_a, "intercept"_a, "classes"_a.none(), "scores"_a, "threads"_a);
  m.def(
      "score_sparse",
      [run](In<int64_t> ptr, In<I> index, In<X> value, In<int64_t> w_ptr, In<int32_t> w_index, In<T> w_value,
            In<T> intercept, nb::object classes, Out<T> scores, int threads) {
        run(view(ptr, index, value, static_cast<int64_t>(w_ptr.size()) - 1),
            SparseWeights<T>{w_ptr.data(), w_index.data(), w_value.data(),
                             static_cast<int64_t>(intercept.size())},
            intercept, classes, scores, threads);
      },
      "indptr"_a, "indices"_a, "values"_a, "W_indptr"_a, "W_indices"_a, "W_values"_a, "intercept"_a,
      "classes"_a.none(), "scores"_a, "threads"_a);
}

template <class T>
void bind_predictions(nb::module_& m) {
  bind_prediction<T, float, int32_t>(m);
  bind_prediction<T, float, int64_t>(m);
  bind_prediction<T, double, int32_t>(m);
  bind_prediction<T, double, int64_t>(m);
}

}  // namespace manyclass
