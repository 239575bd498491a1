// DecodeCSV: the fields of lines (RFC 4180) become tensors, one for each column.
#include <algorithm>
#include <charconv>
#include <string>

#include "dataset.h"
#include "register.h"

namespace thalweg::data {
namespace {

class DecodeCsv {
 public:
  explicit DecodeCsv(const tw::Node& n) : quotes_(n.b("use_quote_delim")), missing_(n.s("na_value")), columns_(n.ints("select_cols")) {
    const std::string_view delim = n.s("field_delim");
    if (delim.size() != 1 || delim[0] == '"' || delim[0] == '\n' || delim[0] == '\r')
      Invalid("'field_delim' is '" + std::string(delim) + "'; it must be one character, and no quote or end of a line");
    delim_ = delim[0];
    const size_t outputs = n.node->n_out;
    for (size_t k = 0; k < columns_.size(); ++k) {
      if (columns_[k] < 0 || (k > 0 && columns_[k] <= columns_[k - 1]))
        Invalid("'select_cols' must be growing numbers of columns from 0 on");
    }
    if (!columns_.empty() && columns_.size() != outputs)
      Invalid("'select_cols' has " + std::to_string(columns_.size()) + " columns for " + std::to_string(outputs) + " outputs");
  }

  void operator()(tw::In<tw_string> records, tw::Many<tw::Any> defaults, tw::ManyOut<tw::Any> outputs) const {
    for (uint32_t k = 0; k < outputs.size(); ++k) {
      if (defaults[k].rank() > 1 || defaults[k].size() > 1)
        Invalid("record_defaults[" + std::to_string(k) + "] is " + DimsText(*defaults[k].v) +
                "; it must be one value, or an empty vector for a field that must be there");
      if (outputs[k].rank() < 0) outputs[k].allocate(DimsOf(*records.v));
      if (outputs[k].size() != records.size()) Fail(TW_INTERNAL, "DecodeCSV: an output has another shape than the records");
    }
    std::vector<std::string> fields;
    for (uint64_t i = 0; i < records.size(); ++i) {
      Split({records[i].data, records[i].size}, i, &fields);
      if (columns_.empty() && fields.size() != outputs.size())
        Invalid("record " + std::to_string(i) + " has " + std::to_string(fields.size()) + " fields; there are " +
                std::to_string(outputs.size()) + " record_defaults");
      for (uint32_t k = 0; k < outputs.size(); ++k) {
        const size_t column = columns_.empty() ? k : size_t(columns_[k]);
        if (column >= fields.size())
          Invalid("record " + std::to_string(i) + " has " + std::to_string(fields.size()) + " fields; 'select_cols' asks for number " +
                  std::to_string(column));
        Set(outputs[k], i, fields[column], defaults[k], column);
      }
    }
  }

 private:
  void Split(std::string_view line, uint64_t record, std::vector<std::string>* fields) const {
    fields->clear();
    const auto fail = [&](const std::string& text) {
      Invalid("field " + std::to_string(fields->size()) + " of record " + std::to_string(record) + " " + text);
    };
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    for (size_t at = 0;;) {
      std::string field;
      if (quotes_ && at < line.size() && line[at] == '"') {
        for (++at;; ++at) {
          if (at >= line.size()) fail("has a quote that does not end");
          if (line[at] != '"') {
            field += line[at];
          } else if (at + 1 < line.size() && line[at + 1] == '"') {
            field += line[at++];
          } else {
            break;
          }
        }
        ++at;
        if (at < line.size() && line[at] != delim_) fail("goes on behind its quote");
      } else {
        const size_t end = std::min(line.find(delim_, at), line.size());
        field = line.substr(at, end - at);
        if (quotes_ && field.find_first_of("\"\r\n") != field.npos)
          fail("has a quote or an end of a line, and does not begin with a quote");
        at = end;
      }
      fields->push_back(std::move(field));
      if (at >= line.size()) return;
      ++at;
    }
  }

  template <class T>
  static void Number(tw::Out<tw::Any> out, uint64_t i, const std::string& field, size_t column) {
    const char* from = field.data();
    const char* end = from + field.size();
    while (from < end && *from == ' ') ++from;
    while (end > from && end[-1] == ' ') --end;
    if (end - from > 1 && *from == '+' && from[1] != '-') ++from;
    T value{};
    const auto [stop, error] = std::from_chars(from, end, value);
    if (error != std::errc() || stop != end || from == end)
      Invalid("field " + std::to_string(column) + " of record " + std::to_string(i) + " is '" + field.substr(0, 100) + "', which is no " +
              tw::dtype<T>);
    reinterpret_cast<T*>(out.data())[i] = value;
  }

  void Set(tw::Out<tw::Any> out, uint64_t i, const std::string& field, tw::In<tw::Any> otherwise, size_t column) const {
    const uint32_t dtype = out.v()->dtype;
    if (field.empty() || (!missing_.empty() && field == missing_)) {
      if (otherwise.size() == 0)
        Invalid("field " + std::to_string(column) + " of record " + std::to_string(i) + " is missing and has no default");
      if (dtype == TW_STRING) {
        const auto& s = *reinterpret_cast<const tw_string*>(otherwise.data());
        return out.set(i, {s.data, s.size});
      }
      const uint64_t each = ElementBytes(dtype);
      std::copy_n(otherwise.data(), each, out.data() + i * each);
      return;
    }
    switch (dtype) {
      case TW_STRING: return out.set(i, field);
      case TW_FLOAT: return Number<float>(out, i, field, column);
      case TW_DOUBLE: return Number<double>(out, i, field, column);
      case TW_INT32: return Number<int32_t>(out, i, field, column);
      case TW_INT64: return Number<int64_t>(out, i, field, column);
      default: Invalid("a column of type " + tw::dtype_text(dtype) + " is asked for; there are float, double, int32, int64 and string");
    }
  }

  char delim_ = ',';
  const bool quotes_;
  const std::string missing_;
  const std::vector<int64_t> columns_;
};

}  // namespace

void register_csv(tw::Plugin& p) { p.kernel<DecodeCsv>("DecodeCSV @CPU"); }

}  // namespace thalweg::data
