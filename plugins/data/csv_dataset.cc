// CSVDatasetV2 and CsvColumnsDataset: the records of CSV files, with a component of its own type
// for each column. A quoted field may hold ends of lines. Errors name the file and the line in
// which the record begins.
#include <algorithm>
#include <optional>

#include "csv_fields.h"
#include "feature_tensors.h"
#include "file.h"
#include "register.h"

namespace thalweg::data {
namespace {

constexpr uint64_t kLook = 512, kMostRecord = 16 << 20;

// Takes the bytes of the next record, with the end of its line. Returns no bytes at the end of the file.
std::string_view Take(FileReader& in, const CsvRules& rules) {
  enum { kBegin, kPlain, kQuoted, kQuote } state = kBegin;  // kQuote: behind a quote within a quoted field
  std::string_view bytes;
  uint64_t seen = 0;
  for (uint64_t want = kLook;; want *= 2) {
    bytes = in.Peek(want);
    for (; seen < bytes.size(); ++seen) {
      const char b = bytes[seen];
      if (state == kQuoted) {
        if (b == '"') state = kQuote;
      } else if (b == '\n') {
        return in.Read(seen + 1);
      } else if (b == '"' && rules.quotes && state != kPlain) {
        state = kQuoted;  // a quoted field begins, or goes on behind two quotes
      } else {
        state = b == rules.delim ? kBegin : kPlain;
      }
    }
    if (bytes.size() < want) return in.Read(bytes.size());
    if (want >= kMostRecord) break;
  }
  const uint64_t start = in.offset(), line = bytes.find('\n');
  in.Read(line == bytes.npos ? bytes.size() : line + 1);  // the records behind this line may be whole
  Invalid(WhereLine(in, start) + "the record is longer than " + std::to_string(kMostRecord) +
          " bytes; look for a quote that does not end, or give another delimiter");
}

std::string_view WithoutEnd(std::string_view record) {
  if (!record.empty() && record.back() == '\n') record.remove_suffix(1);
  if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
  return record;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 100;
  return "'" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "...'" : "'");
}

constexpr uint64_t kCharged = 64 << 10;  // bytes of a record whose fields are charged to the call

// A bound on the memory of the fields of a record. Each may have one byte of it and becomes a string.
uint64_t FieldBytes(std::string_view record, char delim) {
  constexpr uint64_t kVectors = 3;  // a vector grows into one of twice its size
  const uint64_t fields = 1 + uint64_t(std::count(record.begin(), record.end(), delim));
  return fields * (kVectors * sizeof(std::string) + tw::kHeapBlock) + record.size();
}

struct Columns final : FileFacts {
  std::vector<size_t> at;          // of each component
  size_t fields = 0;               // of a record; 0: enough for `at`
  std::vector<std::string> names;  // of the components; empty without names
};

// Which columns become components.
struct Choice {
  bool header = false;             // the first record of a file has names
  std::vector<std::string> names;  // of the columns, which the header has; empty: `at`
  std::vector<size_t> at;
  size_t fields = 0;
};

class Csv final : public Format {
 public:
  Csv(CsvRules rules, Choice choice, Element defaults, std::vector<uint32_t> element_types)
      : Format(std::move(element_types)), rules_(std::move(rules)), choice_(std::move(choice)), defaults_(std::move(defaults)) {}

  std::unique_ptr<FileFacts> Start(FileReader& in, Call& c) const override {
    auto columns = std::make_unique<Columns>();
    columns->at = choice_.at;
    columns->fields = choice_.fields;
    if (!choice_.header) return columns;
    if (!choice_.names.empty() && in.Peek(3) == "\xEF\xBB\xBF") in.Read(3);
    const std::string_view record = Take(in, rules_);
    if (choice_.names.empty()) return columns;
    if (record.empty()) Invalid(WhereLine(in, 0) + "the file is empty; it must begin with the names of its columns");
    std::optional<tw::Charge> charge;
    if (record.size() >= kCharged) charge.emplace(c.f, FieldBytes(record, rules_.delim));
    std::vector<std::string> fields;
    if (const char* wrong = SplitCsv(WithoutEnd(record), rules_, &fields))
      Invalid(WhereLine(in, 0) + "field " + std::to_string(fields.size()) + " of the header " + wrong);
    columns->names = choice_.names;
    columns->fields = fields.size();
    for (const std::string& name : choice_.names) {
      const auto found = std::find(fields.begin(), fields.end(), name);
      if (found == fields.end()) Invalid(WhereLine(in, 0) + "the header has no column " + Quoted(name) + "; it has " + Listed(fields));
      if (std::find(found + 1, fields.end(), name) != fields.end())
        Invalid(WhereLine(in, 0) + "the header has several columns " + Quoted(name) + "; give each column a name of its own");
      columns->at.push_back(size_t(found - fields.begin()));
    }
    return columns;
  }

