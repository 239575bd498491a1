// Finding, loading and explaining plugins. What is new is looked at by the helper (plugin_probe.h) and remembered (plugin_cache.h); what is
// known is loaded when something of it is first wanted; a file that the program names, at once.
// Threads: one loader per runtime; its calls are serialised.
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
  // make_host: a host table for the plugin of that id and path, with the agreed minor; the loader keeps it until the plugin is gone.
  using MakeHost = std::function<std::unique_ptr<tw_host, void (*)(tw_host*)>(std::string_view id, std::string_view path, uint32_t minor)>;
  PluginLoader(Registry* registry, MakeHost make_host, PluginLoading loading = {});
  // Shuts all down, the last loaded first. A plugin whose device memory is still in use by tensors stays until the last of them is gone;
  // the `self` of its host table is NULL from then on.
  ~PluginLoader() override;

  // Only these may be loaded from now on; linked in, any.
  void Allow(PluginAllowList list);
  // Everything that the search finds, sorted by file name within a folder. One that fails is recorded, never fatal. What is fine is known
  // from then on.
  void LoadAll(const PluginSearch& search);
  // One file, at once. The record says what happened, too. Ok without doing anything if this very file, or one with the same contents, is
  // loaded already.
  // Errors: PERMISSION_DENIED for one that others may write to, or that is not allowed; ALREADY_EXISTS if another file with the plugin's id
  // is loaded; otherwise what the record's reason says, and what to do.
  Status Load(const std::string& path);
  // A plugin linked into the program. checked: its schemas and specs are known to be right.
  Status LoadStatic(tw_query_fn query, std::string_view name, bool checked = false);
  // FAILED_PRECONDITION saying who still holds what of the plugin, or that it is linked in; NOT_FOUND if none of that id is loaded. When it
  // returns, the plugin was shut down and closed. REQUIRES: nobody looks up anything of the plugin meanwhile.
  Status Unload(std::string_view id);
  // The same, as a question.
  Status CheckUnloadable(std::string_view id) const;
  std::vector<PluginRecord> records() const;
  // Adds what a loaded plugin should be known for, such as devices that would not start, to its record.
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
  Status Quarantine(PluginRecord* record, Status why);
  Status Look(KnownPlugin* p);
  StatusOr<PluginManifest> LookHere(const std::string& path, bool whole, PluginRecord* record);
  Status CheckId(const std::vector<std::string>& disabled, PluginRecord* record);
  void Settle();
  void UpdateSource();
  // Loads what waits, after what it needs. Errors stand in the record, too.
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
  std::atomic<std::thread::id> busy_{};  // who is in here: its plugins' look-ups must not come in again
  std::unique_ptr<PluginCache> cache_;
  PluginCatalogue catalogue_;
  std::vector<std::unique_ptr<KnownPlugin>> found_;  // fine, and not in the catalogue yet
  std::vector<std::shared_ptr<Loaded>> loaded_;
  std::vector<std::shared_ptr<PluginRecord>> records_;
};

}  // namespace thalweg
