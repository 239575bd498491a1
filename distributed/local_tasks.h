// LocalTasks: the tasks of a cluster that run in this program, over one runtime. A client beside them runs its steps there without a
// message, once it has opened its session in the ordinary way, and hands them values that come with the answers of others. A child that was
// forked has copies that nobody works for: it finds none. Threads: any.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "distributed/messages.h"
#include "distributed/wire.h"
#include "framework/base/origin.h"

namespace thalweg::distributed {

class LocalTask {
 public:
  virtual ~LocalTask() = default;
  // As the message of that method: answered once, with a head and a body, maybe before this returns. False: the task is going away.
  using Answer = std::function<void(std::string head, Payload body)>;
  virtual bool Run(const SessionName& session, const RunRequest& m, bool watched, Payload body, Answer answer) = 0;
  // Values that others sent. What is not wanted any more is dropped.
  virtual void Take(const SessionName& session, uint64_t step, std::vector<PushedValue> values) = 0;
};

class LocalTasks {
 public:
  void Add(uint64_t incarnation, std::shared_ptr<LocalTask> task) {
    std::lock_guard lock(mu_);
    all_[incarnation] = std::move(task);
  }
  void Remove(uint64_t incarnation) {
    std::lock_guard lock(mu_);
    all_.erase(incarnation);
  }
  // NULL: it is not in this program, or over another runtime.
  std::shared_ptr<LocalTask> Find(uint64_t incarnation) const {
    if (!origin_.here()) return nullptr;
    std::lock_guard lock(mu_);
    auto it = all_.find(incarnation);
    return it == all_.end() ? nullptr : it->second;
  }

 private:
  const Origin origin_;
  mutable std::mutex mu_;
  std::map<uint64_t, std::shared_ptr<LocalTask>> all_;
};

}  // namespace thalweg::distributed
