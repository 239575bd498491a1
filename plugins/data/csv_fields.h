// The fields of a record of CSV (RFC 4180), for DecodeCSV and CSVDatasetV2.
#ifndef THALWEG_PLUGINS_DATA_CSV_FIELDS_H_
#define THALWEG_PLUGINS_DATA_CSV_FIELDS_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset.h"

namespace thalweg::data {

struct CsvRules {
  char delim = ',';
  bool quotes = true;   // fields may be quoted
  std::string missing;  // what stands for a missing value, besides an empty field

  bool Missing(std::string_view field) const { return field.empty() || (!missing.empty() && field == missing); }
};

// Returns the delimiter that the text is. Throws if it cannot be one. what: the name of the argument.
char CsvDelimiter(std::string_view text, const char* what);

// Splits a record, without the end of its line, into fields. Returns NULL, or what is wrong with
// field number fields->size().
const char* SplitCsv(std::string_view record, const CsvRules& rules, std::vector<std::string>* fields);

// Returns the number that a field is, with blanks around it. Returns false if it is none or outside
// of the range of T.
template <class T>
bool CsvNumber(std::string_view field, T* out) {
  const char* from = field.data();
  const char* end = from + field.size();
  while (from < end && *from == ' ') ++from;
  while (end > from && end[-1] == ' ') --end;
  if (end - from > 1 && *from == '+' && from[1] != '-') ++from;
  const auto [stop, error] = std::from_chars(from, end, *out);
  return error == std::errc() && stop == end && from != end;
}

// Writes the number that a field is to an element of this type: float, double, int32 or int64.
// Returns false if it is none; throws for other types.
bool SetCsvNumber(uint32_t dtype, std::string_view field, void* out);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_CSV_FIELDS_H_
