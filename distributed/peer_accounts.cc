#include "distributed/peer_accounts.h"

#include <algorithm>
#include <utility>

#include "framework/base/machine_memory.h"
#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr uint32_t kNoLimit = UINT32_MAX;

// Splits the threads: half are for runs, an eighth ends sessions, the rest is for kernels that
// block.
uint32_t ForRuns(uint32_t threads) { return std::max(threads / 2, 1u); }
uint32_t ForEnds(uint32_t threads) { return std::max(threads / 8, 1u); }
uint32_t ForKernels(uint32_t threads) { return std::max(threads - std::min(threads, ForRuns(threads) + ForEnds(threads)), 1u); }

PeerLimits Whole(PeerLimits l) {
  if (l.memory_limit == 0) l.memory_limit = MachineMemory() / 4 * 3;
  if (l.client_memory_limit == 0) l.client_memory_limit = l.memory_limit / 4 * 3;
  return l;
}

}  // namespace

// ---- RequestShare ----

RequestShare::RequestShare(RequestShare&& other) noexcept
    : account_(std::exchange(other.account_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

RequestShare& RequestShare::operator=(RequestShare&& other) noexcept {
  std::swap(account_, other.account_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status RequestShare::Take(uint64_t bytes) {
  RETURN_IF_ERROR(account_->budget_->Take(bytes));
  bytes_ += bytes;
  return Status();
}

void RequestShare::Give() {
  if (!account_) return;
  if (bytes_ > 0) account_->budget_->Give(std::exchange(bytes_, 0));
  account_->requests_.fetch_sub(1, std::memory_order_relaxed);
  account_.reset();
}

// ---- PeerAccount ----

PeerAccount::~PeerAccount() { budget_->Release(); }

StatusOr<RequestShare> PeerAccount::Begin() {
  const uint32_t before = requests_.fetch_add(1, std::memory_order_relaxed);
  if (before >= most_requests_) {
    requests_.fetch_sub(1, std::memory_order_relaxed);
    return ResourceExhausted(name_, " has ", most_requests_,
                             " requests whose answers are not on their way, as many as the task takes of one client; read the answers, or "
                             "see its option max_client_requests");
  }
  RequestShare share;
  share.account_ = shared_from_this();
  if (before >= PeerAccounts::kFree) RETURN_IF_ERROR(share.Take(PeerAccounts::kPerRequest));
  return share;
}

// ---- PeerAccounts ----

PeerAccounts::PeerAccounts(const PeerLimits& limits, ThreadPool* pool)
    : limits_(Whole(limits)), all_(MemoryBudget::Create(limits_.memory_limit, "the task")) {
  if (!pool) return;
  runs_ = BlockingLine::Create(pool, ForRuns(limits_.max_threads));
  kernels_ = BlockingLine::Create(pool, ForKernels(limits_.max_threads));
  ends_ = BlockingLine::Create(pool, ForEnds(limits_.max_threads));
}

PeerAccounts::~PeerAccounts() {
  all_of_.clear();
  all_->Release();
}

std::shared_ptr<PeerAccount> PeerAccounts::Find(std::string_view name, bool is_client) {
  std::lock_guard lock(mu_);
  if (auto it = all_of_.find(name); it != all_of_.end()) return it->second;
  if (all_of_.size() >= tidy_at_) Tidy();
  const std::string who = name.empty() ? std::string("peers without a name") : StrCat(is_client ? "client '" : "peer '", Shown(name), "'");
  MemoryBudget* budget = MemoryBudget::Create(is_client ? limits_.client_memory_limit : MemoryBudget::kUnlimited, who, all_);
  std::shared_ptr<PeerAccount> account(new PeerAccount(who, is_client ? limits_.max_client_requests : kNoLimit, budget));
  const uint32_t threads = is_client ? std::min(limits_.max_client_threads, limits_.max_threads) : limits_.max_threads;
  if (runs_) {
    account->runs_ = runs_->MakeGuest(ForRuns(threads));
    account->kernels_ = kernels_->MakeGuest(ForKernels(threads));
    account->ends_ = ends_->MakeGuest(ForEnds(threads));
  }
  return all_of_.emplace(name, std::move(account)).first->second;
}

// REQUIRES: mu_. Forgets peers that hold nothing any more. A peer that left variables behind keeps
// its account when it comes back.
void PeerAccounts::Tidy() {
  std::erase_if(all_of_, [](const auto& entry) { return entry.second.use_count() == 1 && entry.second->budget()->used() == 0; });
  tidy_at_ = std::max<size_t>(16, 2 * all_of_.size());
}

uint32_t PeerAccounts::threads() const { return runs_ ? runs_->running() + kernels_->running() + ends_->running() : 0; }

size_t PeerAccounts::size() const {
  std::lock_guard lock(mu_);
  return size_t(std::count_if(all_of_.begin(), all_of_.end(),
                              [](const auto& entry) { return entry.second.use_count() > 1 || entry.second->budget()->used() > 0; }));
}

}  // namespace thalweg::distributed
