// A parser for text with one row per line, in the two dialects of sparse classification data:
//
//   svmlight:  [label[,label...]] index:value index:value ... [# comment]
//   XMC:       a first line "rows features labels", then rows as above, with everything counted from 0
//
// The parser is fed the text in pieces of any size. It keeps only the parsed rows and one unfinished line. If
// it rejects something, it throws ParseFailure with the line and the column (both from 1, the column in
// bytes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "formats/growing_array.hpp"
#include "formats/numbers.hpp"
#include "formats/tokens.hpp"

namespace manyclass {

enum class Choice { no = 0, yes = 1, detect = -1 };

struct ReadOptions {
  int64_t n_features = -1;  // -1: determined by the largest index
  Choice zero_based = Choice::detect;
  Choice multilabel = Choice::detect;
  bool allow_nonfinite = false;
  bool xmc = false;
};

template <class Value>
class RowParser {
 public:
  explicit RowParser(ReadOptions options) : options_(options) {
    if (options.xmc) options_.zero_based = options_.multilabel = Choice::yes;
  }
  RowParser(const RowParser&) = delete;
  RowParser& operator=(const RowParser&) = delete;

  void feed(const char* text, int64_t size) {
    const char* const end = text + size;
    if (!unfinished_.empty()) {
      const auto* newline = static_cast<const char*>(std::memchr(text, '\n', size));
      unfinished_.append(text, newline ? newline + 1 : end);
      if (!newline) return;
      parse_lines(unfinished_.data(), unfinished_.data() + unfinished_.size());
      unfinished_.clear();
      text = newline + 1;
    }
    const char* whole = end;
    while (whole != text && whole[-1] != '\n') --whole;
    parse_lines(text, whole);
    unfinished_.assign(whole, end);
  }

  void finish() {
    if (!unfinished_.empty()) {
      unfinished_.push_back('\n');
      parse_lines(unfinished_.data(), unfinished_.data() + unfinished_.size());
      unfinished_.clear();
    }
    if (options_.xmc) check_header_kept();
    if (options_.zero_based == Choice::detect)
      options_.zero_based = min_index_ == 0 ? Choice::yes : Choice::no;
    check_largest_index();
    if (options_.multilabel == Choice::detect)
      options_.multilabel = other_than_one_.line ? Choice::yes : Choice::no;
    if (multilabel() && not_a_class_.line)
      throw ParseFailure(not_a_class_.line, not_a_class_.column,
                         "where rows have several labels or none, each label must be an integer of at least "
                         "0 and below 2^63 - 1; "
                         "renumber the labels, or give every row exactly one label");
  }

  // To be called after a part of the rows has been taken: resets the counts.
  void next_part() {
    rows_taken_ += n_rows_;
    n_rows_ = nnz_ = n_labels_ = 0;
  }
  // To be called before the first piece of text if that does not begin with the first line of the file.
  void go_on_after(int64_t line, int64_t rows) {
    line_ = line;
    rows_taken_ = rows;
  }

  int64_t line() const { return line_; }
  int64_t unfinished() const { return std::ssize(unfinished_); }
  int64_t min_index() const { return min_index_; }
  int64_t max_index() const { return max_index_; }
  bool wide() const { return is_wide_; }
  int64_t n_rows() const { return n_rows_; }
  int64_t nnz() const { return nnz_; }
  int64_t n_labels_read() const { return n_labels_; }
  int64_t max_label() const { return max_label_; }
  int64_t label_limit() const { return label_limit_; }
  bool multilabel() const { return options_.multilabel == Choice::yes; }
  bool labels_are_integers() const { return integers_; }
  bool zero_based() const { return options_.zero_based == Choice::yes; }
  int64_t n_features() const {
    if (options_.n_features >= 0) return options_.n_features;
    if (max_index_ < 0) return 0;
    return max_index_ + (options_.zero_based == Choice::yes ? 1 : 0);
  }

