// JsonLinesDataset: each line of a file is a JSON object, and chosen members become components:
// numbers, truth values and texts, or arrays of them. Errors name the file and the line.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../common/json_value.h"
#include "feature_tensors.h"
#include "file.h"
#include "register.h"

namespace thalweg::data {
namespace {

using common::JsonValue;
using Dims = std::vector<int64_t>;

// The description of one component.
struct Member {
  std::string key;
  uint32_t dtype = 0;
  Dims dims;      // -1: as long as the array
  Ref otherwise;  // the component of a line without the member; no tensor: an error
};

constexpr uint64_t kLook = 512, kMostLine = 64 << 20;

const char* KindText(const JsonValue& v) {
  switch (v.kind()) {
    case JsonValue::Kind::kNull: return "null";
    case JsonValue::Kind::kBool: return "a truth value";
    case JsonValue::Kind::kNumber: return "a number";
    case JsonValue::Kind::kText: return "a text";
    case JsonValue::Kind::kArray: return "an array";
    case JsonValue::Kind::kObject: return "an object";
    default: return "missing";
  }
}

template <class T>
bool SetWhole(const JsonValue& v, void* to) {
  if (!v.whole() || *v.whole() < int64_t{std::numeric_limits<T>::min()} || *v.whole() > int64_t{std::numeric_limits<T>::max()})
    return false;
  *static_cast<T*>(to) = T(*v.whole());
  return true;
}

// Writes a single value to element i. Returns false if it does not fit the type.
bool SetOne(const Call& c, const JsonValue& v, const Ref& to, uint64_t i) {
  const uint32_t dtype = to.view().dtype;
  char* const at = static_cast<char*>(to.view().data) + i * ElementBytes(dtype);
  switch (dtype) {
    case TW_STRING:
      if (!v.is(JsonValue::Kind::kText)) return false;
      tw::check(c.host()->tensor->set_string(to.get(), i, v.text().data(), v.text().size()));
      return true;
    case TW_BOOL:
      if (!v.is(JsonValue::Kind::kBool)) return false;
      *reinterpret_cast<uint8_t*>(at) = v.yes();
      return true;
    case TW_INT32: return SetWhole<int32_t>(v, at);
    case TW_INT64: return SetWhole<int64_t>(v, at);
    case TW_DOUBLE:
      if (!v.is(JsonValue::Kind::kNumber)) return false;
      *reinterpret_cast<double*>(at) = v.number();
      return true;
    default:
      if (!v.is(JsonValue::Kind::kNumber) || std::abs(v.number()) > double(std::numeric_limits<float>::max())) return false;
      *reinterpret_cast<float*>(at) = float(v.number());
      return true;
  }
}

class JsonLines final : public Format {
 public:
  JsonLines(std::vector<Member> members, std::vector<uint32_t> element_types)
      : Format(std::move(element_types)), members_(std::move(members)) {}

  bool Read(FileReader& in, const FileFacts*, Call& c, Element* out) const override {
    for (;; c.CheckCancelled()) {
      const uint64_t start = in.offset();
      const std::string_view line = Line(in);
      if (line.empty()) return false;
      if (line.find_first_not_of(" \t\r\n") == line.npos) continue;
      Parse(in, start, line, c, out);
      return true;
    }
  }

  void Describe(std::string* to) const override {
    *to += "JsonLines(";
    for (const Member& m : members_) *to += (&m == &members_[0] ? "'" : ", '") + m.key + "'";
    *to += ")";
  }

 private:
  // Takes the next line, with its end; no bytes at the end of the file.
  static std::string_view Line(FileReader& in) {
    uint64_t seen = 0;
    for (uint64_t want = kLook;; want *= 2) {
      const std::string_view bytes = in.Peek(want);
      if (const size_t end = bytes.find('\n', seen); end != bytes.npos) return in.Read(end + 1);
      if (bytes.size() < want) return in.Read(bytes.size());
      seen = bytes.size();
      if (want < kMostLine) continue;
      const uint64_t start = in.offset();
      in.Read(bytes.size());
      Invalid(WhereLine(in, start) + "the line is longer than " + std::to_string(kMostLine) + " bytes; each line must be one JSON object");
    }
  }

  void Parse(FileReader& in, uint64_t start, std::string_view line, Call& c, Element* out) const {
    tw::Charge charge(c.f);
    JsonValue root;
    std::string wrong;
    try {
      root = JsonValue::Parse(line, [&](uint64_t bytes) { charge.add(bytes); });
    } catch (const common::JsonError& e) {
      wrong = e.what();
    }
    if (wrong.empty() && !root.is(JsonValue::Kind::kObject))
      wrong = std::string("the line is ") + KindText(root) + "; it must be an object, as in {\"text\": \"a\", \"label\": 1}";
    if (!wrong.empty()) Invalid(WhereLine(in, start) + wrong);
    out->clear();
    for (const Member& m : members_) {
      const JsonValue& v = root[m.key];
      if (std::count(root.keys().begin(), root.keys().end(), m.key) > 1)
        Invalid(WhereLine(in, start) + "member '" + m.key + "' is there several times; give each member a name of its own");
      if (v.null() && m.otherwise.get()) {
        out->push_back(m.otherwise);
        continue;
      }
      if (v.null()) wrong = std::string(v.is(JsonValue::Kind::kMissing) ? "missing" : "null") + " and has no default";
      Dims dims = m.dims;
      if (wrong.empty()) wrong = Sizes(v, 0, &dims);
      if (wrong.empty()) {
        for (int64_t& d : dims) d = std::max<int64_t>(d, 0);  // sizes below an empty array
        Ref to = c.Make(m.dtype, dims);
        uint64_t i = 0;
        wrong = Fill(c, v, to, &i);
        out->push_back(std::move(to));
      }
      if (!wrong.empty()) Invalid(WhereLine(in, start) + "member '" + m.key + "' is " + wrong);
    }
  }

