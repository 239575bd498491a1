// thalweg/dataset.h: sources that read files.
#include <cstring>

#include "ops/library/dataset_parts.h"
#include "ops/library/options.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

// The last inputs of the ops that read files: compression and size of a piece.
std::vector<tw_output> OfFiles(tw_scope* scope, const char* function, tw_output filenames, const char* compression) {
  const std::string given = compression ? compression : "";
  const char* name = given.empty() ? "" : given == "gzip" ? "GZIP" : given == "zlib" ? "ZLIB" : nullptr;
  if (!name) Refuse(scope, function, "compression is '" + given + "'; it must be 'gzip', 'zlib' or ''");
  return {filenames, String(scope, name ? name : ""), Long(scope, 0)};
}

tw_output StringsOf(tw_scope* scope, const char* function, const char* op, tw_output filenames, const char* compression) {
  return Protect(scope, [&]() -> tw_output {
    const std::vector<tw_output> inputs = OfFiles(scope, function, filenames, compression);
    if (!Good(scope)) return 0;
    OpenOp open(scope, op);
    tw_op_add_inputs(open, inputs.data(), uint32_t(inputs.size()));
    return open.End();
  });
}

constexpr uint32_t kFieldTypes[] = {TW_FLOAT, TW_DOUBLE, TW_INT32, TW_INT64, TW_STRING};

// The columns of a function, checked.
struct FileColumns {
  std::vector<tw_dataset_column> all;
  Components elements;
  std::vector<std::string> names;
  bool named = false;
  std::vector<tw_string> Names() const {
    std::vector<tw_string> texts;
    for (const std::string& n : names) texts.push_back({n.data(), n.size()});
    return texts;
  }
};

std::string ColumnText(const tw_dataset_column& c, uint32_t k) {
  return "column " + (c.name ? "'" + std::string(c.name) + "'" : std::to_string(k));
}

FileColumns ReadColumns(tw_scope* scope, const char* function, const tw_dataset_column* const* columns, uint32_t n) {
  FileColumns found;
  if (n == 0 || !columns) Refuse(scope, function, "there are no columns");
  for (uint32_t k = 0; Good(scope) && k < n; ++k) {
    if (!columns[k]) {
      Refuse(scope, function, "column " + std::to_string(k) + " is NULL");
      return found;
    }
    const tw_dataset_column c = ReadOptions(scope, "tw_dataset_column", columns[k], tw_dataset_column_init);
    if (k == 0) found.named = c.name != nullptr;
    if (Good(scope) && found.named != (c.name != nullptr))
      Refuse(scope, function, ColumnText(c, k) + (c.name ? " has a name, and column 0 has none" : " has no name, and column 0 has one"));
    if (Good(scope) && (c.rank < 0 || (c.rank > 0 && !c.dims)))
      Refuse(scope, function, ColumnText(c, k) + " has the rank " + std::to_string(c.rank) + (c.rank > 0 ? ", and its dims are NULL" : ""));
    if (!Good(scope)) return found;
    found.all.push_back(c);
    found.names.push_back(c.name ? c.name : "");
    found.elements.Add(c.dtype, {c.dims, c.rank, 0});
  }
  return found;
}

void CheckTypes(tw_scope* scope, const char* function, const FileColumns& columns, bool truths) {
  for (uint32_t k = 0; Good(scope) && k < columns.all.size(); ++k) {
    const uint32_t type = columns.all[k].dtype;
    bool known = truths && type == TW_BOOL;
    for (const uint32_t t : kFieldTypes) known |= t == type;
    const char* name = tw_dtype_name(type);  // NULL for a number that is no type, such as 0
    if (!known)
      Refuse(scope, function,
             ColumnText(columns.all[k], k) + " is " + (name ? name : "of an unknown type") + "; there are float, double, int32, int64" +
                 (truths ? ", bool" : "") + " and string");
  }
}

// A constant without elements: a default that is missing.
tw_output NoElements(tw_scope* scope, uint32_t dtype) {
  const int64_t none = 0;
  tw_tensor* t = nullptr;
  tw_scope_fail(scope, tw_tensor_create(dtype, &none, 1, &t));
  const OwnedTensor owned(t);
  return t ? tw_scope_constant(scope, t) : 0;
}

tw_output Zero(tw_scope* scope, uint32_t dtype) { return dtype == TW_STRING ? String(scope, "") : tw_scope_scalar(scope, dtype, 0); }

tw_output ArrayRows(tw_scope* scope, const char* format, const std::vector<tw_output>& files, const FileColumns& columns) {
  if (!Good(scope)) return 0;
  OpenOp op(scope, "ArrayFilesDataset");
  tw_op_add_inputs(op, files.data(), uint32_t(files.size()));
  tw_op_set_string(op, "format", format, std::strlen(format));
  const std::vector<tw_string> names = columns.named ? columns.Names() : std::vector<tw_string>();
  tw_op_set_strings(op, "arrays", names.data(), uint32_t(names.size()));
  return EndDataset(&op, columns.elements);
}

tw_output RowsOfArray(tw_scope* scope, const char* function, const char* format, tw_output filenames, uint32_t dtype, const int64_t* dims,
                      int32_t rank, const char* compression) {
  return Protect(scope, [&] {
    tw_dataset_column column;
    tw_dataset_column_init(&column);
    column.dtype = dtype;
    column.dims = dims;
    column.rank = rank;
    const tw_dataset_column* const one = &column;
    return ArrayRows(scope, format, OfFiles(scope, function, filenames, compression), ReadColumns(scope, function, &one, 1));
  });
}

}  // namespace

