// PluginLoader: finds, loads and explains plugins. The helper examines a new plugin
// (plugin_probe.h) and the result is cached (plugin_cache.h). A known plugin is loaded when
// something of it is first used; a file that the program names is loaded at once. Threads: one
// loader per runtime; its calls are serialised.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/status.h"
#include "framework/registry/plugin_allow.h"
#include "framework/registry/plugin_cache.h"
#include "framework/registry/plugin_catalogue.h"
#include "framework/registry/plugin_loading.h"
#include "framework/registry/plugin_record.h"
#include "framework/registry/plugin_search.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

class PluginLoader final : private PluginSource {
 public:
  // make_host: makes a host table for the plugin of that id and path, with the agreed minor; the
  // loader keeps it as long as the plugin.
  using MakeHost = std::function<std::unique_ptr<tw_host, void (*)(tw_host*)>(std::string_view id, std::string_view path, uint32_t minor)>;
  PluginLoader(Registry* registry, MakeHost make_host, PluginLoading loading = {});
  // Shuts all plugins down, the last loaded first. A plugin whose device memory tensors still use
  // stays until the last of them is released; the `self` of its host table is NULL from then on.
  ~PluginLoader() override;

  // Restricts loading to these plugins from now on. Plugins linked into the program are exempt.
  void Allow(PluginAllowList list);
  // Examines all files of the search, sorted by file name within a folder. A failure is recorded
  // and never fatal. Good plugins are known from then on.
  void LoadAll(const PluginSearch& search);
  // Loads one file now; the record holds the result too. Does nothing and returns OK if this file,
  // or one with the same contents, is loaded.
  // PERMISSION_DENIED if others may write to the file or it is not allowed; ALREADY_EXISTS if
  // another file with the plugin's id is loaded; otherwise the record's reason and fix.
  Status Load(const std::string& path);
  // Loads a plugin that is linked into the program. checked: its schemas and specs are known to be
  // valid.
  Status LoadStatic(tw_query_fn query, std::string_view name, bool checked = false);
  // Shuts a plugin down and closes it. FAILED_PRECONDITION names the users of the plugin, or says
  // that it is linked in; NOT_FOUND if no plugin of that id is loaded. REQUIRES: nobody looks up
  // anything of the plugin meanwhile.
  Status Unload(std::string_view id);
  // Checks whether Unload would succeed, with the same errors.
  Status CheckUnloadable(std::string_view id) const;
  std::vector<PluginRecord> records() const;
  // Appends a remark to a loaded plugin's record, such as that its devices would not start.
  void Remark(std::string_view id, std::string_view text);

 private:
  struct Loaded;
  class Busy;
  // PluginSource
  void Bring(Part part, std::string_view name, std::string_view kind) override;
  std::vector<DeviceKindName> DeviceKinds() override;

  std::shared_ptr<PluginRecord> AddRecord(std::string path);
  Status Finish(const std::shared_ptr<PluginRecord>& record, Status s);
  void ExamineFolder(const std::string& folder, const std::vector<std::string>& disabled);
  bool IsRecorded(const std::string& path, const FileStamp& stamp) const;
  Status Examine(const std::string& path, const std::vector<std::string>& disabled);
  Status ExamineFile(const std::vector<std::string>& disabled, KnownPlugin* p);
  Status CheckFile(PluginRecord* record);
  StatusOr<const CachedPlugin*> Identify(KnownPlugin* p);
  bool IsThere(std::string_view what, const std::function<bool(const FileStamp&, const std::string& digest)>& same, PluginRecord* record);
  Status Quarantine(PluginRecord* record, Status why, int64_t probe_at);
  Status QuarantineForNow(KnownPlugin* p, const Status& why, uint32_t timeouts);
  int64_t Now() const;
  bool IsDue(const CachedPlugin& quarantined) const;
  Status Look(KnownPlugin* p, uint32_t timeouts = 0);
  StatusOr<PluginManifest> LookHere(const std::string& path, bool whole, PluginRecord* record);
  Status CheckId(const std::vector<std::string>& disabled, PluginRecord* record);
  void Settle();
  void UpdateSource();
  // Loads a waiting plugin after the plugins that it needs. Errors are recorded too.
  Status LoadKnown(KnownPlugin* p);
  Status LoadTwin(const PluginRecord& record);
  void ForgetOthers(const KnownPlugin& loaded);
  Status Open(KnownPlugin* p);
  bool HasOnlyOwnSchemas(const PluginManifest& m) const;
  Status Enter(tw_query_fn query, bool checked, std::shared_ptr<Loaded> plugin);
  Loaded* FindLoaded(std::string_view id) const;

  Registry* registry_;
  MakeHost make_host_;
  const PluginLoading loading_;
  std::optional<PluginAllowList> allow_;
  mutable std::mutex mu_;
  std::atomic<std::thread::id> busy_{};  // the thread inside the loader: look-ups of the plugins that it loads must not enter again
  std::unique_ptr<PluginCache> cache_;
  PluginCatalogue catalogue_;
  std::vector<std::unique_ptr<KnownPlugin>> found_;  // good, and not in the catalogue yet
  std::vector<std::shared_ptr<Loaded>> loaded_;
  std::vector<std::shared_ptr<PluginRecord>> records_;
};

}  // namespace thalweg
