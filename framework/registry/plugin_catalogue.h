// Plugins that are known by their manifests and wait to be loaded: who brings what, and who gives way to whom.
// Threads: the caller's lock.
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
  std::string real;  // the record's path without links
  FileStamp stamp;
  PluginManifest manifest;
  std::string checked_by;  // see CachedPlugin
  Progress progress = kWaiting;
  bool at_once = false;  // the manifest says no more than who it is, so that it cannot wait
};

class PluginCatalogue {
 public:
  void Add(std::unique_ptr<KnownPlugin> plugin);
  // Those that wait and bring the part; see PluginSource::Bring.
  std::vector<KnownPlugin*> Find(PluginSource::Part part, std::string_view name, std::string_view kind) const;
  std::vector<KnownPlugin*> Waiting() const;

 private:
  std::vector<std::unique_ptr<KnownPlugin>> plugins_;
  std::map<std::string, std::vector<KnownPlugin*>, std::less<>> by_part_;
};

// Goes through plugins that were found together. Where two bring the same, the one that `preferred` names first stays, else the one with
// the smaller id; all give way to what is in the registry. Whoever gives way is shadowed whole and says to whom, and why; the others are
// answered.
std::vector<std::unique_ptr<KnownPlugin>> SettleConflicts(std::vector<std::unique_ptr<KnownPlugin>> found, const Registry& registry,
                                                          const std::vector<std::string>& preferred);
// The place of an id in `preferred`; behind all others if it is not there.
size_t RankOf(const std::vector<std::string>& preferred, std::string_view id);

}  // namespace thalweg
