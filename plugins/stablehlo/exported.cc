#include "exported.h"

#include <optional>

#include "module.h"

namespace thalweg::stablehlo {
namespace {

constexpr uint64_t kMostElements = 1 << 16;  // of a list

// Fields of a table, by their numbers in JAX's schema.
enum Field {
  kFunctionName = 1,
  kInAvals = 3,
  kOutAvals = 5,
  kShortDevices = 6,
  kPlatforms = 9,
  kModule = 13,
  kCallingConvention = 14,
  kKept = 15,
  kDevices = 18,
  kUniqueAvals = 19,
  kInIndices = 22,
  kOutIndices = 23,
};
enum AvalField { kShape = 1 };

// A flatbuffer of little-endian numbers. A position is an offset from the beginning.
class Buffer {
 public:
  explicit Buffer(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number(uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) Fail(at, "a number lies behind the end");
    uint64_t v = 0;
    for (size_t i = sizeof(T); i-- > 0;) v = (v << 8) | static_cast<uint8_t>(bytes_[at + i]);
    return static_cast<T>(v);
  }
  // What an offset at this position leads to.
  uint64_t follow(uint64_t at) const {
    const uint64_t to = at + number<uint32_t>(at);
    if (to == at || to >= bytes_.size()) Fail(at, "an offset leads behind the end");
    return to;
  }
  // The position of a table's field; none if the table lacks it.
  std::optional<uint64_t> field(uint64_t table, unsigned i) const {
    const int64_t vtable = static_cast<int64_t>(table) - number<int32_t>(table);
    if (vtable < 0) Fail(table, "a table has no list of fields");
    const auto at = static_cast<uint64_t>(vtable);
    const uint64_t size = number<uint16_t>(at), place = 4 + 2 * uint64_t{i};
    if (size < 4 || place + 2 > size) return std::nullopt;
    const uint64_t offset = number<uint16_t>(at + place);
    if (!offset) return std::nullopt;
    return table + offset;
  }
  // The first element of a list and the number of its elements, each of `size` bytes.
  uint64_t list(uint64_t at, uint64_t size, uint64_t* count) const {
    const uint64_t to = follow(at), n = number<uint32_t>(to);
    if (n * size > bytes_.size() - to - 4) Fail(to, "a list has " + std::to_string(n) + " elements, but the file ends before");
    *count = n;
    return to + 4;
  }
  // Several offsets may lead to one text or shape, so that the bytes of the file do not bound what is made of them.
  void spend(uint64_t at, uint64_t bytes) const {
    if (bytes > left_) Fail(at, "the shapes and texts are too long");
    left_ -= bytes;
  }
  std::string_view text(uint64_t at) const {
    uint64_t n = 0;
    const uint64_t first = list(at, 1, &n);
    return bytes_.substr(first, n);
  }
  [[noreturn]] void Fail(uint64_t at, const std::string& text) const {
    throw Error{TW_INVALID_ARGUMENT, "the export of JAX is damaged at byte " + std::to_string(at) + ": " + text};
  }

