// LocalTasks: the tasks of a cluster that run in this program, over one runtime. After a client has
// opened its session in the ordinary way, it runs its steps there without messages, and hands them
// values that came with the answers of other tasks. A forked child has copies without threads, so
// it finds no task. Threads: any.
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
  // Handles the message of that method: `answer` is called once, with a head and a body, possibly
  // before Run returns. Returns false if the task is shutting down.
  using Answer = std::function<void(std::string head, Payload body)>;
  virtual bool Run(const SessionName& session, const RunRequest& m, bool watched, Payload body, Answer answer) = 0;
  // Delivers values that other tasks sent. Values that are no longer wanted are dropped.
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
  // Returns NULL if it is not in this program, or uses another runtime.
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
