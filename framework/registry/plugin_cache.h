// What was learnt about plugin files, kept from one process to the next: manifests of those that are fine, and the reason of those that
// crashed or hung. One file for each set of folders that is searched; whatever is wrong with it, it counts as empty and is written anew.
// Threads: the caller's lock. Processes that write at the same time replace each other's file as a whole.
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
  std::string quarantine;   // why; empty: the manifest is good
  PluginManifest manifest;  // at least the id, where it is known
  // The build of the runtime that has read all schemas and specs of these contents and found them right; empty: none has.
  std::string checked_by;
};

class PluginCache {
 public:
  // Reads it. folder: empty for none; made when something is to be kept. A file or folder that others could change is left alone.
  PluginCache(const std::string& folder, const std::vector<std::string>& searched);
  // What is known of that very file, unchanged; NULL: nothing.
  const CachedPlugin* Find(const std::string& path, const FileStamp& stamp) const;
  // What is known of a file with these contents.
  const CachedPlugin* FindContents(std::string_view digest) const;
  void Put(const std::string& path, CachedPlugin plugin);
  void SetChecked(const std::string& path, const FileStamp& stamp, const std::string& build);
  // If anything changed. What goes wrong is no more than a start that learns again.
  void Write();
  const std::string& file() const { return file_; }  // empty: nothing is kept

 private:
  void Read();
  bool Parse(std::string_view text);
  std::string folder_, file_;
  std::map<std::string, CachedPlugin> by_path_;
  bool changed_ = false;
};

}  // namespace thalweg
