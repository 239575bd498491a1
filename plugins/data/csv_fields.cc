#include "csv_fields.h"

#include <algorithm>
#include <utility>

namespace thalweg::data {

char CsvDelimiter(std::string_view text, const char* what) {
  if (text.size() != 1 || text[0] == '"' || text[0] == '\n' || text[0] == '\r')
    Invalid("'" + std::string(what) + "' is '" + std::string(text) + "'; it must be one character, and no quote or end of a line");
  return text[0];
}

const char* SplitCsv(std::string_view record, const CsvRules& rules, std::vector<std::string>* fields) {
  fields->clear();
  for (size_t at = 0;;) {
    std::string field;
    if (rules.quotes && at < record.size() && record[at] == '"') {
      for (++at;; ++at) {
        if (at >= record.size()) return "has a quote that does not end";
        if (record[at] != '"') {
          field += record[at];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          field += record[at++];
        } else {
          break;
        }
      }
      ++at;
      if (at < record.size() && record[at] != rules.delim) return "goes on behind its quote";
    } else {
      const size_t end = std::min(record.find(rules.delim, at), record.size());
      field = record.substr(at, end - at);
      if (rules.quotes && field.find_first_of("\"\r\n") != field.npos)
        return "has a quote or an end of a line, and does not begin with a quote";
      at = end;
    }
    fields->push_back(std::move(field));
    if (at >= record.size()) return nullptr;
    ++at;
  }
}

bool SetCsvNumber(uint32_t dtype, std::string_view field, void* out) {
  switch (dtype) {
    case TW_FLOAT: return CsvNumber(field, static_cast<float*>(out));
    case TW_DOUBLE: return CsvNumber(field, static_cast<double*>(out));
    case TW_INT32: return CsvNumber(field, static_cast<int32_t*>(out));
    case TW_INT64: return CsvNumber(field, static_cast<int64_t*>(out));
    default: Invalid("a column of type " + tw::dtype_text(dtype) + " is asked for; there are float, double, int32, int64 and string");
  }
}

}  // namespace thalweg::data