tw_output tw_dataset_records(tw_scope* scope, tw_output filenames) {
  return StringsOf(scope, "tw_dataset_records", "TFRecordDataset", filenames, "");
}
tw_output tw_dataset_lines(tw_scope* scope, tw_output filenames) {
  return StringsOf(scope, "tw_dataset_lines", "TextLineDataset", filenames, "");
}
tw_output tw_dataset_records_packed(tw_scope* scope, tw_output filenames, const char* compression) {
  return StringsOf(scope, "tw_dataset_records_packed", "TFRecordDataset", filenames, compression);
}
tw_output tw_dataset_lines_packed(tw_scope* scope, tw_output filenames, const char* compression) {
  return StringsOf(scope, "tw_dataset_lines_packed", "TextLineDataset", filenames, compression);
}

void tw_dataset_column_init(tw_dataset_column* column) {
  if (column) *column = {sizeof(tw_dataset_column), 0, nullptr, TW_FLOAT, 0, nullptr, 0};
}

void tw_dataset_csv_options_init(tw_dataset_csv_options* options) {
  if (options) *options = {sizeof(tw_dataset_csv_options), 0, ",", "", "", 1, 1};
}

tw_output tw_dataset_csv(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* columns, uint32_t n,
                         const tw_dataset_csv_options* options) {
  return Protect(scope, [&]() -> tw_output {
    const char* function = "tw_dataset_csv";
    const auto o = ReadOptions(scope, "tw_dataset_csv_options", options, tw_dataset_csv_options_init);
    const FileColumns found = ReadColumns(scope, function, columns, n);
    CheckTypes(scope, function, found, false);
    for (uint32_t k = 0; Good(scope) && k < found.all.size(); ++k)
      if (found.all[k].rank > 0) Refuse(scope, function, ColumnText(found.all[k], k) + " has a shape; a field is a single value");
    if (!Good(scope)) return 0;
    const bool choose = found.named && o.header;
    std::vector<tw_output> inputs = OfFiles(scope, function, filenames, o.compression);
    if (!choose) inputs.push_back(Flag(scope, o.header));
    inputs.insert(inputs.end(),
                  {String(scope, o.delimiter ? o.delimiter : ","), Flag(scope, o.quotes), String(scope, o.missing ? o.missing : "")});
    const tw_output no_columns = choose ? 0 : NoElements(scope, TW_INT64);
    if (!choose) inputs.push_back(no_columns);
    for (const tw_dataset_column& c : found.all) inputs.push_back(c.missing ? c.missing : NoElements(scope, c.dtype));
    if (!choose) inputs.push_back(no_columns);
    if (!Good(scope)) return 0;
    OpenOp op(scope, choose ? "CsvColumnsDataset" : "CSVDatasetV2");
    tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
    const std::vector<tw_string> names = found.Names();
    if (choose) tw_op_set_strings(op, "columns", names.data(), uint32_t(names.size()));
    return EndDataset(&op, found.elements);
  });
}

tw_output tw_dataset_json_lines(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* columns, uint32_t n,
                                const char* compression) {
  return Protect(scope, [&]() -> tw_output {
    const char* function = "tw_dataset_json_lines";
    const FileColumns found = ReadColumns(scope, function, columns, n);
    if (Good(scope) && !found.named) Refuse(scope, function, "column 0 has no name; members of objects have names");
    CheckTypes(scope, function, found, true);
    std::vector<tw_output> inputs = OfFiles(scope, function, filenames, compression);
    std::vector<tw_string> required;
    const std::vector<tw_string> names = found.Names();
    for (size_t k = 0; Good(scope) && k < found.all.size(); ++k) {
      const tw_dataset_column& c = found.all[k];
      inputs.push_back(c.missing ? c.missing : Zero(scope, c.dtype));
      if (!c.missing) required.push_back(names[k]);
    }
    if (!Good(scope)) return 0;
    OpenOp op(scope, "JsonLinesDataset");
    tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
    tw_op_set_strings(op, "keys", names.data(), uint32_t(names.size()));
    tw_op_set_strings(op, "required", required.data(), uint32_t(required.size()));
    return EndDataset(&op, found.elements);
  });
}

tw_output tw_dataset_npy(tw_scope* scope, tw_output filenames, uint32_t dtype, const int64_t* dims, int32_t rank, const char* compression) {
  return RowsOfArray(scope, "tw_dataset_npy", "npy", filenames, dtype, dims, rank, compression);
}
tw_output tw_dataset_idx(tw_scope* scope, tw_output filenames, uint32_t dtype, const int64_t* dims, int32_t rank, const char* compression) {
  return RowsOfArray(scope, "tw_dataset_idx", "idx", filenames, dtype, dims, rank, compression);
}
tw_output tw_dataset_npz(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* arrays, uint32_t n) {
  return Protect(scope, [&] {
    const FileColumns found = ReadColumns(scope, "tw_dataset_npz", arrays, n);
    if (Good(scope) && !found.named) Refuse(scope, "tw_dataset_npz", "array 0 has no name");
    return ArrayRows(scope, "npz", OfFiles(scope, "tw_dataset_npz", filenames, ""), found);
  });
}
