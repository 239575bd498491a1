// Eager: runs one op on tensors now. What an op needs to run (a graph of one node, a session, plans) is prepared at the first call of its
// key and found again by later ones, so that kernels, placement and devices are those of sessions.
// Threads: any number of calls at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/keyed_hash.h"
#include "framework/base/status.h"
#include "framework/eager/call.h"
#include "framework/eager/entry.h"
#include "framework/eager/options.h"
#include "framework/runtime/runtime.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {

class Tape;

// Counts since the context was made, but for `entries`, which are there now.
struct EagerReport {
  uint64_t entries = 0, hits = 0, misses = 0, evictions = 0;
};

class Eager {
 public:
  static StatusOr<std::shared_ptr<Eager>> Create(std::shared_ptr<Runtime> runtime, const EagerOptions& options);
  ~Eager();

  // What is prepared for the call; made if there is none. Errors: those of AppendKey and BuildCall.
  StatusOr<std::shared_ptr<EagerEntry>> Find(const EagerCall& call);
  // The same of nodes that are no single op. key: begins with a byte that AppendKey never begins with.
  StatusOr<std::shared_ptr<EagerEntry>> Find(const std::string& key, const EagerEntry::Build& build);
  // Runs what an entry holds, and notes it on the tapes of this thread. in, out: as of Prepared::Run.
  Status Run(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out);
  EagerReport Report();

  // Tapes begin and end on the thread that they belong to.
  void Add(Tape* tape);
  void Remove(Tape* tape);

 private:
  explicit Eager(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  std::shared_ptr<EagerEntry> Known(std::string_view key, uint64_t hash);
  std::shared_ptr<EagerEntry> Keep(std::string_view key, uint64_t hash, std::shared_ptr<EagerEntry> made);
  Status Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out);

  const std::shared_ptr<Runtime> runtime_;
  SessionOptions session_options_;
  uint32_t max_entries_ = 0;
  std::string own_container_;        // that ends with the context; empty: it has none
  MemoryBudget* account_ = nullptr;  // NULL: no limit

  std::mutex mu_;  // all below
  struct Kept {
    std::string key;
    std::shared_ptr<EagerEntry> entry;
  };
  std::unordered_multimap<uint64_t, Kept> entries_;  // by the hash of their keys
  uint64_t clock_ = 0, hits_ = 0, misses_ = 0, evictions_ = 0;

  std::atomic<int32_t> n_tapes_{0};
  std::mutex tapes_mu_;
  std::vector<Tape*> tapes_;
};

}  // namespace thalweg
