// DecodeCSV: the fields of lines (RFC 4180) become tensors, one for each column.
#include <algorithm>
#include <string>

#include "csv_fields.h"
#include "dataset.h"
#include "register.h"

namespace thalweg::data {
namespace {

class DecodeCsv {
 public:
  explicit DecodeCsv(const tw::Node& n) : columns_(n.ints("select_cols")) {
    rules_ = {CsvDelimiter(n.s("field_delim"), "field_delim"), n.b("use_quote_delim"), std::string(n.s("na_value"))};
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
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (const char* wrong = SplitCsv(line, rules_, fields))
      Invalid("field " + std::to_string(fields->size()) + " of record " + std::to_string(record) + " " + wrong);
  }

  void Set(tw::Out<tw::Any> out, uint64_t i, const std::string& field, tw::In<tw::Any> otherwise, size_t column) const {
    const uint32_t dtype = out.v()->dtype;
    if (rules_.Missing(field)) {
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
    if (dtype == TW_STRING) return out.set(i, field);
    const uint64_t each = ElementBytes(dtype);
    if (!SetCsvNumber(dtype, field, out.data() + i * each))
      Invalid("field " + std::to_string(column) + " of record " + std::to_string(i) + " is '" + field.substr(0, 100) + "', which is no " +
              tw::dtype_text(dtype));
  }

  CsvRules rules_;
  const std::vector<int64_t> columns_;
};

}  // namespace

void register_csv(tw::Plugin& p) { p.kernel<DecodeCsv>("DecodeCSV @CPU"); }

}  // namespace thalweg::data
