// Eager: runs one op on tensors at once. The first call of a key prepares an entry (a graph of one
// node, a session, plans), and later calls of the key find it. Kernels, placement and devices are
// therefore those of sessions.
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
#include "framework/eager/options.h"
#include "framework/eager/prepared.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/value_check.h"

namespace thalweg {

class Tape;

// Counts since the context was created; `entries` is the current number.
struct EagerReport {
  uint64_t entries = 0, hits = 0, misses = 0, evictions = 0;
};

class EagerEntry;

class Eager {
 public:
  static StatusOr<std::shared_ptr<Eager>> Create(std::shared_ptr<Runtime> runtime, const EagerOptions& options);
  ~Eager();

  // Returns the entry of the call, and makes it if there is none. Errors: those of AppendKey and
  // BuildCall.
  StatusOr<std::shared_ptr<EagerEntry>> Find(const EagerCall& call);
  // The same for nodes that `build` adds, which need not be a single op. key: must differ from every
  // key of AppendKey.
  StatusOr<std::shared_ptr<EagerEntry>> Find(const std::string& key, const EagerBuild& build);
  // Runs `op`, which `entry` holds, and notes it on the tapes of this thread. in, out: as for
  // Prepared::Run. On an error `out` is empty.
  Status Run(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out);
  // As Run, but no output shares its tensor with another value, whether a tape listens or not.
  Status RunApart(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out);
  EagerReport Report();
  // Sets what the results of calls from now on, and of their gradients, may not hold.
  void SetCheck(ValueCheck check) { check_.store(check, std::memory_order_relaxed); }

  // Add and remove a tape, which may note calls in between.
  void Add(Tape* tape);
  void Remove(Tape* tape);
  // Begin and end a part of what this thread runs: its tapes fold what they noted in between (see
  // Tape::Fold). Parts may be nested. Returns the number of the part.
  uint64_t BeginPart();
  void EndPart(uint64_t part);

 private:
  explicit Eager(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  StatusOr<std::shared_ptr<EagerEntry>> Find(const std::string& key, const SessionOptions& options, const EagerBuild& build);
  SessionOptions OptionsWith(ValueCheck check) const;
  StatusOr<std::shared_ptr<EagerEntry>> FindChecked(const std::string& key, ValueCheck check, const EagerBuild& build);
  std::shared_ptr<EagerEntry> Known(std::string_view key, uint64_t hash);
  std::shared_ptr<EagerEntry> Keep(std::string_view key, uint64_t hash, std::shared_ptr<EagerEntry> made);
  Status Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out);

  const std::shared_ptr<Runtime> runtime_;
  SessionOptions session_options_;
  uint32_t max_entries_ = 0;
  std::atomic<ValueCheck> check_{ValueCheck::kOff};
  std::string own_container_;        // destroyed with the context; empty: it uses a shared one
  MemoryBudget* account_ = nullptr;  // NULL: no limit

  std::mutex mu_;  // guards entries_ to evictions_
  struct Kept {
    std::string key;
    std::shared_ptr<EagerEntry> entry;
  };
  std::unordered_multimap<uint64_t, Kept> entries_;  // by the hash of their keys
  uint64_t clock_ = 0, hits_ = 0, misses_ = 0, evictions_ = 0;

  std::atomic<int32_t> n_tapes_{0};
  std::mutex tapes_mu_;  // guards the members below
  std::vector<Tape*> tapes_;
  uint64_t n_parts_ = 0;
};

}  // namespace thalweg
