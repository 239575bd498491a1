// The tasks of a cluster and their addresses. Read from JSON, either short or as in TF_CONFIG:
//     {"ps": ["unix:ps0"], "worker": ["unix:w0", "unix:w1"]}
//     {"cluster": {"ps": ["10.0.0.1:2222"], "worker": {"3": "10.0.0.2:2222"}}, "task": {"type": "worker", "index": 3}}
//     {"cluster": {"ps": ["10.0.0.1:2222"]}, "membership": "etcd:10.0.0.9:2379/team"}
// Threads: values, no sharing.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace thalweg::distributed {

struct TaskId {
  std::string job;
  int32_t index = 0;
  auto operator<=>(const TaskId&) const = default;
  std::string text() const;  // "/job:ps/task:0"
};

// "unix:name", "grpc:host:port" or "scheme://rest"; "host:port" alone means grpc.
struct Address {
  std::string scheme, rest;
  std::string text() const;
  bool leaves_port_open() const { return rest.ends_with(":0"); }  // the listener chooses the port, if the transport has ports
};
StatusOr<Address> ParseAddress(std::string_view text);

class ClusterSpec {
 public:
  struct Task {
    TaskId id;
    Address address;
    std::string title() const;  // "task /job:ps/task:0 at unix:ps0"
  };
  // Errors: INVALID_ARGUMENT naming the place and the error; also if two tasks have one address.
  static StatusOr<ClusterSpec> Parse(std::string_view json);
  const std::vector<Task>& tasks() const { return tasks_; }      // by job, then index
  const Task* Find(const TaskId& id) const;                      // NULL if there is none
  void SetAddress(const TaskId& id, std::string rest);           // REQUIRES: the task exists
  const std::string& membership() const { return membership_; }  // the service that tracks which tasks are alive; empty if there is none
  std::string text() const;                                      // JSON that Parse reads back
  std::string names() const;                                     // names of all tasks, for messages
  std::string places() const;                                    // names of all tasks with their addresses

 private:
  friend StatusOr<struct TaskConfig> ParseTaskConfig(std::string_view json);
  Status Add(Task task);
  Status Check() const;
  std::string Listed(const std::function<std::string(const Task&)>& text) const;
  std::vector<Task> tasks_;
  std::string membership_;
};

// A cluster, and the task of it that a process is.
struct TaskConfig {
  ClusterSpec cluster;
  std::optional<TaskId> task;
};
StatusOr<TaskConfig> ParseTaskConfig(std::string_view json);

}  // namespace thalweg::distributed
