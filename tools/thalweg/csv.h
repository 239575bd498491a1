// Files of comma-separated values, RFC 4180: cells may stand in quotes, which they double, and then hold commas and ends of lines.
#pragma once
#include <string>
#include <vector>

#include "words.h"

namespace thalweg::cli {

struct CsvCell {
  std::string text;
  bool quoted = false;
};
struct CsvRow {
  std::vector<CsvCell> cells;
  size_t line = 0;  // of the file, from 1
};
// Empty lines at the end are left out. Throws std::runtime_error naming the line.
std::vector<CsvRow> ParseCsv(const std::string& text);

// [rows, columns] of a file; `part` is "R,C" or "R", see feed.h, "" for all. Lines may differ in length only outside the columns asked
// for. Numbers come without the blanks around them. Throws std::runtime_error naming file and line.
Words ReadCsv(const std::string& path, const std::string& part);

// A scalar, a list (a line each) or rows; strings and what is no plain number in quotes. Throws std::runtime_error beyond two axes.
std::string MakeCsv(const tw::Tensor& tensor);

}  // namespace thalweg::cli
