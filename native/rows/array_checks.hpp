// What arrays from outside must be before a kernel follows their numbers: each is looked at once, whether it
// comes from a file, another process or a caller. What does not hold is reported as std::invalid_argument,
// with the name of the array, the place and what was found there.
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

inline void check_length(const char* name, size_t found, int64_t wanted) {
  if (static_cast<int64_t>(found) != wanted)
    reject(name, std::to_string(found) + " entries instead of " + std::to_string(wanted));
}

// low <= entry < limit, for all of them.
template <class I>
void check_range(const char* name, std::span<const I> entries, int64_t low, int64_t limit) {
  const auto outside = [&](I entry) {
    return static_cast<int64_t>(entry) < low || static_cast<int64_t>(entry) >= limit;
  };
  bool bad = false;  // no early end: the loop takes a vector of entries at a time
  for (const I entry : entries) bad |= outside(entry);
  if (!bad) return;
  const auto at = std::find_if(entries.begin(), entries.end(), outside);
  reject(name, "entry " + std::to_string(at - entries.begin()) + " is " + std::to_string(*at) + ", outside " +
                   std::to_string(low) + " to " + std::to_string(limit - 1));
}

// Where rows begin, and where the last one ends: from 0 to `entries`, never falling.
template <class P>
void check_pointers(const char* name, std::span<const P> ptr, int64_t entries) {
  if (ptr.empty()) reject(name, "no entries, where 0 is the first one");
  if (ptr.front() != 0) reject(name, "entry 0 is " + std::to_string(ptr.front()) + " instead of 0");
  bool falls = false;
  for (size_t i = 1; i < ptr.size(); ++i) falls |= ptr[i] < ptr[i - 1];
  if (falls) {
    const auto at = std::is_sorted_until(ptr.begin(), ptr.end());
    reject(name, "entry " + std::to_string(at - ptr.begin()) + " is smaller than the one before");
  }
  if (static_cast<int64_t>(ptr.back()) != entries)
    reject(name, "the last entry is " + std::to_string(ptr.back()) + ", but there are " +
                     std::to_string(entries) + " values");
}

// The rows of a matrix whose arrays may be longer than what it holds: ptr never falls, within `entries`, and
// all of its indices are below `columns`.
template <class P, class I>
void check_rows(std::span<const P> ptr, std::span<const I> index, size_t values, int64_t columns) {
  const auto entries = static_cast<int64_t>(std::min(index.size(), values));
  if (ptr.empty()) reject("indptr", "no entries, where 0 is the first one");
  check_range("indptr", ptr, 0, entries + 1);
  if (!std::is_sorted(ptr.begin(), ptr.end())) reject("indptr", "an entry is smaller than the one before");
  check_number("n_features", columns, 0);
  check_range("indices", index.subspan(ptr.front(), ptr.back() - ptr.front()), 0, columns);
}

// 0 <= index < limit, for all of them, and none twice in a row. The pointers have been checked.
template <class P, class I>
void check_distinct(const char* name, std::span<const P> ptr, std::span<const I> index, int64_t limit) {
  check_range(name, index, 0, limit);
  std::vector<int64_t> last(limit, -1);  // the row that had an index last
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(ptr.size()); ++i)
    for (int64_t e = ptr[i]; e < static_cast<int64_t>(ptr[i + 1]); ++e)
      if (std::exchange(last[index[e]], i) == i)
        reject(name, "row " + std::to_string(i) + " has " + std::to_string(index[e]) + " twice");
}

// The same, and ascending in each row.
template <class P, class I>
void check_ascending(const char* name, std::span<const P> ptr, std::span<const I> index, int64_t limit) {
  check_range(name, index, 0, limit);
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(ptr.size()); ++i)
    for (int64_t e = ptr[i] + 1; e < static_cast<int64_t>(ptr[i + 1]); ++e)
      if (index[e] <= index[e - 1]) reject(name, "row " + std::to_string(i) + " does not ascend");
}

// Rows that are to be visited, each once.
inline void check_order(const char* name, std::span<const int64_t> order, int64_t n) {
  check_range(name, order, 0, n);
  std::vector<bool> met(n, false);
  for (const int64_t i : order) {
    if (met[i]) reject(name, "row " + std::to_string(i) + " comes twice");
    met[i] = true;
  }
}

// Numbers from low to high; NaN is none.
template <class T>
void check_values(const char* name, std::span<const T> values, std::type_identity_t<T> low,
                  std::type_identity_t<T> high) {
  const auto outside = [&](T value) { return !(value >= low && value <= high); };
  bool bad = false;
  for (const T value : values) bad |= outside(value);
  if (!bad) return;
  const auto at = std::find_if(values.begin(), values.end(), outside);
  reject(name, "entry " + std::to_string(at - values.begin()) + " is " + in_digits(*at) + ", outside " +
                   in_digits(low) + " to " + in_digits(high));
}
template <class T>
void check_finite(const char* name, std::span<const T> values) {
  check_values(name, values, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
}
template <class T>
void check_not_negative(const char* name, std::span<const T> values) {
  check_values(name, values, T(0), std::numeric_limits<T>::max());
}

// Dual variables may be above their bound by what rounding does. Certificates bring sums back to theirs, so
// those may be above it by more.
template <class T>
inline T with_rounding(T bound) {
  return bound * (1 + 64 * std::numeric_limits<T>::epsilon());
}
inline constexpr double rounding_of_sums = 1.001;

}  // namespace manyclass
