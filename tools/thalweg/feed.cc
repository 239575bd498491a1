#include "feed.h"

#include <cstring>
#include <map>

#include "csv.h"
#include "handles.h"
#include "npy.h"
#include "words.h"
#include "zip.h"

namespace thalweg::cli {
namespace {

bool EndsWith(const std::string& text, const char* end) {
  const size_t n = std::strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

// Runs `read` and prepends the file name to the message of any error.
template <class Read>
auto Reading(const std::string& path, Read read) {
  try {
    return read();
  } catch (const std::exception& e) {
    throw std::runtime_error("'" + path + "': " + e.what());
  }
}

std::string ArrayName(const ZipMember& m) { return EndsWith(m.name, ".npy") ? m.name.substr(0, m.name.size() - 4) : m.name; }

// Returns the member `wanted`; if `wanted` is "", the member `name` or the only member.
const ZipMember& Choose(const std::vector<ZipMember>& members, const std::string& wanted, const std::string& name) {
  std::string names;
  for (const ZipMember& m : members) {
    if (ArrayName(m) == (wanted.empty() ? name : wanted)) return m;
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + ArrayName(m);
  }
  if (members.size() == 1 && wanted.empty()) return members[0];
  if (members.empty()) throw std::runtime_error("the archive is empty");
  throw std::runtime_error("no array '" + (wanted.empty() ? name : wanted) + "'; it has " + names +
                           (wanted.empty() ? "; name one as FILE.npz[" + ArrayName(members[0]) + "]" : ""));
}

tw::Tensor ReadNpz(const std::string& path, const std::string& wanted, const std::string& name) {
  const std::string archive = ReadFile(path);
  return Reading(path, [&] {
    const std::vector<ZipMember> members = ListZip(archive);
    return ParseNpy(ReadMember(archive, Choose(members, wanted, name)));
  });
}

Words ParseWords(const std::string& text, uint32_t dtype) {
  if (dtype == TW_STRING && (text.empty() || (text[0] != '[' && text[0] != '"'))) return {{}, {text}, true, {}, {}};
  return ParseLiteral(text);
}

}  // namespace

bool SplitPart(const std::string& text, const char* end, std::string* path, std::string* part) {
  const size_t bracket = text.find(std::string(end) + "[");
  const bool parted = bracket != text.npos && text.back() == ']';
  if (!parted && !EndsWith(text, end)) return false;
  const size_t n = parted ? bracket + std::strlen(end) : text.size();
  *path = text.substr(0, n);
  *part = parted ? text.substr(n + 1, text.size() - n - 2) : "";
  return true;
}

tw::Tensor ReadFeed(const tw::Runtime& runtime, const std::string& name, const std::string& text, uint32_t dtype) {
  const bool file = !text.empty() && text[0] == '@';
  const std::string value = file ? text.substr(1) : text;
  std::string path, part;
  if (EndsWith(value, ".npy")) {
    const std::string bytes = ReadFile(value);
    return Cast(runtime, Reading(value, [&] { return ParseNpy(bytes); }), dtype);
  }
  if (SplitPart(value, ".npz", &path, &part)) return Cast(runtime, ReadNpz(path, part, name), dtype);
  if (SplitPart(value, ".csv", &path, &part)) return ToTensor(runtime, ReadCsv(path, part), dtype);
  if (!file) return ToTensor(runtime, ParseWords(value, dtype), dtype);
  if (dtype == TW_STRING) return tw::Tensor(ReadFile(value));
  throw std::runtime_error("'" + value + "' is neither .npy, .npz nor .csv; other files are read only for strings");
}

std::vector<std::pair<std::string, tw::Tensor>> ReadArchive(const std::string& path) {
  const std::string archive = ReadFile(path);
  return Reading(path, [&] {
    std::vector<std::pair<std::string, tw::Tensor>> arrays;
    for (const ZipMember& m : ListZip(archive)) arrays.emplace_back(ArrayName(m), ParseNpy(ReadMember(archive, m)));
    return arrays;
  });
}

OutFile ParseOutFile(const std::string& text, const std::string& member) {
  OutFile out;
  if (EndsWith(text, ".npy") || EndsWith(text, ".csv")) return {text, ""};
  if (!SplitPart(text, ".npz", &out.path, &out.member)) {
    throw UsageError{"'" + text + "' is neither FILE.npy, FILE.npz, FILE.npz[MEMBER] nor FILE.csv"};
  }
  if (out.member.empty()) out.member = member;
  return out;
}

void WriteTensors(const std::vector<std::pair<OutFile, tw::Tensor>>& tensors) {
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> archives;
  for (const auto& [file, tensor] : tensors) {
    const std::string bytes =
        Reading(file.path, [&, &t = tensor, &f = file] { return EndsWith(f.path, ".csv") ? MakeCsv(t) : MakeNpy(t); });
    if (file.member.empty())
      WriteFile(file.path, bytes);
    else
      archives[file.path].emplace_back(file.member + ".npy", bytes);
  }
  for (const auto& [path, members] : archives) WriteFile(path, Reading(path, [&, &m = members] { return MakeZip(m); }));
}

}  // namespace thalweg::cli
