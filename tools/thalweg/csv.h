// Files of comma-separated values, RFC 4180: a quoted cell may contain commas and line ends, and
// doubles its quotes.
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
  size_t line = 0;  // line number in the file, from 1
};
// Parses `text`; drops empty lines at the end. Throws std::runtime_error naming the line.
std::vector<CsvRow> ParseCsv(const std::string& text);

// Reads a file as [rows, columns]. `part` is "R,C" or "R" (see feed.h), or "" for the whole file.
// Lines may differ in length only outside the selected columns. Strips the blanks around numbers.
// Throws std::runtime_error naming file and line.
Words ReadCsv(const std::string& path, const std::string& part);

// Formats a scalar, a list (one element per line) or rows; quotes strings and elements that are not
// plain numbers. Throws std::runtime_error for more than two axes.
std::string MakeCsv(const tw::Tensor& tensor);

}  // namespace thalweg::cli