  // Each of these moves one array of the result to an array of the right length. Call each once, after
  // finish().
  // as_written: for a part of the rows, which may be taken at any time, since only the end of the file shows
  // whether indices count from 0.
  template <class Index>
  void take_indices(Index* out, bool as_written) {
    const int64_t base = as_written || zero_based() ? 0 : 1;
    const auto take = [&out, base](const auto* block, int64_t count) {
      for (int64_t k = 0; k < count; ++k) *out++ = static_cast<Index>(block[k] - base);
    };
    is_wide_ ? wide_.drain(take) : narrow_.drain(take);
  }
  void take_values(Value* out) { copy_out(values_, out); }
  void take_row_ends(int64_t* out) { copy_out(row_ends_, out); }
  void take_label_ends(int64_t* out) { copy_out(label_ends_, out); }
  void take_labels(int64_t* out) { copy_out(integer_labels_, out); }
  void take_labels(double* out) {
    // Labels before the first non-integer one were stored as integers.
    integer_labels_.drain([&out](const int64_t* block, int64_t count) {
      for (int64_t k = 0; k < count; ++k) *out++ = static_cast<double>(block[k]);
    });
    copy_out(real_labels_, out);
  }

 private:
  struct Place {
    int64_t line = 0, column = 0;
  };

  static constexpr int64_t int32_max = std::numeric_limits<int32_t>::max();
  static constexpr int64_t int64_max = std::numeric_limits<int64_t>::max();

  template <class T>
  static void copy_out(GrowingArray<T>& from, T* out) {
    from.drain([&out](const T* block, int64_t count) { out = std::copy(block, block + count, out); });
  }

  int64_t rows_read() const { return rows_taken_ + n_rows_; }

  Place place(const char* p) const { return {line_, p - line_begin_ + 1}; }

  [[noreturn]] void fail(const char* at, const std::string& what, const char* remedy = "") const {
    throw ParseFailure(line_, at - line_begin_ + 1, what, remedy);
  }