  bool Read(FileReader& in, const FileFacts* facts, Call& c, Element* out) const override {
    const auto& columns = static_cast<const Columns&>(*facts);
    const uint64_t start = in.offset();
    const std::string_view record = Take(in, rules_);
    if (record.empty()) return false;
    std::optional<tw::Charge> charge;
    if (record.size() >= kCharged) charge.emplace(c.f, FieldBytes(record, rules_.delim));
    std::vector<std::string> fields;
    if (const char* wrong = SplitCsv(WithoutEnd(record), rules_, &fields))
      Invalid(WhereLine(in, start) + "field " + std::to_string(fields.size()) + " " + wrong);
    if (columns.fields > 0 && fields.size() != columns.fields) {
      Invalid(WhereLine(in, start) + "the record has " + std::to_string(fields.size()) + " fields; " +
              (columns.names.empty() ? "there are " + std::to_string(columns.fields) + " record_defaults"
                                     : "the header has " + std::to_string(columns.fields)));
    }
    out->clear();
    for (size_t k = 0; k < types.size(); ++k) {
      if (columns.at[k] >= fields.size())
        Invalid(WhereLine(in, start) + "the record has " + std::to_string(fields.size()) + " fields; column " +
                std::to_string(columns.at[k]) + " is asked for");
      const std::string& field = fields[columns.at[k]];
      const auto which = [&] {
        return WhereLine(in, start) +
               (columns.names.empty() ? "field " + std::to_string(columns.at[k]) : "column " + Quoted(columns.names[k])) + " is ";
      };
      if (rules_.Missing(field)) {
        if (!defaults_[k].get()) Invalid(which() + "missing and has no default; give one, or mend the file");
        out->push_back(defaults_[k]);
      } else if (types[k] == TW_STRING) {
        out->push_back(c.MakeString(field));
      } else {
        Ref value = c.Make(types[k], {});
        if (!SetCsvNumber(types[k], field, value.view().data))
          Invalid(which() + Quoted(field) + ", which is no " + tw::dtype_text(types[k]));
        out->push_back(std::move(value));
      }
    }
    return true;
  }

  void Describe(std::string* to) const override {
    *to += "CSV(";
    for (size_t k = 0; k < types.size(); ++k) {
      *to += k ? ", " : "";
      *to += choice_.names.empty() ? std::to_string(choice_.at[k]) : Quoted(choice_.names[k]);
    }
    *to += choice_.header ? ", header)" : ")";
  }

 private:
  static std::string Listed(const std::vector<std::string>& names) {
    constexpr size_t kMost = 20;
    std::string text;
    for (size_t k = 0; k < names.size() && k < kMost; ++k) text += (k ? ", " : "") + Quoted(names[k]);
    return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more" : text;
  }

