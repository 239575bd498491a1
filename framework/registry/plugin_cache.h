// PluginCache: keeps knowledge about plugin files between processes: manifests of good plugins, and
// the reasons why others crashed or hung. There is one file for each set of searched folders. An
// invalid file counts as empty and is rewritten.
// Threads: the caller locks. Processes that write concurrently replace each other's file as a
// whole.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/registry/plugin_digest.h"
#include "framework/registry/plugin_manifest.h"

namespace thalweg {

struct CachedPlugin {
  FileStamp stamp;
  std::string digest;
  std::string quarantine;   // reason; empty: the manifest is good
  PluginManifest manifest;  // of a bad plugin: only the id, if known
  // The build of the runtime that has validated all schemas and specs of these contents; empty:
  // none has.
  std::string checked_by;
  // A quarantine for exceeding the time limit is no proof against the plugin, so it ends: the
  // number of probes in a row that took too long, and the Unix time in seconds at which the plugin
  // is probed again. 0 and 0: quarantined until its contents change, or not quarantined.
  uint32_t timeouts = 0;
  int64_t probe_at = 0;
};

class PluginCache {
 public:
  // Reads the cache file. folder: "" for no cache; created when something must be kept. A file or
  // folder that others can change is not used.
  PluginCache(const std::string& folder, const std::vector<std::string>& searched);
  // Returns the entry for this path with this stamp; NULL if there is none.
  const CachedPlugin* Find(const std::string& path, const FileStamp& stamp) const;
  // Returns the entry for a file with these contents; NULL if there is none.
  const CachedPlugin* FindContents(std::string_view digest) const;
  void Put(const std::string& path, CachedPlugin plugin);
  void SetChecked(const std::string& path, const FileStamp& stamp, const std::string& build);
  // Writes the file if anything changed. Errors are ignored: the next start then examines the
  // plugins again.
  void Write();
  const std::string& file() const { return file_; }  // "" if nothing is kept

 private:
  void Read();
  bool Parse(std::string_view text);
  std::string folder_, file_;
  std::map<std::string, CachedPlugin> by_path_;
  bool changed_ = false;
};

}  // namespace thalweg