  // Sets the sizes of `dims` that are not known, from axis `axis` on. Returns what is wrong, or nothing.
  static std::string Sizes(const JsonValue& v, size_t axis, Dims* dims) {
    if (axis == dims->size()) return "";
    if (!v.is(JsonValue::Kind::kArray))
      return std::string(KindText(v)) + "; it must be an array of " + std::to_string(dims->size()) + " axes";
    const auto n = int64_t(v.items().size());
    int64_t& size = (*dims)[axis];
    if (size < 0) size = n;
    if (size != n)
      return "an array with " + std::to_string(n) + " elements on axis " + std::to_string(axis) + "; it must have " + tw::text(size);
    for (const JsonValue& item : v.items()) {
      if (std::string wrong = Sizes(item, axis + 1, dims); !wrong.empty()) return wrong;
    }
    return "";
  }

  // Writes the values of v, whose sizes were checked, from element *i on.
  static std::string Fill(const Call& c, const JsonValue& v, const Ref& to, uint64_t* i, int32_t axis = 0) {
    if (axis < to.view().rank) {
      for (const JsonValue& item : v.items()) {
        if (std::string wrong = Fill(c, item, to, i, axis + 1); !wrong.empty()) return wrong;
      }
      return "";
    }
    if (SetOne(c, v, to, *i)) return ++*i, "";
    const std::string type = tw::dtype_text(to.view().dtype);
    std::string value = KindText(v);
    if (v.whole())
      value = "the number " + tw::text(*v.whole());
    else if (v.is(JsonValue::Kind::kNumber))
      value = "the number " + std::to_string(v.number());
    return value + (to.view().rank > 0 ? " in element " + std::to_string(*i) : "") + ", which is no " + type;
  }

  const std::vector<Member> members_;
};

struct JsonLinesMaker : Maker {
  explicit JsonLinesMaker(const tw::Node& n) : Maker(n) {
    const tw_attr &keys = n.at("keys"), &required = n.at("required"), &shapes = n.at("output_shapes");
    if (keys.count != types.size() || shapes.count != types.size())
      Invalid("there are " + std::to_string(keys.count) + " keys and " + std::to_string(shapes.count) + " output_shapes for " +
              std::to_string(types.size()) + " components; give one for each");
    for (uint32_t k = 0; k < keys.count; ++k) {
      Member m{std::string(View(static_cast<const tw_string*>(keys.data)[k])), types[k], {}, {}};
      const tw_shape& shape = static_cast<const tw_shape*>(shapes.data)[k];
      const std::string which = "component " + std::to_string(k) + ", member '" + m.key + "', ";
      if (shape.rank < 0) Invalid(which + "has a shape of unknown rank; give its axes, [] for a single value");
      m.dims.assign(shape.dims, shape.dims + shape.rank);
      switch (types[k]) {
        case TW_FLOAT:
        case TW_DOUBLE:
        case TW_INT32:
        case TW_INT64:
        case TW_BOOL:
        case TW_STRING: break;
        default: Invalid(which + "is " + tw::dtype_text(types[k]) + "; there are float, double, int32, int64, bool and string");
      }
      members.push_back(std::move(m));
    }
    for (uint32_t k = 0; k < required.count; ++k) must.emplace_back(View(static_cast<const tw_string*>(required.data)[k]));
  }
  DatasetPtr Make(const Inputs& in) const {
    const Element defaults = in.Kept(3);
    std::vector<Member> all = members;
    for (size_t k = 0; k < all.size(); ++k) {
      if (std::find(must.begin(), must.end(), all[k].key) != must.end()) continue;
      const tw_view& v = defaults[k].view();
      bool fits = size_t(v.rank) == all[k].dims.size();
      for (size_t a = 0; fits && a < all[k].dims.size(); ++a) fits = all[k].dims[a] < 0 || all[k].dims[a] == v.dims[a];
      if (!fits || v.dtype != types[k])
        Invalid("the default of member '" + all[k].key + "' is " + tw::dtype_text(v.dtype) + " " + DimsText(v) + "; the component is " +
                tw::dtype_text(types[k]) + " " + tw::text(all[k].dims.data(), int32_t(all[k].dims.size())));
      all[k].otherwise = defaults[k];
    }
    return FilesOf(in.Texts(0), std::make_shared<JsonLines>(std::move(all), types), in.Text(1, "compression_type"),
                   in.Int(2, "buffer_size"));
  }
  std::vector<Member> members;
  std::vector<std::string> must;
};

}  // namespace

void register_json_lines(tw::Plugin& p) {
  AddDataset<JsonLinesMaker>(p, "JsonLinesDataset(string, string, int64, _ -> variant) @CPU; keep defaults");
}

}  // namespace thalweg::data
