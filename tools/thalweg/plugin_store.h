// The folder of plugins that `thalweg plugins add` fills: by default the user's folder, which every
// runtime searches. Its file `added.json` lists what was added, with the digests.
#pragma once
#include <string>
#include <vector>

#include "plugin_index.h"

namespace thalweg::cli {

struct AddedPlugin {
  std::string id, version;
  std::string source;  // where it came from
  std::vector<IndexedFile> files;
};

class PluginStore {
 public:
  enum Use { kRead, kChange };

  // folder: "" for the user's, $XDG_DATA_HOME/thalweg/plugins or ~/.local/share/thalweg/plugins.
  // kChange makes the folder, and waits until no other process changes it.
  PluginStore(const std::string& folder, Use use);
  ~PluginStore();
  PluginStore(const PluginStore&) = delete;
  PluginStore& operator=(const PluginStore&) = delete;

  const std::string& folder() const { return folder_; }
  const std::vector<AddedPlugin>& added() const { return added_; }
  const AddedPlugin* Find(const std::string& id) const;

  // Fetches the files, compares them with their digests, loads the plugin from a folder of its own,
  // and then moves the files into place. Another version of it is replaced. Throws
  // std::runtime_error if the plugin does not pass; the folder then holds what it held before.
  void Add(const Args& args, const Source& source, const IndexedPlugin& plugin);

  // Removes the files of a plugin that was added. Throws std::runtime_error if it was not.
  void Remove(const std::string& id);

  // Returns what is wrong with the files of a plugin that was added; "" if nothing is.
  std::string Fault(const AddedPlugin& plugin) const;

 private:
  void Write() const;

  std::string folder_;
  int lock_ = -1;  // the folder's descriptor, with a lock of flock(2), for kChange
  std::vector<AddedPlugin> added_;
};

}  // namespace thalweg::cli
