#include "framework/session/limits.h"

#include "framework/base/machine_memory.h"
#include "framework/files/confined_files.h"
#include "framework/files/read_only_files.h"
#include "framework/runtime/host/host_table.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

Status CheckOps(const Registry& registry, std::string_view option, const std::vector<std::string>& ops) {
  for (const std::string& op : ops) {
    if (registry.FindOp(op)) continue;
    return InvalidArgument("session option '", option, "': no loaded plugin defines op '", op, "'; check the spelling");
  }
  return Status();
}

}  // namespace

uint64_t DefaultMemoryLimit() { return MachineMemory() / 4 * 3; }

SessionLimits::SessionLimits(const SessionOptions& options, MemoryBudget* account)
    : trusted_(options.trust_imported), memory_limit_(options.memory_limit), account_(account) {
  if (account_) account_->Retain();
  imported_.allow_ops = options.allow_ops;
  imported_.deny_ops = options.deny_ops;
  imported_.may_touch = trusted_ ? ~0u : options.allow_files.empty() ? 0u : uint32_t{kTouchesFiles};
}

SessionLimits::~SessionLimits() {
  StopReclaiming();
  if (MemoryBudget* b = budget()) b->Release();
  if (account_) account_->Release();
}

StatusOr<std::unique_ptr<SessionLimits>> SessionLimits::Create(const SessionOptions& options, Runtime* runtime, MemoryBudget* account) {
  RETURN_IF_ERROR(CheckOps(runtime->registry(), "allow_ops", options.allow_ops));
  RETURN_IF_ERROR(CheckOps(runtime->registry(), "deny_ops", options.deny_ops));
  std::unique_ptr<SessionLimits> limits(new SessionLimits(options, account));
  if (!options.allow_files.empty()) {
    const bool scheme = !SchemeOf(options.allow_files).empty();
    auto files = scheme ? FilesBeneathScheme(options.allow_files, &runtime->files()) : OpenFilesBeneath(options.allow_files);
    if (!files.ok()) return Prefix(files.status(), "session option 'allow_files':");
    limits->files_ = options.write_files ? *std::move(files) : ReadOnlyFiles(*std::move(files));
  }
  return limits;
}

const tw_host* SessionLimits::HostFor(const Node& node, const KernelDef& kernel) {
  if (!files_ || !node.imported() || !(node.op().touches & kTouchesFiles)) return kernel.host;
  std::lock_guard lock(mu_);
  auto it = hosts_.find(kernel.host);
  if (it == hosts_.end()) it = hosts_.emplace(kernel.host, ConfinedHost(kernel.host, files_.get())).first;
  return it->second.get();
}

void SessionLimits::EnsureBudget(const Graph& graph, const std::function<void()>& reclaim) {
  if (budget()) return;
  const bool wanted = memory_limit_ > 0 || account_ || (!trusted_ && graph.has_imported());
  if (!wanted) return;
  std::lock_guard lock(mu_);
  if (budget()) return;
  const uint64_t limit = memory_limit_ > 0 ? memory_limit_ : account_ ? MemoryBudget::kUnlimited : DefaultMemoryLimit();
  MemoryBudget* made = MemoryBudget::Create(limit, "the session", account_);
  made->SetReclaim(reclaim);
  budget_.store(made, std::memory_order_release);
}

void SessionLimits::StopReclaiming() {
  if (MemoryBudget* b = budget()) b->SetReclaim(nullptr);
}

}  // namespace thalweg
