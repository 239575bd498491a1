// Finding, loading and explaining plugins: dlopen, the entry query, version agreement, init, commit.
// Threads: one loader per runtime; its calls are serialised.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {

// A candidate and what became of it.
struct PluginRecord {
  enum State { kLoaded, kFailed, kDisabled, kShadowed };  // kShadowed: the same file or id was loaded from another place
  std::string path, id, version, build;
  State state = kFailed;
  std::string reason;  // why it is not loaded, or where it was found
  std::string fix;     // what to do about it; empty if loaded
  std::vector<std::string> ops, devices;
  std::vector<std::string> roles;  // "file_system mem"
  uint32_t kernels = 0, epoch = 0, minor = 0;
};

struct PluginSearch {
  std::vector<std::string> folders;   // in order; a name that ends in .so is a file
  std::vector<std::string> disabled;  // patterns (fnmatch) of ids or file names that are left out
};
// THALWEG_PLUGIN_PATH (`:` between folders), the user's folder, then the folder beside libthalweg.so. An empty element of the variable
// stands for the folder beside the library; with `THALWEG_PLUGIN_PATH=only:DIR` nothing else is searched. A process that has more rights
// than who started it (set-user-ID, file capabilities) looks only beside the library.
PluginSearch DefaultPluginSearch();

class PluginLoader {
 public:
  // make_host: a host table for the plugin of that id and path, with the agreed minor; the loader keeps it until the plugin is gone.
  using MakeHost = std::function<std::unique_ptr<tw_host, void (*)(tw_host*)>(std::string_view id, std::string_view path, uint32_t minor)>;
  // trust_folders: load also what others may write to (see plugin_writers.h).
  PluginLoader(Registry* registry, MakeHost make_host, bool trust_folders = false);
  // Shuts all down, the last loaded first. A plugin whose device memory is still in use by tensors stays until the last of them is gone;
  // the `self` of its host table is NULL from then on.
  ~PluginLoader();

  // Everything that the search finds, sorted by file name within a folder. One that fails is recorded, never fatal.
  void LoadAll(const PluginSearch& search);
  // One file. The record says what happened, too. Ok without doing anything if this very file is loaded already.
  // Errors: PERMISSION_DENIED for one that others may write to; ALREADY_EXISTS if another file with the plugin's id is loaded; otherwise
  // what the record's reason says, and what to do.
  Status Load(const std::string& path);
  // A plugin linked into the program.
  Status LoadStatic(tw_query_fn query, std::string_view name);
  std::vector<PluginRecord> records() const;
  // Adds what a loaded plugin should be known for, such as devices that would not start, to its record.
  void Remark(std::string_view id, std::string_view text);

 private:
  struct Loaded;
  void LoadFolder(const std::string& folder, const PluginSearch& search);
  Status Finish(PluginRecord record, std::string_view who, Status s);
  Status LoadFile(const std::string& path, const std::vector<std::string>& disabled);
  Status OpenFile(const std::string& path, const std::vector<std::string>& disabled, PluginRecord* record);
  Status Enter(tw_query_fn query, const std::vector<std::string>& disabled, std::unique_ptr<Loaded> plugin, PluginRecord* record);
  Status Init(std::unique_ptr<Loaded> plugin, const tw_plugin& descriptor, PluginRecord* record);

  Registry* registry_;
  MakeHost make_host_;
  const bool trust_folders_;
  mutable std::mutex mu_;
  std::vector<std::shared_ptr<Loaded>> loaded_;
  std::vector<PluginRecord> records_;
};

}  // namespace thalweg
