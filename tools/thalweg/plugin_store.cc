#include "plugin_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <sys/file.h>

#include "framework/base/sha256.h"
#include "framework/registry/user_folders.h"
#include "json_value.h"
#include "loaded_plugin.h"

namespace thalweg::cli {
namespace {

namespace fs = std::filesystem;

std::string UserFolder() {
  const std::string folder = UserPluginFolder();
  if (folder.empty()) throw std::runtime_error("HOME is not set, so there is no folder of the user's; give one with --to");
  return folder;
}

// A folder that is removed with all that is left in it.
class StagingFolder {
 public:
  explicit StagingFolder(const std::string& beneath) : path_(beneath + "/.adding-XXXXXX") {
    if (!mkdtemp(path_.data())) throw std::runtime_error("cannot write to '" + beneath + "': " + std::strerror(errno));
  }
  ~StagingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool Holds(const std::vector<IndexedFile>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const IndexedFile& file) { return file.name == name; });
}

}  // namespace

PluginStore::~PluginStore() {
  if (lock_ >= 0) close(lock_);
}

PluginStore::PluginStore(const std::string& folder, Use use) : folder_(folder.empty() ? UserFolder() : folder) {
  if (use == kChange) {
    fs::create_directories(folder_);
    lock_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0 || flock(lock_, LOCK_EX) != 0) throw std::runtime_error("cannot lock '" + folder_ + "': " + std::strerror(errno));
  }
  if (!fs::exists(folder_ + "/added.json")) return;
  const JsonValue list = JsonValue::Parse(ReadFile(folder_ + "/added.json", kMostConfig));
  for (const JsonValue& p : list["plugins"].items()) {
    AddedPlugin plugin{p["id"].text(), p["version"].text(), p["source"].text(), {}};
    for (const JsonValue& file : p["files"].items()) {
      if (file["name"].text().find('/') != std::string::npos)
        throw std::runtime_error("'" + folder_ + "/added.json' names a file outside its folder");
      plugin.files.push_back({file["name"].text(), file["sha256"].text(), uint64_t(file["bytes"].number())});
    }
    added_.push_back(plugin);
  }
}

const AddedPlugin* PluginStore::Find(const std::string& id) const {
  const auto found = std::find_if(added_.begin(), added_.end(), [&](const AddedPlugin& plugin) { return plugin.id == id; });
  return found == added_.end() ? nullptr : &*found;
}

// The new list replaces the old one at once: a command that is killed leaves one of the two.
void PluginStore::Write() const {
  Json json;
  json.Object().Array("plugins");
  for (const AddedPlugin& plugin : added_) {
    json.Object().Text("id", plugin.id).Text("version", plugin.version).Text("source", plugin.source);
    WriteFiles(&json, plugin.files);
    json.End();
  }
  const std::string path = folder_ + "/added.json", other = path + ".new";
  WriteFile(other, json.End().End().text());
  fs::rename(other, path);
}

void PluginStore::Add(const Args& args, const Source& source, const IndexedPlugin& plugin) {
  const AddedPlugin* before = Find(plugin.id);
  for (const IndexedFile& file : plugin.files) {
    if (fs::exists(folder_ + "/" + file.name) && !(before && Holds(before->files, file.name)))
      throw std::runtime_error("'" + folder_ + "/" + file.name + "' is there already, and is not a file of '" + plugin.id +
                               "' that was added; move it away");
  }
  const StagingFolder staging(folder_);
  for (const IndexedFile& file : plugin.files) {
    const std::string bytes = source.Fetch(file.name, file.bytes);
    if (bytes.size() != file.bytes || Sha256(bytes) != file.sha256)
      throw std::runtime_error("'" + file.name + "' of '" + source.place() +
                               "' has not the digest that the index says; it was changed or is damaged");
    WriteFile(staging.path() + "/" + file.name, bytes);
  }
  const LoadedPlugin loaded = LoadPlugin(args, staging.path() + "/" + plugin.files[0].name);
  if (loaded.id != plugin.id || loaded.version != plugin.version)
    throw std::runtime_error("'" + plugin.files[0].name + "' is '" + loaded.id + "' " + loaded.version + ", but the index says '" +
                             plugin.id + "' " + plugin.version);

  const std::vector<IndexedFile> old = before ? before->files : std::vector<IndexedFile>();
  added_.erase(std::remove_if(added_.begin(), added_.end(), [&](const AddedPlugin& p) { return p.id == plugin.id; }), added_.end());
  added_.push_back({plugin.id, plugin.version, source.place(), plugin.files});
  Write();  // first: files that no list has could be neither replaced nor removed by a later command
  for (const IndexedFile& file : plugin.files) fs::rename(staging.path() + "/" + file.name, folder_ + "/" + file.name);
  for (const IndexedFile& file : old) {
    if (!Holds(plugin.files, file.name)) fs::remove(folder_ + "/" + file.name);
  }
}

void PluginStore::Remove(const std::string& id) {
  const AddedPlugin* plugin = Find(id);
  if (!plugin) {
    std::string names;
    for (const AddedPlugin& p : added_) names += (names.empty() ? "" : ", ") + p.id;
    throw std::runtime_error("'" + id + "' was not added to '" + folder_ + "'; " +
                             (names.empty() ? "nothing was" : "these were: " + names));
  }
  for (const IndexedFile& file : plugin->files) fs::remove(folder_ + "/" + file.name);
  added_.erase(added_.begin() + (plugin - added_.data()));
  Write();
}

std::string PluginStore::Fault(const AddedPlugin& plugin) const {
  for (const IndexedFile& file : plugin.files) {
    const std::string path = folder_ + "/" + file.name;
    if (!fs::exists(path)) return file.name + " is missing";
    if (Sha256(ReadFile(path)) != file.sha256) return file.name + " was changed after it was added";
  }
  return "";
}

}  // namespace thalweg::cli
