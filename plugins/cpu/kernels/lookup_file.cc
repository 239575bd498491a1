// InitializeTableFromTextFileV2: fills a table from the lines of a file. Keys and values are
// columns, whole lines or line numbers.
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "kernels/lookup_table.h"
#include "kernels/register.h"
#include "thalweg/cpp/variant.hpp"

namespace thalweg::cpu {
namespace {

constexpr int64_t kWholeLine = -2, kLineNumber = -1;  // instead of a column number

tw::TempString ReadFile(const tw_frame* f, std::string_view path) {
  const tw_host* h = f->host;
  auto* api = static_cast<const tw_files_api*>(h->query(h, TW_S(TW_FILES_SET), 1));
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no files"};
  tw_file* file = nullptr;
  tw::check(api->open(h, path.data(), path.size(), &file));
  const auto close = [api](tw_file* open) { api->close(open); };
  const std::unique_ptr<tw_file, decltype(close)> closer(file, close);
  tw::TempString text(api->bytes(file), '\0', f);
  if (!text.empty()) tw::check(api->read(file, 0, text.data(), text.size()));
  return text;
}

// Returns the lines without their ends, which may be \r\n.
tw::TempVector<std::string_view> Lines(const tw_frame* f, std::string_view text, int64_t most) {
  tw::TempVector<std::string_view> lines(f);
  while (!text.empty() && (most < 0 || int64_t(lines.size()) < most)) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

// Owns a tensor and releases it.
class Column {
 public:
  Column(const tw_frame* f, uint32_t dtype, int64_t n) : h_(f->host) { tw::check(tw::variants(h_).tensor(f, dtype, &n, 1, &t_)); }
  ~Column() { h_->tensor->release(t_); }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  const tw_view* view() const { return h_->tensor->view(t_); }
  // Parses element k from text. Returns false if the text is not a number of the type.
  bool Set(uint64_t k, std::string_view text) {
    switch (view()->dtype) {
      case TW_STRING: tw::check(h_->tensor->set_string(t_, k, text.data(), text.size())); return true;
      case TW_INT32: return Parse<int32_t>(k, text);
      case TW_INT64: return Parse<int64_t>(k, text);
      case TW_FLOAT: return Parse<float>(k, text);
      case TW_DOUBLE: return Parse<double>(k, text);
      default: Invalid("a column of a file cannot be " + TypeText(view()->dtype));
    }
  }
  void SetNumber(uint64_t k, int64_t n) { reinterpret_cast<int64_t*>(Bytes(view()))[k] = n; }

 private:
  template <class T>
  bool Parse(uint64_t k, std::string_view text) {
    T* to = reinterpret_cast<T*>(Bytes(view())) + k;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
    return error == std::errc() && end == text.data() + text.size();
  }
  const tw_host* h_;
  tw_tensor* t_ = nullptr;
};

class FromTextFile {
 public:
  explicit FromTextFile(const tw::Node& n)
      : key_(n.i("key_index")), value_(n.i("value_index")), most_(n.i("vocab_size")), offset_(n.i("offset")), delimiter_(n.s("delimiter")) {
    if (delimiter_.size() != 1) Invalid("delimiter is '" + delimiter_ + "', but must be one character");
    for (const auto& [index, name] : {std::pair{key_, "key_index"}, {value_, "value_index"}})
      if (index < kWholeLine)
        Invalid(std::string(name) + " is " + std::to_string(index) + "; give a column, -1 (line number) or -2 (whole line)");
    if (most_ < -1 || most_ == 0) Invalid("vocab_size is " + std::to_string(most_) + "; give a number of lines, or -1 for all");
  }
  void operator()(tw::Frame f, tw::Var<tw::Any> handle, tw::In<tw_string> filename) const {
    auto* table = static_cast<LookupTable*>(handle.handle());
    const std::string path(filename[0].size ? filename[0].data : "", filename[0].size);
    if (path.empty()) Invalid("filename is empty");
    WantType(key_, table->about().key_dtype, "key_index");
    WantType(value_, table->about().value_dtype, "value_index");
    const tw::TempString text = ReadFile(f.f, path);
    const tw::TempVector<std::string_view> lines = Lines(f.f, text, most_);
    if (most_ >= 0 && int64_t(lines.size()) < most_)
      Invalid("file '" + path + "' has " + std::to_string(lines.size()) + " lines, fewer than the " + std::to_string(most_) +
              " of 'vocab_size'");
    Column keys(f.f, table->about().key_dtype, int64_t(lines.size()));
    Column values(f.f, table->about().value_dtype, int64_t(lines.size()));
    for (size_t k = 0; k < lines.size(); ++k) {
      if (lines[k].empty()) Invalid("line " + std::to_string(k + 1) + " of file '" + path + "' is empty");
      Set(&keys, k, lines[k], key_, path);
      Set(&values, k, lines[k], value_, path);
    }
    InitializeTable(f, table, keys.view(), values.view());
  }

 private:
  static void WantType(int64_t index, uint32_t dtype, const char* name) {
    if (index == kLineNumber && dtype != TW_INT64)
      Invalid(std::string(name) + " -1, the number of a line, is int64, not " + TypeText(dtype));
    if (index == kWholeLine && dtype != TW_STRING) Invalid(std::string(name) + " -2, the whole line, is a string, not " + TypeText(dtype));
  }
  void Set(Column* to, size_t k, std::string_view line, int64_t index, const std::string& path) const {
    if (index == kLineNumber) return to->SetNumber(k, int64_t(k) + offset_);
    std::string_view field = line;
    for (int64_t c = 0; c < index; ++c) {
      const size_t cut = field.find(delimiter_[0]);
      if (cut == field.npos)
        Invalid("line " + std::to_string(k + 1) + " of file '" + path + "' has " + std::to_string(c + 1) + " columns, and no column " +
                std::to_string(index));
      field.remove_prefix(cut + 1);
    }
    if (index >= 0) field = field.substr(0, field.find(delimiter_[0]));
    if (!to->Set(k, field))
      Invalid("'" + std::string(field) + "' in line " + std::to_string(k + 1) + " of file '" + path + "' is no " +
              TypeText(to->view()->dtype));
  }

  int64_t key_, value_, most_, offset_;
  std::string delimiter_;
};

}  // namespace

void register_lookup_file(tw::Plugin& p) { p.kernel<FromTextFile>("InitializeTableFromTextFileV2 @CPU; may_block; update table_handle"); }

}  // namespace thalweg::cpu
