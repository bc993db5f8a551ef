// The tokens of a line of text, and the error for a line that cannot be parsed. The text must end with a
// newline, which ends every token and so saves a bounds check per character.
#pragma once

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

namespace manyclass {

// remedy: the key of a piece of advice that each interface gives in its own words; see remedies.py.
struct ParseFailure : std::runtime_error {
  ParseFailure(int64_t line, int64_t column, const std::string& what, const char* remedy = "")
      : std::runtime_error(what), line(line), column(column), remedy(remedy) {}
  int64_t line, column;
  const char* remedy;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_token(char c) { return is_blank(c) || c == '\n' || c == '#'; }
inline const char* token_end(const char* p) {
  while (!ends_token(*p)) ++p;
  return p;
}

// Parses an integer that fits 64 bits, and moves `p` past it. On failure `p` does not move.
inline bool parse_integer(const char*& p, int64_t& number) {
  const char* q = *p == '+' ? p + 1 : p;
  const auto [end, error] = std::from_chars(q, token_end(q), number);
  if (error != std::errc{} || (q != p && *q == '-')) return false;
  p = end;
  return true;
}

// The token at `p` for an error message: truncated if long, with unprintable bytes escaped.
inline std::string shown(const char* p) {
  const char* const end = token_end(p);
  std::string text = "'";
  for (const char* q = p; q != end; ++q) {
    if (q - p == 40) {
      text += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(*q);
    constexpr char hex[] = "0123456789abcdef";
    if (byte >= 0x20 && byte < 0x7f)
      text += *q;
    else
      text += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
  }
  return p == end ? "the end of the line" : text + "'";
}

}  // namespace manyclass
