// Store: what the files of one runtime share: connections, keys, threads, and memory for reading
// ahead. Threads: any.
// A forked child gets all of it anew at its first use, because connections are the parent's and
// threads do not exist there; the parent's part is neither used nor freed.
#ifndef THALWEG_PLUGINS_S3_STORE_H_
#define THALWEG_PLUGINS_S3_STORE_H_

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "../common/origin.h"
#include "client.h"
#include "credentials.h"
#include "http.h"
#include "objects.h"
#include "options.h"
#include "workers.h"

namespace thalweg::s3 {

// The part of a Store that belongs to one process.
struct Process {
  Process(const Settings& settings, const tw_host* host);
  ~Process();
  Process(const Process&) = delete;

  const common::Origin origin;
  const Place place;
  Http http;
  Credentials credentials;
  Client client;
  Objects objects;
  Slots parts;  // uploads of parts that are under way

  // Enters the path of a file that is being written. Returns false if it is there.
  bool EnterName(const std::string& path);
  void LeaveName(const std::string& path) noexcept;

 private:
  std::mutex mu_;
  std::set<std::string> writing_;  // guarded by mu_

 public:
  Workers workers;  // the last member: its tasks use the others
};

class Store {
 public:
  Store() = default;
  ~Store();
  Store(const Store&) = delete;
  // Called once, before all else. Throws INVALID_ARGUMENT, naming the setting.
  void Open(const tw_host* host);
  const Settings& settings() const { return settings_; }
  // Throws what FindPlace throws; the next call tries again.
  Process& here();
  void Warn(const std::string& text) const;
  // Takes memory for reading ahead. Returns false if there is not so much left.
  bool TakeMemory(uint64_t bytes);
  void GiveMemory(uint64_t bytes) { memory_ += bytes; }

 private:
  const tw_host* host_ = nullptr;
  Settings settings_;
  std::atomic<uint64_t> memory_{0};
  std::atomic<Process*> process_{nullptr};
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_STORE_H_
