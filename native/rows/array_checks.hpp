// Checks of arrays from outside (files, other processes, callers) before a kernel uses their numbers as
// indices or pointers. A check that fails throws std::invalid_argument with the name of the array, the
// position and the value found there. An array is anything with data() and size().
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace manyclass {

[[noreturn]] inline void reject(const char* name, const std::string& what) {
  throw std::invalid_argument(std::string(name) + ": " + what);
}

inline std::string in_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// low <= value <= high
inline void check_number(const char* name, int64_t value, int64_t low, int64_t high = INT64_MAX) {
  if (value < low || value > high)
    reject(name, std::to_string(value) + " is not " +
                     (high == INT64_MAX ? "at least " + std::to_string(low)
                                        : "from " + std::to_string(low) + " to " + std::to_string(high)));
}

inline void check_length(const char* name, int64_t found, int64_t wanted) {
  if (found != wanted) reject(name, std::to_string(found) + " entries instead of " + std::to_string(wanted));
}

auto span_of(const auto& array) { return std::span(array.data(), array.size()); }

// low <= entry < limit for all entries.
void check_range(const char* name, const auto& array, int64_t low, int64_t limit) {
  const auto entries = span_of(array);
  const auto outside = [&](int64_t entry) { return entry < low || entry >= limit; };
  bool bad = false;  // no early exit, so that the loop vectorizes
  for (const auto entry : entries) bad |= outside(entry);
  if (!bad) return;
  const auto at = std::find_if(entries.begin(), entries.end(), outside);
  reject(name, "entry " + std::to_string(at - entries.begin()) + " is " + std::to_string(*at) + ", outside " +
                   std::to_string(low) + " to " + std::to_string(limit - 1));
}

// Row pointers: from 0 to `entries`, never decreasing.
void check_pointers(const char* name, const auto& array, int64_t entries) {
  const auto ptr = span_of(array);
  if (ptr.empty()) reject(name, "it is empty, but must start with 0");
  if (ptr.front() != 0) reject(name, "entry 0 is " + std::to_string(ptr.front()) + " instead of 0");
  bool falls = false;
  for (size_t i = 1; i < ptr.size(); ++i) falls |= ptr[i] < ptr[i - 1];
  if (falls) {
    const auto at = std::is_sorted_until(ptr.begin(), ptr.end());
    reject(name, "entry " + std::to_string(at - ptr.begin()) + " is smaller than the one before");
  }
  if (ptr.back() != entries)
    reject(name, "the last entry is " + std::to_string(ptr.back()) + ", but there are " +
                     std::to_string(entries) + " values");
}

// Ends of rows: never decreasing, and at most `entries`.
void check_ends(const char* name, const auto& ends, int64_t entries) {
  check_range(name, ends, 0, entries + 1);
  if (!std::is_sorted(ends.data(), ends.data() + ends.size()))
    reject(name, "an entry is smaller than the one before");
}

// A CSR matrix whose arrays may be longer than its rows: `ptr` never decreases and stays within the entries,
// and the indices of its rows are below `columns`.
void check_rows(const auto& ptr, const auto& index, size_t values, int64_t columns) {
  if (ptr.size() == 0) reject("indptr", "it is empty, but must start with 0");
  check_ends("indptr", ptr, static_cast<int64_t>(std::min(index.size(), values)));
  check_number("n_features", columns, 0);
  const int64_t first = span_of(ptr).front(), last = span_of(ptr).back();
  check_range("indices", span_of(index).subspan(first, last - first), 0, columns);
}

// 0 <= index < limit for all indices, and no row has an index twice. The pointers must have been checked.
void check_distinct(const char* name, const auto& ptr, const auto& index, int64_t limit) {
  check_range(name, index, 0, limit);
  std::vector<int64_t> last(limit, -1);  // the last row with this index
  for (int64_t i = 0; i + 1 < std::ssize(ptr); ++i)
    for (int64_t e = ptr.data()[i]; e < ptr.data()[i + 1]; ++e)
      if (std::exchange(last[index.data()[e]], i) == i)
        reject(name, "row " + std::to_string(i) + " has " + std::to_string(index.data()[e]) + " twice");
}

// 0 <= index < limit for all indices, and strictly ascending in each row.
void check_ascending(const char* name, const auto& ptr, const auto& index, int64_t limit) {
  check_range(name, index, 0, limit);
  for (int64_t i = 0; i + 1 < std::ssize(ptr); ++i)
    for (int64_t e = ptr.data()[i] + 1; e < ptr.data()[i + 1]; ++e)
      if (index.data()[e] <= index.data()[e - 1])
        reject(name, "row " + std::to_string(i) + " does not ascend");
}

// An order of visits: rows below n, each at most once.
void check_order(const char* name, const auto& order, int64_t n) {
  check_range(name, order, 0, n);
  std::vector<bool> met(n, false);
  for (const int64_t i : span_of(order)) {
    if (met[i]) reject(name, "number " + std::to_string(i) + " occurs twice");
    met[i] = true;
  }
}

// low <= value <= high for all values, and no NaN.
template <class T>
void check_values(const char* name, const auto& array, T low, std::type_identity_t<T> high) {
  const auto values = span_of(array);
  const auto outside = [&](T value) { return !(value >= low && value <= high); };
  bool bad = false;
  for (const T value : values) bad |= outside(value);
  if (!bad) return;
  const auto at = std::find_if(values.begin(), values.end(), outside);
  reject(name, "entry " + std::to_string(at - values.begin()) + " is " + in_digits(*at) + ", outside " +
                   in_digits(low) + " to " + in_digits(high));
}
template <class Array>
using ValueOf = std::remove_cvref_t<decltype(*std::declval<Array>().data())>;
template <class Array>
void check_finite(const char* name, const Array& array) {
  constexpr auto most = std::numeric_limits<ValueOf<Array>>::max();
  check_values(name, array, -most, most);
}
template <class Array>
void check_not_negative(const char* name, const Array& array) {
  check_values(name, array, ValueOf<Array>(0), std::numeric_limits<ValueOf<Array>>::max());
}

// Rounding may put a dual variable slightly above its bound. Sums of variables may exceed theirs by more,
// since certificates scale them back.
template <class T>
inline T with_rounding(T bound) {
  return bound * (1 + 64 * std::numeric_limits<T>::epsilon());
}
inline constexpr double rounding_of_sums = 1.001;

}  // namespace manyclass
