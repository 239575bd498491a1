#include "csv.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "handles.h"

namespace thalweg::cli {
namespace {

// An index or a range, as in Python.
struct Slice {
  bool index = false, has_begin = false, has_end = false;
  int64_t begin = 0, end = 0, step = 1;

  // Which of n there are.
  std::vector<int64_t> Choose(int64_t n, const std::string& what) const {
    const auto wrap = [&](int64_t i) { return i < 0 ? i + n : i; };
    std::vector<int64_t> chosen;
    if (index) {
      if (wrap(begin) < 0 || wrap(begin) >= n) {
        throw std::runtime_error(what + " " + std::to_string(begin) + " of " + std::to_string(n));
      }
      chosen.push_back(wrap(begin));
      return chosen;
    }
    const int64_t from = has_begin ? std::clamp<int64_t>(wrap(begin), 0, n) : 0, to = has_end ? std::clamp<int64_t>(wrap(end), 0, n) : n;
    for (int64_t i = from; i < to; i += step) chosen.push_back(i);
    return chosen;
  }
};

int64_t ToInteger(std::string_view text, const std::string& part) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw std::runtime_error("[" + part + "] is not a range; write [0:5,0:64]");
  return value;
}

Slice ParseSlice(std::string_view text, const std::string& part) {
  Slice s;
  const size_t colon = text.find(':');
  if (colon == text.npos) {
    s.index = true;
    s.begin = ToInteger(text, part);
    return s;
  }
  const std::string_view rest = text.substr(colon + 1);
  const size_t second = rest.find(':');
  const std::string_view begin = text.substr(0, colon), end = rest.substr(0, second);
  if ((s.has_begin = !begin.empty())) s.begin = ToInteger(begin, part);
  if ((s.has_end = !end.empty())) s.end = ToInteger(end, part);
  if (second != rest.npos && second + 1 < rest.size()) s.step = ToInteger(rest.substr(second + 1), part);
  if (s.step < 1) throw std::runtime_error("[" + part + "]: the step must be at least 1");
  return s;
}

std::vector<std::string_view> Split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text = text.substr(at + 1);
  }
}

double Cell(std::string_view text, const std::string& path, int64_t row, int64_t column) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '+')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw std::runtime_error(path + ":" + std::to_string(row + 1) + ": '" + std::string(text) + "' in column " + std::to_string(column + 1) +
                           " is not a number");
}

}  // namespace

tw::Tensor ReadCsv(const std::string& path, const std::string& part) {
  const std::vector<std::string_view> texts = Split(part.empty() ? std::string_view(":") : std::string_view(part), ',');
  if (texts.size() > 2) throw std::runtime_error("[" + part + "] has more than rows and columns");
  const Slice row_slice = ParseSlice(texts[0], part), column_slice = ParseSlice(texts.size() > 1 ? texts[1] : ":", part);
  const std::string bytes = ReadFile(path);
  std::vector<std::string_view> lines = Split(bytes, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();

  std::vector<double> values;
  const std::vector<int64_t> rows = row_slice.Choose(int64_t(lines.size()), path + ": row");
  size_t width = 0;
  for (const int64_t row : rows) {
    const std::vector<std::string_view> cells = Split(lines[size_t(row)], ',');
    const std::string where = path + ":" + std::to_string(row + 1);
    const std::vector<int64_t> columns = column_slice.Choose(int64_t(cells.size()), where + ": column");
    if (row != rows[0] && columns.size() != width) {
      throw std::runtime_error(where + ": " + std::to_string(columns.size()) + " columns, but " + std::to_string(width) + " above");
    }
    width = columns.size();
    for (const int64_t column : columns) values.push_back(Cell(cells[size_t(column)], path, row, column));
  }
  std::vector<int64_t> dims;
  if (!row_slice.index) dims.push_back(int64_t(rows.size()));
  if (!column_slice.index) dims.push_back(int64_t(width));
  return tw::Tensor(dims, values);
}

}  // namespace thalweg::cli