 private:
  std::string_view bytes_;
  mutable uint64_t left_ = 1 << 24;
};

std::vector<uint64_t> Offsets(const Buffer& b, uint64_t table, unsigned field) {
  std::vector<uint64_t> all;
  const std::optional<uint64_t> at = b.field(table, field);
  if (!at) return all;
  uint64_t n = 0;
  const uint64_t first = b.list(*at, 4, &n);
  if (n > kMostElements) b.Fail(first, "a list has " + std::to_string(n) + " elements; at most 65536 are accepted");
  for (uint64_t i = 0; i < n; ++i) all.push_back(first + 4 * i);
  return all;
}

std::vector<std::string> Texts(const Buffer& b, uint64_t table, unsigned field) {
  std::vector<std::string> all;
  for (const uint64_t at : Offsets(b, table, field)) {
    const std::string_view text = b.text(at);
    b.spend(at, text.size() + sizeof(std::string));
    all.push_back(Printable(text));
  }
  return all;
}

std::vector<Aval> Avals(const Buffer& b, uint64_t table, unsigned field) {
  std::vector<Aval> all;
  for (const uint64_t at : Offsets(b, table, field)) {
    Aval aval{Texts(b, b.follow(at), kShape)};
    if (aval.dims.size() > 64) b.Fail(at, "a shape has " + std::to_string(aval.dims.size()) + " axes; at most 64 are accepted");
    all.push_back(std::move(aval));
  }
  return all;
}

// Newer files keep each different shape once.
std::vector<Aval> Shapes(const Buffer& b, uint64_t table, unsigned indices, unsigned plain) {
  const std::vector<uint64_t> at = Offsets(b, table, indices);
  if (at.empty()) return Avals(b, table, plain);
  const std::vector<Aval> unique = Avals(b, table, kUniqueAvals);
  std::vector<Aval> all;
  for (const uint64_t i : at) {
    const auto index = b.number<uint32_t>(i);
    if (index >= unique.size()) b.Fail(i, "there is no shape " + std::to_string(index));
    for (const std::string& d : unique[index].dims) b.spend(i, d.size() + sizeof d);
    all.push_back(unique[index]);
  }
  return all;
}

}  // namespace

// The root is a table whose list of fields stands in front of it and has a version first.
bool IsExported(std::string_view head, uint64_t size) {
  const Buffer b(head);
  try {
    const uint64_t root = b.number<uint32_t>(0);
    if (root < 8 || root >= size) return false;
    if (root + 4 > head.size()) return false;
    const int64_t vtable = static_cast<int64_t>(root) - b.number<int32_t>(root);
    if (vtable < 4 || static_cast<uint64_t>(vtable) + 4 > head.size()) return false;
    const uint64_t fields = b.number<uint16_t>(static_cast<uint64_t>(vtable)),
                   table = b.number<uint16_t>(static_cast<uint64_t>(vtable) + 2);
    if (fields < 4 + 2 * (kCallingConvention + 1) || fields > 512 || fields % 2 || table < 4 || table > 1024) return false;
    const std::optional<uint64_t> module = b.field(root, kModule), version = b.field(root, 0);
    if (!module || !version || !b.field(root, kFunctionName) || !b.field(root, kPlatforms)) return false;
    const uint16_t v = b.number<uint16_t>(*version);
    if (v < 2 || v > 64) return false;
    // The module itself mostly lies behind the first bytes.
    const uint64_t to = *module + b.number<uint32_t>(*module);
    if (to >= size) return false;
    return to + 8 > head.size() || head.substr(to + 4, 4) == "ML\xefR";
  } catch (const Error&) {
    return false;
  }
}

Exported ReadExported(std::string_view bytes) {
  const Buffer b(bytes);
  const uint64_t root = b.follow(0);
  Exported e;
  e.present = true;
  if (const auto at = b.field(root, kFunctionName)) e.function = Printable(b.text(*at).substr(0, 200));
  e.platforms = Texts(b, root, kPlatforms);
  if (const auto at = b.field(root, kShortDevices)) e.devices = b.number<uint16_t>(*at);
  if (const auto at = b.field(root, kDevices)) e.devices = b.number<uint32_t>(*at);
  if (const auto at = b.field(root, kCallingConvention)) e.calling_convention = b.number<uint16_t>(*at);
  e.in = Shapes(b, root, kInIndices, kInAvals);
  e.out = Shapes(b, root, kOutIndices, kOutAvals);
  if (const auto at = b.field(root, kKept)) {
    uint64_t n = 0;
    const uint64_t first = b.list(*at, 2, &n);
    for (uint64_t i = 0; i < n; ++i) e.kept.push_back(b.number<uint16_t>(first + 2 * i));
  }
  const auto module = b.field(root, kModule);
  if (!module) b.Fail(root, "it holds no module");
  e.module = b.text(*module);
  return e;
}

}  // namespace thalweg::stablehlo