  void parse_lines(const char* p, const char* end) {
    while (p != end) {
      const auto* newline = static_cast<const char*>(std::memchr(p, '\n', end - p));
      ++line_;
      line_begin_ = p;
      if (line_ == 1 && newline - p >= 3 && std::memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
      parse_line(p, newline);
      p = newline + 1;
    }
  }

  void parse_line(const char* p, const char* newline) {
    while (is_blank(*p)) ++p;
    if (options_.xmc && label_limit_ < 0) {
      if (*p != '\n' && *p != '#') parse_header(p);
      return;
    }
    // A blank line of an XMC file may be a row without labels and features, if the header promises more rows.
    if (*p == '#' || (*p == '\n' && !(options_.xmc && rows_read() < rows_promised_))) return;
    if (options_.xmc && rows_read() == rows_promised_)
      fail(p, "the header promises " + std::to_string(rows_promised_) +
                  " rows, but here is another; correct the first line or remove the row");
    if (*p != '\n') {
      p = parse_labels(p);
      parse_features(p, newline);
    } else {
      note_label_count(p, 0);
    }
    label_ends_.push_back(n_labels_);
    row_ends_.push_back(nnz_);
    ++n_rows_;
  }

  void parse_header(const char* p) {
    int64_t numbers[3];
    const char* token = p;
    for (auto& number : numbers) {
      token = p;
      if (!parse_integer(p, number) || number < 0 || !ends_token(*p))
        fail(token, "expected the header 'rows features labels', found " + shown(token) +
                        "; an XMC file starts with these three counts (without them, read it as svmlight)");
      while (is_blank(*p)) ++p;
    }
    if (*p != '\n' && *p != '#')
      fail(p, "expected the end of the header 'rows features labels', found " + shown(p) +
                  "; an XMC file starts with exactly three counts (without them, read it as svmlight)");
    if (numbers[2] > int32_max)
      fail(token, "the header promises " + std::to_string(numbers[2]) + " labels, more than the " +
                      std::to_string(int32_max) + " that are supported; correct the header");
    rows_promised_ = numbers[0];
    options_.n_features = numbers[1];
    label_limit_ = numbers[2];
  }

  // The labels are the first token. If that is a feature, the row has no labels.
  const char* parse_labels(const char* p) {
    const char* const first = p;
    const char* const end = token_end(p);
    if (std::find(p, end, ':') != end) {
      note_label_count(p, 0);
      return p;
    }
    row_labels_.clear();
    int64_t count = 0;
    while (true) {
      parse_label(p);
      ++count;
      if (p == end) break;
      if (*p != ',')
        fail(first, "expected a label, found " + shown(first) +
                        "; a label is a number; separate several labels with commas, without spaces");
      ++p;
    }
    note_label_count(first, count);
    if (row_labels_.size() > 1) {
      std::sort(row_labels_.begin(), row_labels_.end());
      const auto twice = std::adjacent_find(row_labels_.begin(), row_labels_.end());
      if (twice != row_labels_.end())
        fail(first, "label " + std::to_string(*twice) + " is given twice; remove one of the two");
    }
    integer_labels_.append(row_labels_.data(), std::ssize(row_labels_));
    return p;
  }

  void parse_label(const char*& p) {
    const char* const token = p;
    int64_t number = 0;
    if (parse_integer(p, number) && (ends_token(*p) || *p == ',')) {
      if (label_limit_ >= 0 && (number < 0 || number >= label_limit_))
        fail(token, "label " + std::to_string(number) + " is outside 0.." + std::to_string(label_limit_ - 1) +
                        ", the range that the header allows; correct the label or the header");
      // The number of labels, one more than the largest, must fit 64 bits.
      if ((number < 0 || number == int64_max) && !not_a_class_.line) not_a_class_ = place(token);
      max_label_ = std::max(max_label_, number);
      ++n_labels_;
      if (integers_)
        row_labels_.push_back(number);
      else
        real_labels_.push_back(static_cast<double>(number));
      return;
    }
    p = token;
    double real = 0;
    const NumberStatus status = parse_number(p, real);
    if (status == NumberStatus::malformed || !(ends_token(*p) || *p == ','))
      fail(token, "expected a label, found " + shown(token) +
                      "; a label is a number; separate several labels with commas, without spaces");
    if (status != NumberStatus::ok)
      fail(token, "label " + shown(token) + " is not a finite number; give the row a finite label");
    if (label_limit_ >= 0)
      fail(token, "label " + shown(token) + " is not an integer; XMC labels are integers of at least 0");
    if (!not_a_class_.line) not_a_class_ = place(token);
    // The first non-integer label makes all labels real, including those of this row so far.
    if (integers_) {
      integer_labels_.append(row_labels_.data(), std::ssize(row_labels_));
      row_labels_.clear();
      integers_ = false;
    }
    ++n_labels_;
    real_labels_.push_back(real);
  }

  void note_label_count(const char* at, int64_t count) {
    if (count == 1) return;
    if (options_.multilabel == Choice::no)
      fail(at, "expected one label, found " + (count ? std::to_string(count) : std::string("none")),
           "several_labels");
    if (!other_than_one_.line) other_than_one_ = place(at);
  }

  void parse_features(const char* p, const char* newline) {
    // The shortest feature with its blank has four bytes ("1:2 "), so the row cannot outgrow this.
    const auto room = static_cast<size_t>((newline - p) / 4 + 1);
    if (row_indices_.size() < room) {
      row_indices_.resize(room * 2);
      row_values_.resize(room * 2);
    }
    int64_t* const indices = row_indices_.data();
    Value* const values = row_values_.data();
    int64_t count = 0, previous = -1, largest = -1, smallest = int64_max;
    const char* largest_at = p;
    bool ascending = true;
    while (true) {
      while (is_blank(*p)) ++p;
      if (*p == '\n' || *p == '#') break;
      const char* const token = p;
      int64_t index = 0;
      while (is_digit(*p) && p - token < 18) index = index * 10 + (*p++ - '0');
      if (p == token || *p != ':') index = parse_unusual_index(token, p);
      ++p;
      const char* const number = p;
      const NumberStatus status = parse_number(p, values[count]);
      if (status != NumberStatus::ok || !ends_token(*p)) check_value(token, number, p, status);
      ascending &= index > previous;
      previous = index;
      if (index > largest) {
        largest = index;
        largest_at = token;
      }
      smallest = std::min(smallest, index);
      indices[count++] = index;
    }
    if (count == 0) return;
    if (smallest == 0 && options_.zero_based == Choice::no)
      fail(feature_token(std::find(indices, indices + count, 0) - indices),
           "index 0, but features are counted from 1 here", "index_zero");
    if (largest > max_index_) {
      max_index_ = largest;
      max_index_at_ = place(largest_at);
      if (options_.n_features >= 0 && largest > options_.n_features) check_largest_index();
      if (options_.zero_based == Choice::yes) check_largest_index();
    }
    min_index_ = std::min(min_index_, smallest);
    if (!ascending) sort_row(count);
    store_row(count, largest);
  }

  // Anything but one to eighteen digits and a colon: a longer index that still fits 64 bits, or an error.
  int64_t parse_unusual_index(const char* token, const char*& p) const {
    const char* const end = token_end(token);
    const char* const colon = std::find(token, end, ':');
    const bool digits = colon != token && std::all_of(token, colon, is_digit);
    if (colon != end && digits) {
      int64_t index = 0;
      const auto [stop, error] = std::from_chars(token, colon, index);
      if (error != std::errc{} || (index == int64_max && options_.zero_based == Choice::yes))
        fail(token, "index " + std::string(token, colon) +
                        " does not fit 64 bits; number the features with smaller integers");
      p = stop;
      return index;
    }
    if (std::memchr(token, '\0', end - token))
      fail(token, "expected index:value, found " + shown(token) +
                      "; this is binary data, not text; is it compressed in an unsupported format?");
    if (colon != end && std::string(token, colon) == "qid")
      fail(token, "found " + shown(token) +
                      ", but query ids are not supported; remove the qid: column (ranking is not done here)");
    if (colon != end && *token == '-' && colon - token > 1 && std::all_of(token + 1, colon, is_digit))
      fail(token, "negative index in " + shown(token) + "; indices count from 0 or 1");
    fail(token, "expected index:value, found " + shown(token) +
                    "; write each feature as a non-negative integer, a colon and a number");
  }

  // Called if `status` is not ok or the token does not end at `p`: fails unless it is an allowed NaN or
  // infinity.
  void check_value(const char* token, const char* number, const char* p, NumberStatus status) const {
    if (status == NumberStatus::malformed || !ends_token(*p))
      fail(number, "expected a number after the colon of " + shown(token) + ", found " + shown(number) +
                       "; write the value as a decimal such as 0.25 or 1e-3");
    if (status == NumberStatus::overflow)
      fail(number, "value " + shown(number) + " is too large for float" + std::to_string(8 * sizeof(Value)),
           sizeof(Value) == 4 ? "too_large" : "too_large_for_float64");
    if (status == NumberStatus::nonfinite && !options_.allow_nonfinite)
      fail(number, "value " + shown(number) + " is not finite", "nonfinite");
  }

  // The start of the k-th feature of the current line.
  const char* feature_token(int64_t k) const {
    const char* p = line_begin_;
    while (true) {
      while (is_blank(*p)) ++p;
      const char* const end = token_end(p);
      if (p == end) return p;
      if (std::find(p, end, ':') != end && k-- == 0) return p;
      p = end;
    }
  }

  void sort_row(int64_t count) {
    order_.resize(static_cast<size_t>(count));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int64_t a, int64_t b) { return row_indices_[a] < row_indices_[b]; });
    sorted_indices_.resize(static_cast<size_t>(count));
    sorted_values_.resize(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k) {
      sorted_indices_[k] = row_indices_[order_[k]];
      sorted_values_[k] = row_values_[order_[k]];
      if (k > 0 && sorted_indices_[k] == sorted_indices_[k - 1])
        fail(feature_token(order_[k]),
             "index " + std::to_string(sorted_indices_[k]) +
                 " is given twice in this row; remove one or add up the two values");
    }
    std::copy(sorted_indices_.begin(), sorted_indices_.end(), row_indices_.begin());
    std::copy(sorted_values_.begin(), sorted_values_.end(), row_values_.begin());
  }

