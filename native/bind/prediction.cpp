// Bindings of the scores and the best classes of a model (predict/scorer.hpp).
#include <memory>

#include "bind/bindings.hpp"
#include "predict/part.hpp"
#include "predict/scorer.hpp"
#include "predict/sparse_part.hpp"

namespace manyclass {

namespace {

template <class T>
Finish<T> finish_of(const In<T>& intercept, const std::optional<In<T>>& scale) {
  return {intercept.data(), scale ? scale->data() : nullptr};
}

// Adds a part with sparse weights. The scorer keeps the arrays alive and does not copy them.
template <class T, class V, class I, class Stored>
void bind_sparse_part(nb::class_<Scorer<T>>& scorer) {
  scorer.def(
      "add_sparse",
      [](Scorer<T>& self, In<int64_t> ptr, In<I> index, In<Stored> value, In<T> intercept,
         std::optional<In<T>> scale) {
        check_length("indptr", ptr.size(), self.features() + 1);
        check_pointers("indptr", ptr, std::ssize(index));
        check_length("values", value.size(), std::ssize(index));
        check_range("indices", index, 0, std::ssize(intercept));
        check_number("classes", self.classes() + std::ssize(intercept), 0, INT32_MAX);
        if (scale) check_length("scale", scale->size(), std::ssize(intercept));
        const SparseWeights<T, V, I> weights{ptr.data(), index.data(),
                                             reinterpret_cast<const V*>(value.data()), self.features(),
                                             std::ssize(intercept)};
        self.add(
            std::make_unique<SparsePart<T, V, I>>(self.classes(), weights, finish_of<T>(intercept, scale)));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "intercept"_a.noconvert(),
      "scale"_a.noconvert().none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
      nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>());
}

template <class T, class X, class I>
void bind_rows_to_score(nb::class_<Scorer<T>>& scorer) {
  // Predicts the rows [begin, end): the k best classes and their scores (rows x k) if `codes` is given, else
  // all scores.
  scorer.def(
      "predict",
      [](Scorer<T>& self, In<I> ptr, In<I> index, In<X> value, int64_t begin, int64_t end,
         std::optional<Out<int32_t>> codes, Out<T> scores, Threads threads) {
        check_number("begin", begin, 0, std::ssize(ptr) - 1);
        check_number("end", end, begin, std::ssize(ptr) - 1);
        check_rows(span_of(ptr).subspan(begin, end - begin + 1), index, value.size(), self.features());
        const CsrView<X, I, I> rows{ptr.data() + begin, index.data(),    value.data(),
                                    end - begin,        self.features(), 0};
        const int64_t k = scores.ndim() == 2 ? static_cast<int64_t>(scores.shape(1)) : 0;
        check_number("k", k, codes ? std::min<int64_t>(1, self.classes()) : self.classes(), self.classes());
        int32_t* const best = codes ? room_in("codes", *codes, rows.n_rows, k) : nullptr;
        T* const out = room_in("scores", scores, rows.n_rows, k);
        nb::gil_scoped_release nogil;
        if (codes)
          self.top_classes(rows, k, best, out, threads);
        else
          self.scores(rows, out, threads);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "begin"_a, "end"_a,
      "codes"_a.noconvert().none(), "scores"_a.noconvert(), "threads"_a);
}

template <class T>
void bind_scorer(nb::class_<Scorer<T>> scorer) {
  scorer
      .def(
          "__init__",
          [](Scorer<T>* self, int64_t features) {
            check_number("features", features, 0);
            new (self) Scorer<T>(features);
          },
          "features"_a)
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
            check_length("W", W.shape(0), self.features());
            check_length("intercept", intercept.size(), static_cast<int64_t>(W.shape(1)));
            check_number("classes", self.classes() + static_cast<int64_t>(W.shape(1)), 0, INT32_MAX);
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
  for_matrix_types([&]<class X, class I>() { bind_rows_to_score<T, X, I>(scorer); });
}

}  // namespace

void bind_prediction(nb::module_& m) {
  bind_both<Scorer>(m, "Scorer", [](auto scorer) { bind_scorer(scorer); });
}

}  // namespace manyclass
