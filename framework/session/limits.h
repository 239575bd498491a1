// SessionLimits: what the session's options allow its nodes to access, and how much memory they may
// hold. Threads: any.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/graph/graph.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/session/options.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {

class Runtime;

// Returns the default limit, in bytes, for a session that runs imported nodes. It is enough for
// every honest graph that fits into the machine, and below the point where the system would end the
// process.
uint64_t DefaultMemoryLimit();

class SessionLimits {
 public:
  // Errors: those of opening the folder of allow_files; INVALID_ARGUMENT if allow_ops or deny_ops
  // names an op that the runtime does not have. account: the account of the client or server that
  // owns several sessions; it is charged too. NULL: none.
  static StatusOr<std::unique_ptr<SessionLimits>> Create(const SessionOptions& options, Runtime* runtime, MemoryBudget* account = nullptr);
  ~SessionLimits();

  const ImportedRules& imported() const { return imported_; }
  // Returns the host table for the node's kernel: the kernel's own, or one that confines an
  // imported node to the folder of allow_files.
  const tw_host* HostFor(const Node& node, const KernelDef& kernel);
  // Returns NULL if there is no limit.
  MemoryBudget* budget() const { return budget_.load(std::memory_order_acquire); }
  // Makes a budget if the options, imported nodes of the graph or an account require one. reclaim:
  // see MemoryBudget.
  void EnsureBudget(const Graph& graph, const std::function<void()>& reclaim);
  // Ends reclaiming; waits for a call in progress.
  void StopReclaiming();

 private:
  SessionLimits(const SessionOptions& options, MemoryBudget* account);

  const bool trusted_;
  const uint64_t memory_limit_;
  MemoryBudget* const account_;  // NULL: none
  ImportedRules imported_;
  std::unique_ptr<FileSystem> files_;  // NULL: the kernel's host table is not confined
  std::atomic<MemoryBudget*> budget_{nullptr};
  std::mutex mu_;  // guards hosts_ and the creation of the budget
  std::map<const tw_host*, std::unique_ptr<tw_host, void (*)(tw_host*)>> hosts_;
};

}  // namespace thalweg
