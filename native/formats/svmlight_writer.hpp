// Writes rows as svmlight or XMC text, with the shortest decimals that read back as the same numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace manyclass {

void append_number(std::string& text, auto number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  text.append(digits, end);
}

// A real label keeps a point or an exponent, so that it is read back as a real number.
inline void append_label(std::string& text, double label) {
  const size_t start = text.size();
  append_number(text, label);
  if (text.find_first_of(".e", start) == std::string::npos) text += ".0";
}
inline void append_label(std::string& text, int64_t label) { append_number(text, label); }

// Formats the rows whose features end at row_ends[0..n) and whose labels end at label_ends[0..n), both
// counted from the start of the arrays. With `mark_empty`, a row without labels and features gets an explicit
// zero, since svmlight readers skip blank lines.
template <class Value, class Label>
std::string format_rows(const int64_t* row_ends, int64_t n, const int64_t* indices, const Value* values,
                        const int64_t* label_ends, const Label* labels, int64_t base, bool mark_empty) {
  std::string text;
  text.reserve(static_cast<size_t>(n ? row_ends[n - 1] * 16 + n * 8 : 0));
  int64_t k = 0, l = 0;
  for (int64_t row = 0; row < n; ++row) {
    const bool nothing = l == label_ends[row] && k == row_ends[row];
    for (bool first = true; l < label_ends[row]; ++l, first = false) {
      if (!first) text += ',';
      append_label(text, labels[l]);
    }
    for (; k < row_ends[row]; ++k) {
      text += ' ';
      append_number(text, indices[k] + base);
      text += ':';
      append_number(text, values[k]);
    }
    if (nothing && mark_empty) {
      text += ' ';
      append_number(text, base);
      text += ":0";
    }
    text += '\n';
  }
  return text;
}

}  // namespace manyclass
