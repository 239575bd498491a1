// The list of plugins that may be loaded, for locked-down hosts: a text file with the SHA-256 of
// each, as printed by `sha256sum FILE...`; `#` begins a comment. The file must satisfy the rules of
// plugin_writers.h.
// Threads: immutable once read.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

class PluginAllowList {
 public:
  // Errors name the file and the line; no plugin may be loaded then.
  static StatusOr<PluginAllowList> Read(const std::string& path, bool trust_folders);
  bool Has(std::string_view digest) const { return digests_.count(digest) > 0; }
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::set<std::string, std::less<>> digests_;
};

}  // namespace thalweg
