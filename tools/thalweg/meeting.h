// Meeting: processes that an engine has started on several machines become a cluster, through a
// folder that all of them share. Each writes where it is; rank 0 makes the cluster's description
// and the credentials of its members; at the end each writes how it ended. The folder needs no
// locks: every file is written by one process, under another name first.
// Threads: one at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine.h"
#include "supervisor.h"

namespace thalweg::cli {

class Meeting final : public Elsewhere {
 public:
  // folder: for this start alone; nobody else may write there.   ps, workers: tasks of each job.
  // interface: as in OwnAddress.   scheme: of the transport.   seconds: for all to come.
  struct Config {
    std::string folder;
    Rank rank;
    int64_t ps = 0, workers = 1;
    std::string interface, scheme = "grpc";
    double seconds = 120;
  };
  // Throws std::runtime_error if the folder is not there, or others may write to it.
  explicit Meeting(Config config);

  // Waits for all. Returns the cluster, {"ps": [...], "worker": [...]}.
  // Throws std::runtime_error, the same text in all processes: who did not come in time, whose
  // version differs, which number of processes is wrong.
  std::string Join();
  // The folder of a member's credentials; "" for transports without credentials. member: "ps-0",
  // "client-worker-0".
  std::string Credentials(const std::string& member) const;

  void Succeeded() override;
  void Failed(int status, const std::string& what) override;
  bool Done(int* status, std::string* what) override;

 private:
  std::string Own() const;  // this process, for messages
  std::string Path(const std::string& name) const { return config_.folder + "/" + name; }
  void Write(const std::string& name, const std::string& text) const;
  std::vector<std::string> Names(const std::string& prefix) const;
  void CheckRefusal() const;
  [[noreturn]] void Refuse(const std::string& why) const;
  void Come() const;
  std::string Gather() const;

  const Config config_;
};

}  // namespace thalweg::cli
