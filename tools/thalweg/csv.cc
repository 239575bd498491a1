#include "csv.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "handles.h"

namespace thalweg::cli {
namespace {

// An index or a range with Python's semantics.
struct Slice {
  bool index = false, has_begin = false, has_end = false;
  int64_t begin = 0, end = 0, step = 1;

  // Returns the selected indices out of [0, n).
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
    for (int64_t i = from; i < to; i += std::min(step, n)) chosen.push_back(i);
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

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  std::vector<CsvRow> Read() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) rows.push_back(Row());
    while (!rows.empty() && rows.back().cells.size() == 1 && rows.back().cells[0].text.empty() && !rows.back().cells[0].quoted) {
      rows.pop_back();
    }
    return rows;
  }

 private:
  CsvRow Row() {
    CsvRow row{{}, line_};
    do row.cells.push_back(Cell());
    while (at_ < text_.size() && text_[at_++] == ',');
    ++line_;
    return row;
  }
  CsvCell Cell() {
    const size_t begin = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    if (begin < text_.size() && text_[begin] == '"') return Quoted(begin);
    const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    size_t last = end;
    while (last > begin && (text_[last - 1] == ' ' || text_[last - 1] == '\t' || text_[last - 1] == '\r')) --last;
    at_ = end;
    return {begin < last ? text_.substr(begin, last - begin) : "", false};
  }
  CsvCell Quoted(size_t begin) {
    const size_t line = line_;
    std::string cell;
    for (at_ = begin + 1; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) break;
      if (text_[at_] == '"') ++at_;
      line_ += text_[at_] == '\n';
      cell += text_[at_];
    }
    if (at_ == text_.size()) Wrong(line, "a quote is not closed");
    ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') Wrong(line_, "something follows a cell in quotes");
    return {std::move(cell), true};
  }
  [[noreturn]] void Wrong(size_t line, const std::string& why) const {
    throw std::runtime_error("line " + std::to_string(line) + ": " + why);
  }

  const std::string& text_;
  size_t at_ = 0, line_ = 1;
};

std::vector<std::string_view> Split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text = text.substr(at + 1);
  }
}

// Formats a cell: bare if it reads back as the same value, else quoted.
std::string CellText(const std::string& value, bool text) {
  if (!text && value.find_first_of(",\"\n") == value.npos) return value;
  std::string out = "\"";
  for (const char c : value) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace

std::vector<CsvRow> ParseCsv(const std::string& text) { return Reader(text).Read(); }

Words ReadCsv(const std::string& path, const std::string& part) {
  const std::vector<std::string_view> texts = Split(part.empty() ? std::string_view(":") : std::string_view(part), ',');
  if (texts.size() > 2) throw std::runtime_error("[" + part + "] has more than rows and columns");
  const Slice row_slice = ParseSlice(texts[0], part), column_slice = ParseSlice(texts.size() > 1 ? texts[1] : ":", part);
  const std::string text = ReadFile(path);
  std::vector<CsvRow> all;
  try {
    all = ParseCsv(text);
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
  Words words;
  words.file = path;
  const std::vector<int64_t> rows = row_slice.Choose(int64_t(all.size()), path + ": row");
  size_t width = 0;
  for (const int64_t i : rows) {
    const CsvRow& row = all[size_t(i)];
    const std::string where = path + ":" + std::to_string(row.line);
    const std::vector<int64_t> columns = column_slice.Choose(int64_t(row.cells.size()), where + ": column");
    if (i != rows[0] && columns.size() != width) {
      throw std::runtime_error(where + ": " + std::to_string(columns.size()) + " columns, but " + std::to_string(width) + " above");
    }
    width = columns.size();
    for (const int64_t column : columns) {
      words.words.push_back(row.cells[size_t(column)].text);
      words.places.emplace_back(uint32_t(row.line), uint32_t(column) + 1);
    }
  }
  if (!row_slice.index) words.dims.push_back(int64_t(rows.size()));
  if (!column_slice.index) words.dims.push_back(int64_t(width));
  return words;
}

std::string MakeCsv(const tw::Tensor& tensor) {
  const std::vector<int64_t> dims = tensor.dims();
  if (dims.size() > 2) throw std::runtime_error("a tensor of " + std::to_string(dims.size()) + " axes is no table; write .npy");
  const bool strings = tensor.dtype() == TW_STRING;
  const std::vector<std::string> values = ElementTexts(tensor);
  const size_t width = dims.size() == 2 ? size_t(dims[1]) : 1;
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) {
    out += CellText(values[i], strings);
    out += (i + 1) % width ? ',' : '\n';
  }
  return out;
}

}  // namespace thalweg::cli
