#include "framework/eager/eager.h"

#include <algorithm>
#include <utility>

#include "framework/eager/entry.h"
#include "framework/eager/tape.h"
#include "framework/runtime/state/container.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

StatusOr<std::shared_ptr<Eager>> Eager::Create(std::shared_ptr<Runtime> runtime, const EagerOptions& options) {
  RETURN_IF_ERROR(runtime->host_device().status());
  std::shared_ptr<Eager> eager(new Eager(std::move(runtime)));
  SessionOptions& session = eager->session_options_;
  if (options.container.empty()) eager->own_container_ = NewGraphContainer();
  session.container = options.container.empty() ? eager->own_container_ : options.container;
  session.device = options.device;
  session.fallback = options.fallback;
  session.threads = options.threads;
  session.check_feeds = false;  // they are the results of checked calls, or inputs that the error describes
  eager->SetCheck(ValueCheckOf(options.check_values));
  eager->max_entries_ = options.max_entries;
  if (options.memory_limit > 0) eager->account_ = MemoryBudget::Create(options.memory_limit, "the eager context");
  return eager;
}

Eager::~Eager() {
  entries_.clear();
  if (!own_container_.empty()) runtime_->resources().EndContainer(own_container_);
  if (account_) account_->Release();
}

std::shared_ptr<EagerEntry> Eager::Known(std::string_view key, uint64_t hash) {
  std::lock_guard lock(mu_);
  auto [first, last] = entries_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.key != key) continue;
    ++hits_;
    it->second.entry->used = ++clock_;
    return it->second.entry;
  }
  return nullptr;
}

// If two threads made the same entry, the first one is kept.
std::shared_ptr<EagerEntry> Eager::Keep(std::string_view key, uint64_t hash, std::shared_ptr<EagerEntry> made) {
  std::shared_ptr<EagerEntry> evicted;  // destroyed after the lock is released
  std::lock_guard lock(mu_);
  ++misses_;
  auto [first, last] = entries_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.key == key) return it->second.entry;
  }
  if (entries_.size() >= max_entries_) {
    auto oldest =
        std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) { return a.second.entry->used < b.second.entry->used; });
    evicted = std::move(oldest->second.entry);
    entries_.erase(oldest);
    ++evictions_;
  }
  made->used = ++clock_;
  entries_.emplace(hash, Kept{std::string(key), made});
  return made;
}

StatusOr<std::shared_ptr<EagerEntry>> Eager::Find(const EagerCall& call) {
  std::string key;
  key.reserve(256);
  RETURN_IF_ERROR(AppendKey(call, &key));
  return Find(key, [&call](Graph* graph, Prepared::Parts* parts) { return BuildCall(call, graph, parts); });
}

StatusOr<std::shared_ptr<EagerEntry>> Eager::Find(const std::string& key, const EagerBuild& build) {
  const ValueCheck check = check_.load(std::memory_order_relaxed);
  if (check != ValueCheck::kOff) return FindChecked(key, check, build);
  return Find(key, session_options_, build);
}

SessionOptions Eager::OptionsWith(ValueCheck check) const {
  SessionOptions options = session_options_;
  options.check_values = check == ValueCheck::kOff ? "off" : check == ValueCheck::kNan ? "nan" : "finite";
  return options;
}

// Entries whose calls check their results have keys of their own.
StatusOr<std::shared_ptr<EagerEntry>> Eager::FindChecked(const std::string& key, ValueCheck check, const EagerBuild& build) {
  const SessionOptions options = OptionsWith(check);
  return Find(key + options.check_values, options, build);
}

StatusOr<std::shared_ptr<EagerEntry>> Eager::Find(const std::string& key, const SessionOptions& options, const EagerBuild& build) {
  const uint64_t hash = KeyedHash(key);
  if (auto known = Known(key, hash)) return known;
  ASSIGN_OR_RETURN(auto made, EagerEntry::Make(runtime_, options, account_, build));
  return Keep(key, hash, std::move(made));
}

Status Eager::Run(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out) {
  RETURN_IF_ERROR(op->Run(in, out));
  if (n_tapes_.load(std::memory_order_relaxed) == 0) return Status();
  Status s = Note(entry, op, in, out);
  for (size_t o = 0; !s.ok() && o < op->n_out(); ++o) out[o].reset();
  return s;
}

// A tape identifies values by their tensors. An output whose tensor has other owners (an op forwarded
// its input, or a variable holds the tensor) would stand for several values, so it gets a tensor of
// its own.
static Status TellApart(const Prepared& op, Tensor* out) {
  for (size_t o = 0; o < op.n_out(); ++o) {
    if (out[o].dtype() == TW_RESOURCE || out[o].get()->refs.load(std::memory_order_relaxed) == 1) continue;
    ASSIGN_OR_RETURN(out[o], out[o].Reshape(out[o].view().dims, out[o].rank()));
  }
  return Status();
}

Status Eager::Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out) {
  std::lock_guard lock(tapes_mu_);
  bool apart = false;
  for (Tape* tape : tapes_) {
    if (!tape->Hears()) continue;
    if (!std::exchange(apart, true)) RETURN_IF_ERROR(TellApart(*op, out));
    tape->Note(entry, op, in, out);
  }
  return Status();
}

Status Eager::RunApart(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, Tensor* out) {
  RETURN_IF_ERROR(op->Run(in, out));
  Status s = TellApart(*op, out);
  if (s.ok() && n_tapes_.load(std::memory_order_relaxed) > 0) s = Note(entry, op, in, out);
  for (size_t o = 0; !s.ok() && o < op->n_out(); ++o) out[o].reset();
  return s;
}

uint64_t Eager::BeginPart() {
  std::lock_guard lock(tapes_mu_);
  ++n_parts_;
  for (Tape* tape : tapes_) {
    if (tape->Hears()) tape->BeginPart(n_parts_);
  }
  return n_parts_;
}

// A value that another owner than these tapes holds is still in use after the part, so the owners of
// all tapes are counted before any tape folds.
void Eager::EndPart(uint64_t part) {
  std::vector<Tape::Noted> dropped;  // destroyed after the lock is released
  std::lock_guard lock(tapes_mu_);
  std::vector<Tape*> folding;
  Tape::Counts held;
  for (Tape* tape : tapes_) {
    if (!tape->IsOfThisThread() || !tape->CountHeld(part, &held)) continue;
    folding.push_back(tape);
  }
  Tape::Tensors used;
  for (const auto& [tensor, n] : held) {
    if (tensor->refs.load(std::memory_order_relaxed) > n) used.insert(tensor);
  }
  for (Tape* tape : folding) tape->Fold(part, used, &dropped);
}

EagerReport Eager::Report() {
  std::lock_guard lock(mu_);
  return {entries_.size(), hits_, misses_, evictions_};
}

void Eager::Add(Tape* tape) {
  std::lock_guard lock(tapes_mu_);
  tapes_.push_back(tape);
  n_tapes_.store(int32_t(tapes_.size()), std::memory_order_relaxed);
}

void Eager::Remove(Tape* tape) {
  std::lock_guard lock(tapes_mu_);
  std::erase(tapes_, tape);
  n_tapes_.store(int32_t(tapes_.size()), std::memory_order_relaxed);
}

}  // namespace thalweg
