// Scores and the best classes of a model.
#pragma once
#include <memory>

#include "bind_arrays.hpp"
#include "model_part.hpp"
#include "predict.hpp"
#include "sparse_part.hpp"

namespace manyclass {

template <class T>
Finish<T> finish_of(const In<T>& intercept, const std::optional<In<T>>& scale) {
  return {intercept.data(), scale ? scale->data() : nullptr};
}

// Weights of some more classes; the arrays have to live as long as the scorer.
template <class T, class V, class I, class Stored>
void bind_sparse_part(nb::class_<Scorer<T>>& scorer) {
  scorer.def(
      "add_sparse",
      [](Scorer<T>& self, In<int64_t> ptr, In<I> index, In<Stored> value, In<T> intercept,
         std::optional<In<T>> scale) {
        const SparseWeights<T, V, I> weights{ptr.data(), index.data(),
                                             reinterpret_cast<const V*>(value.data()), self.features(),
                                             static_cast<int64_t>(intercept.size())};
        self.add(
            std::make_unique<SparsePart<T, V, I>>(self.classes(), weights, finish_of<T>(intercept, scale)));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "intercept"_a.noconvert(),
      "scale"_a.noconvert().none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
      nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>());
}

template <class T, class X, class I, class P>
void bind_rows_to_score(nb::class_<Scorer<T>>& scorer) {
  // Of the rows from `begin` to `end`: with `codes` the best classes (rows x k), without all scores.
  scorer.def(
      "predict",
      [](Scorer<T>& self, In<P> ptr, In<I> index, In<X> value, int64_t begin, int64_t end,
         std::optional<Out<int32_t>> codes, Out<T> scores, int threads) {
        const CsrView<X, I, P> rows{ptr.data() + begin, index.data(),    value.data(),
                                    end - begin,        self.features(), 0};
        nb::gil_scoped_release nogil;
        if (codes) {
          const auto k = static_cast<int64_t>(scores.shape(1));
          self.top_classes(rows, k, codes->data(), scores.data(), threads);
        } else {
          self.scores(rows, scores.data(), threads);
        }
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "begin"_a, "end"_a,
      "codes"_a.noconvert().none(), "scores"_a.noconvert(), "threads"_a);
}

template <class T>
void bind_scorer(nb::module_& m, const char* name) {
  nb::class_<Scorer<T>> scorer(m, name);
  scorer.def(nb::init<int64_t>(), "features"_a)
      .def_prop_ro("classes", &Scorer<T>::classes)
      .def_prop_ro("frequent_features",
                   [](const Scorer<T>& self) {
                     return self.over_parts([](const Part<T>& p) { return p.frequent_features(); });
                   })
      .def_prop_ro("sketch_bytes",
                   [](const Scorer<T>& self) {
                     return self.over_parts([](const Part<T>& p) { return p.sketch_bytes(); });
                   })
      .def(
          "add_dense",
          [](Scorer<T>& self, nb::ndarray<const T, nb::ndim<2>, nb::c_contig> W, In<T> intercept) {
            self.add(std::make_unique<DensePart<T>>(
                self.classes(), DenseWeights<T>{W.data(), static_cast<int64_t>(W.shape(1))},
                finish_of<T>(intercept, std::nullopt)));
          },
          "W"_a.noconvert(), "intercept"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
  bind_sparse_part<T, T, int32_t, T>(scorer);
  if constexpr (sizeof(T) == 4) {
    bind_sparse_part<T, half, int32_t, uint16_t>(scorer);
    bind_sparse_part<T, half, uint16_t, uint16_t>(scorer);
    bind_sparse_part<T, int8_t, int32_t, int8_t>(scorer);
    bind_sparse_part<T, int8_t, uint16_t, int8_t>(scorer);
  }
  bind_rows_to_score<T, float, int32_t, int32_t>(scorer);
  bind_rows_to_score<T, double, int32_t, int32_t>(scorer);
  bind_rows_to_score<T, float, int64_t, int64_t>(scorer);
  bind_rows_to_score<T, double, int64_t, int64_t>(scorer);
}

}  // namespace manyclass
