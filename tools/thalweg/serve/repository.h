// The models that are served: one file, or a folder that is looked at again and again. A new version is loaded before the old one is
// let go; a request keeps its version alive until it ends.
// Threads: any; one thread at a time loads.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "folder.h"
#include "served_model.h"

namespace thalweg::cli::serve {

class Repository {
 public:
  // Loads a version from a folder or file. Throws.
  using Load = std::function<std::shared_ptr<ServedModel>(const std::string& name, uint64_t version, const std::string& path)>;
  using Log = std::function<void(const std::string& line)>;
  // Versions by name: {model: {label: version}}.
  using Labels = std::map<std::string, std::map<std::string, uint64_t>>;

  struct Status {
    uint64_t version;
    const char* state;  // START, LOADING, AVAILABLE or END, in TensorFlow Serving's words
    uint32_t code;      // of the error that kept it from being served; TW_OK
    std::string error;
  };

  // all_versions: all are served, otherwise the newest that can be loaded.
  Repository(bool all_versions, Labels labels, Load load, Metrics* metrics, Log log);
  ~Repository();

  // Tells which versions will be loaded, so that requests for them get 503 and not 404 until then.
  void Announce(const std::map<std::string, Versions>& models);
  // Serves one model. Throws if it cannot be loaded.
  void Add(const std::string& name, const std::string& path);
  // Loads what the folder has and lets go what it no longer has. Failures are logged and in the status. Throws
  // std::filesystem::filesystem_error if the folder cannot be listed, and keeps everything then.
  void Scan(const std::string& folder);
  // Scans on a thread of its own, this long after the end of the last scan.
  void Watch(const std::string& folder, std::chrono::milliseconds every);
  // Begins no further load. Returns what is loading now, such as "model 'm' version 2", of which the destructor would wait for the end; ""
  // if nothing is.
  std::string Stop();

  // Returns a version; "": the newest. Throws HttpError 404 naming what there is, 503 for a version that is not loaded yet and for a model
  // whose versions all failed.
  std::shared_ptr<ServedModel> Find(const std::string& name, const std::string& version) const;
  // Returns the version that a label stands for. Throws HttpError 404.
  std::shared_ptr<ServedModel> FindLabel(const std::string& name, const std::string& label) const;
  // Returns the versions that are served, the newest first. Throws HttpError 404.
  std::vector<std::string> Served(const std::string& name) const;
  // Returns what is known of all versions, the newest first. Throws HttpError 404.
  std::vector<Status> Report(const std::string& name) const;
  std::vector<std::string> Names() const;
  // Returns whether each model has a version that is served.
  bool ready() const;

 private:
  struct Failure {
    uint32_t code;
    std::string text, fingerprint;
  };
  struct Entry {
    std::map<uint64_t, std::shared_ptr<ServedModel>, std::greater<>> served;
    std::map<uint64_t, Failure> failed;
    std::optional<uint64_t> loading;  // the version that is being loaded
    std::optional<uint64_t> next;     // the one that will be loaded first
  };

  const Entry& At(const std::string& name) const;                              // REQUIRES: the lock is held
  static std::string Pending(const Entry& entry, const std::string& version);  // why a version is not there yet; "": it does not come
  std::shared_ptr<ServedModel> TryLoad(const std::string& name, uint64_t version, const std::string& path);
  void ScanModel(const std::string& name, const Versions& versions);

  const bool all_versions_;
  const Labels labels_;
  const Load load_;
  Metrics* const metrics_;
  const Log log_;
  std::mutex scanning_;       // held during a scan, so that there is one at a time. Taken before mutex_
  mutable std::mutex mutex_;  // guards the members that follow, but for the thread. Not held while a model is loaded
  std::map<std::string, Entry> models_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread watcher_;
};

}  // namespace thalweg::cli::serve