  void store_row(int64_t count, int64_t largest) {
    if (largest > int32_max && !is_wide_) {
      is_wide_ = true;
      narrow_.drain([this](const int32_t* block, int64_t n) { wide_.append(block, n); });
    }
    if (is_wide_)
      wide_.append(row_indices_.data(), count);
    else
      narrow_.append(row_indices_.data(), count);
    values_.append(row_values_.data(), count);
    nnz_ += count;
  }

  void check_largest_index() const {
    if (max_index_ < 0) return;
    const bool from_zero = options_.zero_based == Choice::yes;
    if (from_zero && max_index_ == int64_max)
      throw ParseFailure(
          max_index_at_.line, max_index_at_.column,
          "index " + std::to_string(max_index_) +
              " does not fit 64 bits when counted from 0; number the features with smaller integers");
    if (options_.n_features < 0 || max_index_ < options_.n_features + (from_zero ? 0 : 1)) return;
    const std::string limit = std::to_string(options_.n_features);
    throw ParseFailure(max_index_at_.line, max_index_at_.column,
                       "index " + std::to_string(max_index_) + " does not fit " + limit + " features" +
                           (options_.xmc ? ", the number in the header; correct the index or the header"
                            : from_zero  ? " counted from 0"
                                         : " counted from 1"),
                       options_.xmc ? "" : "unknown_feature");
  }

