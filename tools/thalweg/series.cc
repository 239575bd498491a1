#include "series.h"

#include <algorithm>
#include <charconv>

#include "csv.h"
#include "handles.h"

namespace thalweg::cli {
namespace {

bool ToNumber(const std::string& text, double* out) {
  const char *begin = text.data() + (text[0] == '+' ? 1 : 0), *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, *out);
  return error == std::errc() && at == end;
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  return text;
}

// Shortens a cell for a message.
std::string Shortened(const std::string& text) {
  constexpr size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

constexpr size_t kNoColumn = SIZE_MAX;

size_t FindStep(const CsvRow& header, const std::string& x, const std::string& path) {
  std::string names;
  for (size_t i = 0; i < header.cells.size(); ++i) {
    const std::string& name = header.cells[i].text;
    if (x.empty() ? Lower(name) == "step" : name == x) return i;
    names += (i ? ", " : "") + name;
  }
  if (x.empty()) return kNoColumn;
  throw std::runtime_error("'" + path + "' has no column '" + x + "'; it has " + names);
}

}  // namespace

void SortSeries(SeriesSet* set) {
  std::stable_sort(set->series.begin(), set->series.end(),
                   [](const Series& a, const Series& b) { return a.tag != b.tag ? a.tag < b.tag : a.run < b.run; });
  for (Series& s : set->series) {
    std::stable_sort(s.points.begin(), s.points.end(), [](const Measurement& a, const Measurement& b) { return a.step < b.step; });
  }
}

SeriesSet ReadSeriesTable(const std::string& path, const std::string& x) {
  const std::string text = ReadFile(path);
  std::vector<CsvRow> rows;
  try {
    rows = ParseCsv(text);
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
  if (rows.empty()) throw std::runtime_error("'" + path + "' is empty; it needs a line of column names");
  const CsvRow header = rows[0];
  const size_t step = FindStep(header, x, path);
  const std::string file = path.substr(path.rfind('/') + 1), run = file.substr(0, file.rfind('.'));
  SeriesSet set;
  for (size_t column = 0; column < header.cells.size(); ++column) {
    if (column == step) continue;
    Series series{run, header.cells[column].text, {}};
    for (size_t i = 1; i < rows.size(); ++i) {
      const std::vector<CsvCell>& cells = rows[i].cells;
      if (column >= cells.size() || cells[column].text.empty()) continue;
      const auto number = [&](size_t at) {
        double value = 0;
        if (at < cells.size() && ToNumber(cells[at].text, &value)) return value;
        throw std::runtime_error(path + ":" + std::to_string(rows[i].line) + ": '" + (at < cells.size() ? Shortened(cells[at].text) : "") +
                                 "' in column '" + Shortened(header.cells[at].text) + "' is not a number");
      };
      series.points.push_back({step == kNoColumn ? double(i) : number(step), 0, number(column)});
    }
    if (series.points.empty())
      set.notes.push_back("'" + path + "': column '" + series.tag + "' has no values");
    else
      set.series.push_back(std::move(series));
  }
  SortSeries(&set);
  return set;
}

}  // namespace thalweg::cli
