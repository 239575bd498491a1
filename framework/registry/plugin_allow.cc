#include "framework/registry/plugin_allow.h"

#include <algorithm>
#include <fstream>
#include <functional>

#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

constexpr size_t kDigits = 64;

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Returns the digest at the begin of a line, in lower case; "" if there is none.
std::string DigestOf(std::string_view line) {
  if (!line.empty() && line[0] == '\\') line.remove_prefix(1);  // sha256sum writes it before a name that it had to escape
  const size_t n = size_t(std::find_if_not(line.begin(), line.end(), IsHex) - line.begin());
  if (n != kDigits || (line.size() > n && line[n] != ' ' && line[n] != '\t')) return "";
  std::string digest(line.substr(0, n));
  for (char& c : digest) c = c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c;
  return digest;
}

}  // namespace

StatusOr<PluginAllowList> PluginAllowList::Read(const std::string& path, bool trust_folders) {
  const std::string where = StrCat("allow-list of plugins '", path, "':");
  std::string real, fix;
  Status safe = CheckPluginWriters(path, &real, &fix);
  if (!safe.ok() && (real.empty() || !trust_folders)) return Error(safe.code(), where, " ", Message(safe), fix.empty() ? "" : "; ", fix);
  PluginAllowList list;
  list.file_ = path;
  std::ifstream in(real);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.erase(0, line.find_first_not_of(" \t\r"));
    if (line.empty() || line[0] == '#') continue;
    std::string digest = DigestOf(line);
    if (digest.empty()) {
      return InvalidArgument(where, " line ", number, " does not begin with a SHA-256 of ", kDigits,
                             " hexadecimal digits; write it with `sha256sum FILE...`");
    }
    list.digests_.insert(std::move(digest));
  }
  if (!in.eof()) return FailedPrecondition(where, " cannot be read");
  return list;
}

}  // namespace thalweg
