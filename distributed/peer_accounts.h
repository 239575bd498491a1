// PeerAccounts: limits on what each peer makes a process hold, so that no peer locks out the
// others: memory, unanswered requests, threads. A peer that has proven to be a client gets a share
// of each; other peers (tasks, and peers that a transport does not identify) may use the whole. All
// that a peer makes a process hold counts towards its account, which lives until the last of it is
// released. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/blocking_line.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg::distributed {

// Limits for all peers, and for one client.
struct PeerLimits {
  uint64_t memory_limit = 0, client_memory_limit = 0;  // bytes; 0: three quarters of the machine's, and three quarters of that
  uint32_t max_client_requests = 4096;
  uint32_t max_threads = 512, max_client_threads = 64;
};

class PeerAccount;

// The share that one request takes of its peer's account, from its first byte until its answer is
// on its way.
class RequestShare {
 public:
  RequestShare() = default;
  RequestShare(RequestShare&& other) noexcept;
  RequestShare& operator=(RequestShare&& other) noexcept;
  ~RequestShare() { Give(); }

 private:
  friend class PeerAccount;
  Status Take(uint64_t bytes);
  void Give();
  std::shared_ptr<PeerAccount> account_;
  uint64_t bytes_ = 0;
};

class PeerAccount : public std::enable_shared_from_this<PeerAccount> {
 public:
  ~PeerAccount();
  // RESOURCE_EXHAUSTED if the peer has too many unanswered requests, or no memory for another.
  StatusOr<RequestShare> Begin();
  const std::string& name() const { return name_; }
  MemoryBudget* budget() const { return budget_; }
  uint32_t requests() const { return requests_.load(std::memory_order_relaxed); }
  // Threads for runs and registrations; for kernels of runs that block; for sessions that end. Work
  // of one kind never waits for work of its own kind, and work that waits at queues or for other
  // tasks holds no thread, so the queue moves on.
  BlockingLine::Guest* runs() const { return runs_.get(); }
  const std::shared_ptr<BlockingLine::Guest>& kernels() const { return kernels_; }
  BlockingLine::Guest* ends() const { return ends_.get(); }

 private:
  friend class PeerAccounts;
  friend class RequestShare;
  PeerAccount(std::string name, uint32_t most_requests, MemoryBudget* budget)
      : name_(std::move(name)), most_requests_(most_requests), budget_(budget) {}
  const std::string name_;
  const uint32_t most_requests_;
  MemoryBudget* const budget_;
  std::atomic<uint32_t> requests_{0};
  std::shared_ptr<BlockingLine::Guest> runs_, kernels_, ends_;
};

class PeerAccounts {
 public:
  // Bytes that a request costs beside a body longer than kSmall: head, body, the records of
  // transport, messenger and step.
  static constexpr uint64_t kSmall = 4096, kPerRequest = 2 * kSmall;
  // Requests of one peer that are free of charge: a full peer can still make room.
  static constexpr uint32_t kFree = 64;
  // pool: for threads; NULL if these peers start no work.
  PeerAccounts(const PeerLimits& limits, ThreadPool* pool);
  ~PeerAccounts();
  PeerAccounts(const PeerAccounts&) = delete;
  // is_client: the peer has proven to be a client.
  std::shared_ptr<PeerAccount> Find(std::string_view name, bool is_client);
  MemoryBudget* all() const { return all_; }
  uint32_t threads() const;  // that work for peers now
  size_t size() const;       // accounts of peers that hold something

 private:
  void Tidy();
  const PeerLimits limits_;
  MemoryBudget* const all_;
  std::shared_ptr<BlockingLine> runs_, kernels_, ends_;
  mutable std::mutex mu_;
  size_t tidy_at_ = 16;
  std::map<std::string, std::shared_ptr<PeerAccount>, std::less<>> all_of_;
};

}  // namespace thalweg::distributed
