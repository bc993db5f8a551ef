// Byte planes of block files.
#pragma once
#include "bind_arrays.hpp"
#include "planes.hpp"

namespace manyclass {

using Planes = std::vector<std::optional<In<uint8_t>>>;

// Their addresses, each `count` bytes long; null where there is none.
inline std::vector<const uint8_t*> addresses(const Planes& planes, size_t wanted, int64_t count) {
  if (planes.size() != wanted) throw std::invalid_argument("not as many planes as a number has bytes");
  std::vector<const uint8_t*> found;
  for (const auto& plane : planes) {
    if (plane && static_cast<int64_t>(plane->size()) != count)
      throw std::invalid_argument("a plane is not as long as it should be");
    found.push_back(plane ? plane->data() : nullptr);
  }
  return found;
}

template <class Word>
void bind_words(nb::module_& m) {
  m.def("split_planes", [](In<Word> numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    std::vector<uint8_t> planes(sizeof(Word) * numbers.size());
    {
      nb::gil_scoped_release nogil;
      split_planes(numbers.data(), count, planes.data());
    }
    return to_numpy(std::move(planes));
  });
  m.def("join_planes", [](Planes planes, nb::ndarray<Word, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
    const auto count = static_cast<int64_t>(out.size());
    const auto from = addresses(planes, sizeof(Word), count);
    nb::gil_scoped_release nogil;
    join_planes(from, 0, count, out.data());
  });
}

template <class Index, class Word>
void bind_indices(nb::module_& m) {
  m.def("index_differences", [](In<int64_t> ptr, In<Index> index) {
    std::vector<Word> found(index.size());
    {
      nb::gil_scoped_release nogil;
      to_differences(ptr.data(), static_cast<int64_t>(ptr.size()) - 1, index.data(), found.data());
    }
    return to_numpy(std::move(found));
  });
  m.def("indices_of_planes", [](Planes planes, In<int64_t> ptr, int64_t n_features,
                                nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
    const auto count = static_cast<int64_t>(out.size());
    const auto from = addresses(planes, sizeof(Word), count);
    const int64_t rows = static_cast<int64_t>(ptr.size()) - 1;
    if (rows < 0 || ptr.data()[0] != 0 || ptr.data()[rows] != count)
      throw std::invalid_argument("rows do not end where the indices do");
    nb::gil_scoped_release nogil;
    indices_of<Index, Word>(from, ptr.data(), rows, n_features, out.data());
  });
}

inline void bind_planes(nb::module_& m) {
  bind_words<uint32_t>(m);
  bind_words<uint64_t>(m);
  bind_indices<int32_t, uint32_t>(m);
  bind_indices<int64_t, uint64_t>(m);
}

}  // namespace manyclass