  const CsvRules rules_;
  const Choice choice_;
  const Element defaults_;  // no tensor: the field must be there
};

// The defaults as scalars; no tensor for an empty vector.
Element Scalars(Call& c, const Element& given, const std::vector<uint32_t>& types) {
  if (given.size() != types.size())
    Invalid("there are " + std::to_string(given.size()) + " record_defaults for " + std::to_string(types.size()) + " columns");
  Element out;
  for (size_t k = 0; k < given.size(); ++k) {
    const tw_view& v = given[k].view();
    const std::string which = "record_defaults[" + std::to_string(k) + "] is ";
    if (v.rank > 1 || v.count > 1)
      Invalid(which + DimsText(v) + "; it must be one value, or an empty vector for a field that must be there");
    if (v.dtype != types[k]) Invalid(which + tw::dtype_text(v.dtype) + "; 'output_types' says " + tw::dtype_text(types[k]));
    if (v.dtype != TW_STRING) {
      double ignored = 0;
      SetCsvNumber(v.dtype, "0", &ignored);  // refuses other types
    }
    if (v.count == 0) {
      out.emplace_back();
    } else if (v.dtype == TW_STRING) {
      out.push_back(c.MakeString(View(*static_cast<const tw_string*>(v.data))));
    } else {
      Ref one = c.Make(v.dtype, {});
      std::copy_n(static_cast<const char*>(v.data), ElementBytes(v.dtype), static_cast<char*>(one.view().data));
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<size_t> Numbers(const Inputs& in, uint32_t a, const char* what) {
  const tw_view& v = in.At(a);
  if (v.rank != 1) Invalid("'" + std::string(what) + "' is " + DimsText(v) + "; it must be a vector");
  std::vector<size_t> all;
  const auto* n = static_cast<const int64_t*>(v.data);
  for (uint64_t k = 0; k < v.count; ++k) {
    if (n[k] < 0 || (k > 0 && n[k] <= n[k - 1])) Invalid("'" + std::string(what) + "' must be growing numbers of columns from 0 on");
    all.push_back(size_t(n[k]));
  }
  return all;
}

struct CsvMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const CsvRules rules = {CsvDelimiter(in.Text(4, "field_delim"), "field_delim"), in.Bool(5, "use_quote_delim"),
                            std::string(in.Text(6, "na_value"))};
    Choice choice;
    choice.header = in.Bool(3, "header");
    choice.at = Numbers(in, 7, "select_cols");
    const std::vector<size_t> excluded = Numbers(in, 9, "exclude_cols");
    if (!choice.at.empty() && !excluded.empty()) Invalid("'select_cols' and 'exclude_cols' are both given; leave one of them empty");
    if (!choice.at.empty() && choice.at.size() != types.size())
      Invalid("'select_cols' has " + std::to_string(choice.at.size()) + " columns for " + std::to_string(types.size()) +
              " record_defaults");
    if (choice.at.empty()) {
      for (size_t column = 0; choice.at.size() < types.size(); ++column)
        if (!std::binary_search(excluded.begin(), excluded.end(), column)) choice.at.push_back(column);
      if (excluded.empty()) choice.fields = types.size();
    }
    auto format = std::make_shared<Csv>(rules, std::move(choice), Scalars(in.c, in.Kept(8), types), types);
    return FilesOf(in.Texts(0), std::move(format), in.Text(1, "compression_type"), in.Int(2, "buffer_size"));
  }
};

struct CsvColumnsMaker : Maker {
  explicit CsvColumnsMaker(const tw::Node& n) : Maker(n) {
    const tw_attr& names = n.at("columns");
    for (uint32_t k = 0; k < names.count; ++k) columns.emplace_back(View(static_cast<const tw_string*>(names.data)[k]));
    if (columns.size() != types.size())
      Invalid("'columns' has " + std::to_string(columns.size()) + " names for " + std::to_string(types.size()) + " record_defaults");
  }
  DatasetPtr Make(const Inputs& in) const {
    const CsvRules rules = {CsvDelimiter(in.Text(3, "field_delim"), "field_delim"), in.Bool(4, "use_quote_delim"),
                            std::string(in.Text(5, "na_value"))};
    auto format = std::make_shared<Csv>(rules, Choice{true, columns, {}, 0}, Scalars(in.c, in.Kept(6), types), types);
    return FilesOf(in.Texts(0), std::move(format), in.Text(1, "compression_type"), in.Int(2, "buffer_size"));
  }
  std::vector<std::string> columns;
};

}  // namespace

void register_csv_dataset(tw::Plugin& p) {
  AddDataset<CsvMaker>(
      p, "CSVDatasetV2(string, string, int64, bool, string, bool, string, int64, _, int64 -> variant) @CPU; keep record_defaults");
  AddDataset<CsvColumnsMaker>(p, "CsvColumnsDataset(string, string, int64, string, bool, string, _ -> variant) @CPU; keep record_defaults");
}

}  // namespace thalweg::data
