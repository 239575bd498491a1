// SessionLimits: what the nodes of a session may reach and how much memory they may hold, as its options say.
// Threads: any.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/io/file_system.h"
#include "framework/plan/plan.h"
#include "framework/session/options.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {

// Bytes that a session may hold which runs imported nodes and was told nothing: enough for every honest graph that fits into the machine,
// and short of the point where the system would end the process.
uint64_t DefaultMemoryLimit();

class SessionLimits {
 public:
  // Errors: those of opening the folder of allow_files; INVALID_ARGUMENT for an op in allow_ops or deny_ops that the runtime does not have.
  // account: of the client or server that the session is one of several of, and which pays as well; NULL: there is none.
  static StatusOr<std::unique_ptr<SessionLimits>> Create(const SessionOptions& options, Runtime* runtime, MemoryBudget* account = nullptr);
  ~SessionLimits();

  const ImportedRules& imported() const { return imported_; }
  // The host table that the node's kernel gets: its own, or one that keeps it beneath the folder of allow_files.
  const tw_host* HostFor(const Node& node, const KernelDef& kernel);
  // NULL: no limit.
  MemoryBudget* budget() const { return budget_.load(std::memory_order_acquire); }
  // Sees to it that there is a budget where the options, imported nodes of the graph or an account ask for one. reclaim: see MemoryBudget.
  void EnsureBudget(const Graph& graph, const std::function<void()>& reclaim);
  // Nothing is reclaimed any more.
  void StopReclaiming();

 private:
  SessionLimits(const SessionOptions& options, MemoryBudget* account);

  const bool trusted_;
  const uint64_t memory_limit_;
  MemoryBudget* const account_;  // NULL: none
  ImportedRules imported_;
  std::unique_ptr<FileSystem> files_;  // NULL: the machine's
  std::atomic<MemoryBudget*> budget_{nullptr};
  std::mutex mu_;  // hosts_, making the budget
  std::map<const tw_host*, std::unique_ptr<tw_host, void (*)(tw_host*)>> hosts_;
};

}  // namespace thalweg
