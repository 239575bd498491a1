#include "exported.h"

#include <optional>

#include "../common/importer/flatbuffer.h"
#include "module.h"

namespace thalweg::stablehlo {
namespace {

constexpr const char* kWhat = "the export of JAX";
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

// Of the shapes and texts that are made of a file.
constexpr uint64_t kMostBytes = 1 << 24;
using Buffer = importer::FlatBuffer;

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
  const Buffer b(head, kWhat, 0);
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
  const Buffer b(bytes, kWhat, kMostBytes);
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
