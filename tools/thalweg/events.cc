// Reads event files. A record is a length with its checksum and an Event message with its checksum
// (framework/proto/event.proto lists the fields). Only numbers are read, from simple_value or a
// tensor of one element. Fields are parsed one at a time, because the files may hold large pictures
// that need not be loaded.
#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "framework/base/crc32c.h"
#include "framework/proto/wire.h"
#include "series.h"
#include "thalweg/types.h"

namespace thalweg::cli {
namespace {

constexpr uint64_t kLargestRecord = uint64_t(1) << 31;  // the limit of a protobuf message

template <class T>
T Number(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

double Half(uint64_t bits) {
  const uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double value = exponent == 31 ? (mantissa ? __builtin_nan("") : __builtin_inf())
                                : __builtin_ldexp(exponent ? 1024 + mantissa : mantissa, int(std::max(exponent, 1u)) - 25);
  return bits & 0x8000 ? -value : value;
}

// The encoding of one element of a type in tensor_content and in the type's own field.
struct ElementKind {
  uint32_t dtype, bytes, field;  // field: the repeated field of the type
  bool fixed;                    // encoding in that field: fixed-size bytes, or a varint
  double (*value)(uint64_t bits);
};
constexpr ElementKind kElements[] = {
    {TW_FLOAT, 4, 5, true, [](uint64_t b) { return double(std::bit_cast<float>(uint32_t(b))); }},
    {TW_DOUBLE, 8, 6, true, [](uint64_t b) { return std::bit_cast<double>(b); }},
    {TW_INT32, 4, 7, false, [](uint64_t b) { return double(int32_t(b)); }},
    {TW_INT64, 8, 10, false, [](uint64_t b) { return double(int64_t(b)); }},
    {TW_UINT8, 1, 7, false, [](uint64_t b) { return double(uint8_t(b)); }},
    {TW_INT16, 2, 7, false, [](uint64_t b) { return double(int16_t(b)); }},
    {TW_INT8, 1, 7, false, [](uint64_t b) { return double(int8_t(b)); }},
    {TW_UINT16, 2, 7, false, [](uint64_t b) { return double(uint16_t(b)); }},
    {TW_BOOL, 1, 11, false, [](uint64_t b) { return double(b != 0); }},
    {TW_HALF, 2, 13, false, Half},
    {TW_BFLOAT16, 2, 13, false, [](uint64_t b) { return double(std::bit_cast<float>(uint32_t(b) << 16)); }},
    {TW_UINT32, 4, 16, false, [](uint64_t b) { return double(uint32_t(b)); }},
    {TW_UINT64, 8, 17, false, [](uint64_t b) { return double(b); }},
};

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

// Reads the only number of a TensorProto; returns false if the message holds anything else.
bool ReadTensor(std::string_view message, double* out) {
  uint64_t dtype = 0;
  std::string_view content;
  std::map<uint32_t, WireField> fields;
  WireField field;
  WireReader reader(message);
  while (reader.Next(&field)) {
    if (field.number == 1) dtype = field.value;
    if (field.number == 4) content = field.bytes;
    if (field.number == 2) {
      WireField dim;
      for (WireReader shape(field.bytes); shape.Next(&dim);) {
        if (dim.number == 2 || dim.number == 3) return false;  // an axis, or an unknown rank
      }
    }
    fields[field.number] = field;
  }
  const auto* kind = std::find_if(std::begin(kElements), std::end(kElements), [&](const ElementKind& k) { return k.dtype == dtype; });
  if (!reader.ok() || kind == std::end(kElements)) return false;
  if (!content.empty()) {
    if (content.size() != kind->bytes) return false;
    *out = kind->value(LittleEndian(content));
    return true;
  }
  const auto own = fields.find(kind->field);
  uint64_t bits = 0;  // a scalar 0 may be omitted
  if (own != fields.end()) {
    const WireField& f = own->second;
    if (f.type == WireField::kVarint) {
      bits = f.value;
    } else if (kind->fixed) {
      if (f.bytes.size() != kind->bytes) return false;
      bits = LittleEndian(f.bytes);
    } else {
      const char *p = f.bytes.data(), *end = p + f.bytes.size();
      if (!GetVarint(&p, end, &bits) || p != end) return false;
    }
  }
  *out = kind->value(bits);
  return true;
}

// Returns the name of the plugin that shows a series; "" if the metadata does not name one.
std::string_view PluginName(std::string_view metadata) {
  WireField field, part;
  for (WireReader reader(metadata); reader.Next(&field);) {
    if (field.number != 1) continue;
    for (WireReader data(field.bytes); data.Next(&part);) {
      if (part.number == 1) return part.bytes;
    }
  }
  return {};
}

// The measurements of one run, read file by file.
class Run {
 public:
  explicit Run(std::string name) : name_(std::move(name)) {}

  // Throws if the file cannot be read or is not an event file.
  void ReadFile(const std::string& path, SeriesSet* set) {
    std::ifstream file(path, std::ios::binary);
    const uint64_t size = file ? std::filesystem::file_size(path) : 0;
    if (!file) throw std::runtime_error("cannot read '" + path + "': " + std::strerror(errno));
    seen_.clear();
    uint64_t at = 0;
    std::string record;
    for (size_t n = 1; at < size; ++n) {
      const auto note = [&](const std::string& what) {
        set->notes.push_back("'" + path + "': record " + std::to_string(n) + " at byte " + std::to_string(at) + " " + what);
      };
      char head[12];
      if (size - at < sizeof(head)) return note("is cut short and left out");
      file.read(head, sizeof(head));
      const auto length = Number<uint64_t>(head);
      if (Number<uint32_t>(head + 8) != MaskCrc(ExtendCrc32c(0, head, 8)) || length > kLargestRecord) {
        if (n == 1) throw std::runtime_error("'" + path + "' is no event file");
        ++set->damaged;
        return note("is damaged; the rest of the file is left out");
      }
      if (size - at < sizeof(head) + length + 4) return note("is cut short and left out");
      record.resize(size_t(length) + 4);
      if (!file.read(record.data(), std::streamsize(record.size()))) throw std::runtime_error("cannot read '" + path + "'");
      const std::string_view event(record.data(), size_t(length));
      if (Number<uint32_t>(record.data() + length) == MaskCrc(ExtendCrc32c(0, event.data(), event.size())) && AddEvent(event)) {
        at += sizeof(head) + length + 4;
        continue;
      }
      ++set->damaged;
      note("is damaged and left out");
      at += sizeof(head) + length + 4;
    }
  }
  void Give(SeriesSet* set) {
    for (auto& [tag, points] : points_) set->series.push_back({name_, tag, std::move(points)});
  }

 private:
  bool AddEvent(std::string_view event) {
    Measurement m;
    std::vector<std::string_view> summaries;
    WireField field;
    WireReader reader(event);
    while (reader.Next(&field)) {
      if (field.number == 1 && field.type == WireField::kFixed64) m.time = Number<double>(field.bytes.data());
      if (field.number == 2 && field.type == WireField::kVarint) m.step = double(int64_t(field.value));
      if (field.number == 5) summaries.push_back(field.bytes);
    }
    for (const std::string_view summary : summaries) {
      WireReader values(summary);
      while (values.Next(&field)) {
        if (field.number == 1) AddValue(field.bytes, m);
      }
      if (!values.ok()) return false;
    }
    return reader.ok();
  }

  void AddValue(std::string_view value, Measurement m) {
    std::string tag;
    bool number = false;
    WireField field;
    for (WireReader reader(value); reader.Next(&field);) {
      if (field.number == 1) tag = field.bytes;
      if (field.number == 2 && field.type == WireField::kFixed32) {
        m.value = double(Number<float>(field.bytes.data()));
        number = true;
      }
      if (field.number == 8) number = ReadTensor(field.bytes, &m.value);
      // A tag's plugin is written only with its first value.
      if (field.number == 9 && !PluginName(field.bytes).empty() && PluginName(field.bytes) != "scalars") others_.insert(tag);
    }
    if (!number || others_.count(tag)) return;
    std::vector<Measurement>& points = points_[tag];
    if (seen_.insert(tag).second) {
      // The run was restarted from an earlier step: drops the earlier measurements of this step and
      // all later ones.
      std::erase_if(points, [&](const Measurement& p) { return p.step >= m.step; });
    }
    points.push_back(m);
  }

  const std::string name_;
  std::map<std::string, std::vector<Measurement>> points_;
  std::set<std::string> seen_, others_;  // seen_: tags met in this file; others_: tags that are not scalar series
};

}  // namespace

SeriesSet ReadEventFolder(const std::string& folder) {
  std::map<std::string, std::vector<std::string>> runs;
  const std::filesystem::path root(folder);
  const std::filesystem::directory_iterator readable(root);  // throws if the folder is not readable; the walk below would skip it
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root, std::filesystem::directory_options::skip_permission_denied)) {
    if (!entry.is_regular_file() || entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    runs[entry.path().parent_path().lexically_relative(root).string()].push_back(entry.path().string());
  }
  if (runs.empty()) throw std::runtime_error("no event file in '" + folder + "' or below; their names have 'tfevents' in them");
  SeriesSet set;
  for (auto& [name, files] : runs) {
    std::sort(files.begin(), files.end());  // file names begin with their creation time
    Run run(name);
    for (const std::string& file : files) run.ReadFile(file, &set);
    run.Give(&set);
  }
  SortSeries(&set);
  return set;
}

}  // namespace thalweg::cli
