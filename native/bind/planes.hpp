// Bindings of the byte planes of block files (formats/planes.hpp).
#pragma once
#include "bind/arrays.hpp"
#include "formats/planes.hpp"
#include "rows/recycled.hpp"

namespace manyclass {

// For each plane its bytes, packed or not (none for a plane of zeros), and its palette (none if not packed).
using Stored = std::vector<std::pair<std::optional<In<uint8_t>>, std::optional<In<uint8_t>>>>;

// Planes of `count` bytes each.
inline std::vector<Plane> planes_of(const Stored& stored, int64_t count) {
  check_number("numbers", count, 0, std::numeric_limits<int64_t>::max() / 8);
  std::vector<Plane> planes;
  for (const auto& [bytes, palette] : stored) {
    const size_t colours = palette ? palette->size() : 0;
    if (colours > largest_palette) throw std::invalid_argument("a palette is too large");
    const int64_t size = palette ? packed_size(count, palette_bits(colours)) : count;
    if (bytes && std::ssize(*bytes) != size) throw std::invalid_argument("a plane has the wrong length");
    planes.emplace_back(bytes ? bytes->data() : nullptr, palette ? palette->data() : nullptr, colours);
  }
  return planes;
}

using Numbers = nb::ndarray<nb::numpy, nb::ndim<1>>;

// Calls make(T* data) to fill a new array, where T has as many bytes as there are planes. Returns the array.
template <class Four, class Eight, class Make>
Numbers recycled_array(size_t planes, int64_t count, Make make) {
  const auto made = [&]<class T>(T) {
    auto held = std::make_unique<Recycled>(static_cast<size_t>(count) * sizeof(T));
    auto* data = static_cast<T*>(held->data());
    without_gil([&] { make(data); });
    nb::capsule owner(held.release(), [](void* p) noexcept { delete static_cast<Recycled*>(p); });
    return Numbers(data, {static_cast<size_t>(count)}, owner, {}, nb::dtype<T>());
  };
  if (planes == sizeof(Four)) return made(Four());
  if (planes == sizeof(Eight)) return made(Eight());
  throw std::invalid_argument("numbers must have 4 or 8 planes");
}

inline Numbers join_stored(Stored stored, int64_t count) {
  const auto planes = planes_of(stored, count);
  return recycled_array<uint32_t, uint64_t>(planes.size(), count, [&](auto* numbers) {
    Joiner<std::remove_pointer_t<decltype(numbers)>> joiner(planes);
    for_each_part(count, [&](int64_t first, int64_t n) { joiner.part(first, n, numbers + first); });
  });
}

// The number of entries of the rows, after a check of the pointers.
inline int64_t checked_entries(const In<int64_t>& ptr, int64_t n_features) {
  const int64_t entries = ptr.size() == 0 ? 0 : ptr.data()[ptr.size() - 1];
  check_pointers("indptr", ptr, entries);
  check_number("n_features", n_features, 0);
  return entries;
}

inline Numbers indices_of_stored(Stored stored, In<int64_t> ptr, int64_t n_features) {
  const int64_t count = checked_entries(ptr, n_features);
  const auto planes = planes_of(stored, count);
  return recycled_array<int32_t, int64_t>(planes.size(), count, [&]<class Index>(Index* index) {
    using Word = std::make_unsigned_t<Index>;
    Joiner<Word> joiner(planes);
    RowIndices<Index, Word> indices(ptr.data(), static_cast<uint64_t>(n_features));
    for_each_part(count, [&](int64_t first, int64_t n) {
      auto* words = reinterpret_cast<Word*>(index) + first;
      joiner.part(first, n, words);
      indices.part(words, first, n);
    });
  });
}

template <class Index, class Word>
void bind_numbers(nb::module_& m) {
  m.def("split_planes", [](In<Word> numbers) {
    const auto count = std::ssize(numbers);
    std::vector<uint8_t> planes(sizeof(Word) * numbers.size());
    without_gil([&] { split_planes(numbers.data(), count, planes.data()); });
    return to_numpy(std::move(planes));
  });
  m.def("index_differences", [](In<int64_t> ptr, In<Index> index) {
    check_pointers("indptr", ptr, std::ssize(index));
    std::vector<Word> found(index.size());
    without_gil([&] { to_differences(ptr.data(), std::ssize(ptr) - 1, index.data(), found.data()); });
    return to_numpy(std::move(found));
  });
}

inline void bind_planes(nb::module_& m) {
  bind_numbers<int32_t, uint32_t>(m);
  bind_numbers<int64_t, uint64_t>(m);
  m.def("join_planes", &join_stored);
  m.def("indices_of_planes", &indices_of_stored);
  m.def("palette_of",
        [](In<uint8_t> plane) { return to_numpy(palette_of(plane.data(), std::ssize(plane))); });
  m.def("pack_plane", [](In<uint8_t> plane, In<uint8_t> palette) {
    if (palette.size() > largest_palette) throw std::invalid_argument("a palette is too large");
    return to_numpy(pack(plane.data(), std::ssize(plane),
                         std::vector<uint8_t>(palette.data(), palette.data() + palette.size())));
  });
}

}  // namespace manyclass