  void check_header_kept() const {
    if (label_limit_ < 0)
      throw ParseFailure(line_ + 1, 1,
                         "expected the header 'rows features labels', found the end of the file; "
                         "an XMC file starts with these three counts");
    if (rows_read() != rows_promised_)
      throw ParseFailure(line_ + 1, 1,
                         "the header promises " + std::to_string(rows_promised_) +
                             " rows, but the file ends after " + std::to_string(rows_read()) +
                             "; is it cut short?");
  }

  ReadOptions options_;
  std::string unfinished_;
  int64_t line_ = 0;
  const char* line_begin_ = nullptr;

  int64_t rows_promised_ = 0, label_limit_ = -1;  // from the header of an XMC file

  GrowingArray<int32_t> narrow_;  // indices as written; once one needs 64 bits, all move to wide_
  GrowingArray<int64_t> wide_;
  bool is_wide_ = false;
  GrowingArray<Value> values_;
  GrowingArray<int64_t> row_ends_, label_ends_;
  int64_t n_rows_ = 0, nnz_ = 0, rows_taken_ = 0;
  int64_t min_index_ = int64_max, max_index_ = -1;
  Place max_index_at_;

  GrowingArray<int64_t> integer_labels_;
  GrowingArray<double> real_labels_;
  bool integers_ = true;
  int64_t n_labels_ = 0, max_label_ = -1;
  // The first row whose number of labels is not 1, and the first label that cannot be one of several.
  Place other_than_one_, not_a_class_;

  std::vector<int64_t> row_labels_, row_indices_, sorted_indices_, order_;
  std::vector<Value> row_values_, sorted_values_;
};

}  // namespace manyclass
