// Decimal text to numbers, correctly rounded.
//
// A decimal m * 10^e with m <= 2^53 and |e| <= 22 takes one exact conversion and one multiplication or
// division by an exact power of ten, so IEEE arithmetic rounds it correctly (Clinger 1990). The resulting
// double may be rounded once more to float unless it is the midpoint of two floats: rounding is monotone, so
// the true value is on the same side of every other midpoint. Everything else goes to std::from_chars.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>
#include <type_traits>

namespace manyclass {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

enum class NumberStatus { ok, malformed, overflow, nonfinite };

inline constexpr double exact_powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Whether rounding the correctly rounded double x to float gives the correctly rounded float.
inline bool rounds_once_to_float(double x) {
  constexpr uint64_t dropped = (uint64_t{1} << 29) - 1;
  constexpr uint64_t midpoint = uint64_t{1} << 28;
  const bool normal = x >= std::numeric_limits<float>::min() && x <= std::numeric_limits<float>::max();
  return x == 0 || (normal && (std::bit_cast<uint64_t>(x) & dropped) != midpoint);
}

// Whether the text at `p` (after a sign) begins with "nan" or "inf", in upper or lower case.
inline bool names_nonfinite(const char* p) {
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  const char a = lower(p[0]);
  if (a != 'n' && a != 'i') return false;
  const char b = lower(p[1]);
  if (a == 'n') return b == 'a' && lower(p[2]) == 'n';
  return b == 'n' && lower(p[2]) == 'f';
}

// Parses the number that starts at `p`, and moves `p` past it. The text must contain a newline: no number
// does, which saves a bounds check per character.
template <class Value>
NumberStatus parse_number(const char*& p, Value& value) {
  const char* const start = p;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const unsigned_start = p;

  uint64_t mantissa = 0;
  while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
  int64_t digits = p - unsigned_start;
  int64_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
    exponent = fraction - p;
    digits += p - fraction;
  }
  if (digits == 0) {
    if (!names_nonfinite(unsigned_start)) return p = start, NumberStatus::malformed;
    const char* letters = unsigned_start;
    while (*letters != '\n' && !is_digit(*letters) && (*letters | 0x20) >= 'a' && (*letters | 0x20) <= 'z')
      ++letters;
    const auto [end, error] = std::from_chars(unsigned_start, letters, value);
    if (error != std::errc{}) return p = start, NumberStatus::malformed;
    if (negative) value = -value;
    p = end;
    return NumberStatus::nonfinite;
  }
  if (*p == 'e' || *p == 'E') {
    const char* q = p + 1;
    const bool down = *q == '-';
    if (*q == '-' || *q == '+') ++q;
    if (!is_digit(*q)) return p = start, NumberStatus::malformed;
    int64_t power = 0;
    for (; is_digit(*q); ++q)
      if (power < 1'000'000) power = power * 10 + (*q - '0');
    exponent += down ? -power : power;
    p = q;
  }

  // 19 digits always fit in 64 bits. With more, `mantissa` may have wrapped around.
  if (digits <= 19 && mantissa <= (uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
    const double m = static_cast<double>(mantissa);
    const double x = exponent < 0 ? m / exact_powers_of_ten[-exponent] : m * exact_powers_of_ten[exponent];
    if (std::is_same_v<Value, double> || rounds_once_to_float(x)) {
      value = static_cast<Value>(negative ? -x : x);
      return NumberStatus::ok;
    }
  }
  const auto [end, error] = std::from_chars(unsigned_start, p, value);
  if (error == std::errc::result_out_of_range) {
    // The order of magnitude distinguishes a number that is too large from one that rounds to zero.
    for (const char* q = unsigned_start; *q == '0' || *q == '.'; ++q) digits -= *q == '0';
    if (digits + exponent > 0) return NumberStatus::overflow;
    value = 0;
  }
  if (negative) value = -value;
  return NumberStatus::ok;
}

}  // namespace manyclass
