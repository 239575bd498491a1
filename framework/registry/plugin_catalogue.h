// PluginCatalogue: plugins that are known by their manifests and wait to be loaded, indexed by what
// they provide. SettleConflicts decides between plugins that provide the same.
// Threads: the caller locks.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/registry/plugin_digest.h"
#include "framework/registry/plugin_manifest.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/registry.h"

namespace thalweg {

struct KnownPlugin {
  enum Progress { kWaiting, kLoading, kDone };
  std::shared_ptr<PluginRecord> record;
  std::string real;  // the record's path with links resolved
  FileStamp stamp;
  PluginManifest manifest;
  std::string checked_by;  // see CachedPlugin
  Progress progress = kWaiting;
  bool at_once = false;  // the manifest has only the identity, so the plugin must be loaded now
};

class PluginCatalogue {
 public:
  void Add(std::unique_ptr<KnownPlugin> plugin);
  // Returns the waiting plugins that provide the part; see PluginSource::Bring.
  std::vector<KnownPlugin*> Find(PluginSource::Part part, std::string_view name, std::string_view kind) const;
  std::vector<KnownPlugin*> Waiting() const;

 private:
  std::vector<std::unique_ptr<KnownPlugin>> plugins_;
  std::map<std::string, std::vector<KnownPlugin*>, std::less<>> by_part_;
};

// Resolves conflicts among plugins that were found together. If two provide the same thing, the one
// that comes first in `preferred` wins, else the one with the smaller id; plugins in the registry
// win over all of them. A loser is shadowed as a whole, and its record names the winner and the
// reason. Returns the others.
std::vector<std::unique_ptr<KnownPlugin>> SettleConflicts(std::vector<std::unique_ptr<KnownPlugin>> found, const Registry& registry,
                                                          const std::vector<std::string>& preferred);
// Returns the index of an id in `preferred`; the size of the list if it is not there.
size_t RankOf(const std::vector<std::string>& preferred, std::string_view id);

}  // namespace thalweg
