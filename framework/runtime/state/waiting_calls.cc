#include "framework/runtime/state/waiting_calls.h"

#include <unistd.h>

#include <chrono>
#include <iterator>
#include <thread>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/later_calls.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/state/touched_resources.h"
#include "framework/runtime/step/async_calls.h"

namespace thalweg {

thread_local WaitWish* WaitWish::current = nullptr;

WaitWish::~WaitWish() {
  current = outer;
  if (held) at->Release();
}

void CancelToken::Cancel() {
  cancelled_.store(true);
  if (waiting_.load() == 0) return;
  WaitingCalls::Get().Cancelled(this);
  LaterCalls::Get().Cancelled(this);
}

WaitingCalls& WaitingCalls::Get() {
  static WaitingCalls* calls = new WaitingCalls;  // never destroyed: its thread may still use it while the process ends
  return *calls;
}

void WaitingCalls::CallUp(Call* c) {
  if (c->called) return;
  c->called = true;
  c->step->Again(c->tag);
}

void WaitingCalls::CallFirsts(const Resource* at, const Call* but) {
  auto lines = lines_.find(at);
  if (lines == lines_.end()) return;
  for (auto& [condition, line] : lines->second) {
    if (!line.empty() && line.begin()->second != but) CallUp(line.begin()->second);
  }
}

void WaitingCalls::Enlist(Call* c, Resource* at, uint64_t condition) {
  lines_[at][condition].emplace(tickets_, c);
  c->at = at;
  c->condition = condition;
  c->ticket = tickets_++;
  at->Retain();
  at->Watch(1);
}

// Removes a call from its line and wakes the next one.
void WaitingCalls::Delist(Call* c) {
  auto lines = lines_.find(c->at);
  auto line = lines->second.find(c->condition);
  ++left_;
  line->second.erase(c->ticket);
  c->at->Watch(-1);
  if (!line->second.empty()) {
    CallUp(line->second.begin()->second);
  } else {
    lines->second.erase(line);
    if (lines->second.empty()) lines_.erase(lines);
  }
  c->at->Release();
}

void WaitingCalls::Forget(Call* c) {
  for (const CancelToken* token : {c->step->cancel, c->step->closing}) {
    if (token && by_token_.erase({token, c})) token->Watch(-1);
  }
  if (c->held) TouchedResources::Get().End();
  if (c->deadline) by_deadline_.erase({c->deadline, c});
  if (by_deadline_.empty() && keeper_process_) alarm_.notify_one();
}

void WaitingCalls::SetAlarm(Call* c) {
  if (keeper_process_ && keeper_process_ != getpid()) {  // a forked child has neither the thread nor the steps
    by_deadline_.clear();
    keeper_process_ = 0;
  }
  by_deadline_.emplace(c->step->deadline, c);
  c->deadline = c->step->deadline;
  if (!keeper_process_) {
    StartThread([this] {
      LeaveSignalsToTheProgram();
      KeepDeadlines();
    }).detach();
    keeper_process_ = getpid();
  } else if (by_deadline_.begin()->second == c) {
    alarm_.notify_one();
  }
}

void WaitingCalls::Enter(Call* c, const WaitWish& wish) {
  c->step = wish.frame->step;
  c->tag = wish.tag;
  if (wish.held) TouchedResources::Get().Begin();
  c->held = wish.held;
  for (const CancelToken* token : {c->step->cancel, c->step->closing}) {
    if (token && by_token_.emplace(token, c).second) token->Watch(1);
  }
  if (c->step->deadline) SetAlarm(c);
  Enlist(c, wish.at, wish.condition);
}

void WaitingCalls::Wait(const WaitWish& wish, bool changed) {
  KernelFrame& f = *wish.frame;
  std::lock_guard lock(mu_);
  // Ended calls leave their lines without the resource's lock, so one that the kernel has counted
  // may have left since.
  const bool moved_up = wish.counted && wish.left != left_;
  const auto [it, is_new] = calls_.try_emplace(Key(f.step, wish.tag));
  Call* c = &it->second;
  try {
    if (is_new) {
      Enter(c, wish);
    } else if (c->at != wish.at || c->condition != wish.condition) {
      Call old = *c;
      Enlist(c, wish.at, wish.condition);
      Delist(&old);
    }
  } catch (...) {
    if (is_new) {
      Forget(c);
      calls_.erase(it);
    }
    throw;
  }
  c->called = false;
  for (uint32_t i : f.run->open_update) {
    if (changed) CallFirsts(f.opened[i], c);
  }
  CloseResources(&f, /*changed=*/false);
  const bool touched = wish.held && wish.at->touches() != wish.seen;
  if (moved_up || touched || f.step->Failed() || OuterFailed(f.step) || !WaitInterrupted(*f.step).ok()) CallUp(c);
}

void WaitingCalls::Leave(const StepBase* step, uint64_t tag) {
  std::lock_guard lock(mu_);
  auto it = calls_.find(Key(step, tag));
  if (it == calls_.end()) return;
  Forget(&it->second);
  Delist(&it->second);
  calls_.erase(it);
}

void WaitingCalls::Updated(const Resource* at) {
  std::lock_guard lock(mu_);
  CallFirsts(at, nullptr);
}

void WaitingCalls::Cancelled(const CancelToken* token) {
  std::lock_guard lock(mu_);
  for (auto it = by_token_.lower_bound({token, nullptr}); it != by_token_.end() && it->first == token; ++it) CallUp(it->second);
}

void WaitingCalls::CallAll(const StepBase* step) {
  std::lock_guard lock(mu_);
  CallInside(step);
}

void WaitingCalls::CallInside(const StepBase* step) {
  for (auto it = calls_.lower_bound(Key(step, 0)); it != calls_.end() && it->first.first == step; ++it) CallUp(&it->second);
  const auto [first, last] = inner_.equal_range(step);
  for (auto it = first; it != last; ++it) CallInside(it->second);
}

// ---- Steps inside steps ----

void WaitingCalls::Nest(const StepBase* inner, const StepBase* outer) {
  std::lock_guard lock(mu_);
  const auto it = inner_.emplace(outer, inner);
  try {
    outer_[inner] = outer;
  } catch (...) {
    inner_.erase(it);
    throw;
  }
}

void WaitingCalls::NestAs(const StepBase* inner, const StepBase* nested) {
  const StepBase* outer = nullptr;
  {
    std::lock_guard lock(mu_);
    const auto at = outer_.find(nested);
    if (at != outer_.end()) outer = at->second;
  }
  if (outer) Nest(inner, outer);
}

void WaitingCalls::Unnest(const StepBase* inner) {
  std::lock_guard lock(mu_);
  const auto at = outer_.find(inner);
  if (at == outer_.end()) return;
  auto [it, last] = inner_.equal_range(at->second);
  while (it != last && it->second != inner) ++it;
  if (it != last) inner_.erase(it);
  outer_.erase(at);
}

bool WaitingCalls::OuterFailed(const StepBase* step) const {
  for (auto at = outer_.find(step); at != outer_.end(); at = outer_.find(at->second)) {
    if (at->second->Failed()) return true;
  }
  return false;
}

Status WaitingCalls::Ended(const StepBase& step) {
  RETURN_IF_ERROR(WaitInterrupted(step));
  std::lock_guard lock(mu_);
  return OuterFailed(&step) ? Status(absl::StatusCode::kCancelled, "another node of the step has failed") : Status();
}

uint64_t WaitingCalls::Count(const Resource* at, uint64_t condition, WaitWish* wish) {
  std::lock_guard lock(mu_);
  if (wish && !std::exchange(wish->counted, true)) wish->left = left_;
  auto lines = lines_.find(at);
  if (lines == lines_.end()) return 0;
  auto line = lines->second.find(condition);
  if (line == lines->second.end()) return 0;
  auto own = wish ? calls_.find(Key(wish->frame->step, wish->tag)) : calls_.end();
  const bool inside = own != calls_.end() && own->second.at == at && own->second.condition == condition;
  return inside ? uint64_t(std::distance(line->second.begin(), line->second.find(own->second.ticket))) : line->second.size();
}

void WaitingCalls::KeepDeadlines() {
  std::unique_lock lock(mu_);
  while (!by_deadline_.empty()) {
    const auto [at, c] = *by_deadline_.begin();
    if (MonotonicNs() > at) {
      by_deadline_.erase(by_deadline_.begin());
      c->deadline = 0;
      CallUp(c);
      continue;
    }
    alarm_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at + 1)));
  }
  keeper_process_ = 0;
}

Status StartAsyncCall(KernelFrame* f, uint64_t tag, bool* pending) {
  const tw_token token = AsyncCalls::Get().Begin(f->step, tag);
  f->c.token = token;
  *pending = true;
  WaitWish wish(f, tag);
  tw_status* failed = nullptr;
  try {
    failed = f->run->kernel->def.execute(&f->c);
  } catch (...) {  // although it must not throw
    failed = ToC(Thrown());
  }
  if (!failed && !wish.at) return Status();
  // The call did not start, or waits. If it was completed nevertheless, that completion is the
  // result.
  Status s = FromC(failed);
  if (!AsyncCalls::Get().Cancel(token)) return Status();
  if (s.ok()) {
    const bool changed = wish.memo != f->c.memo;
    f->c.memo = wish.memo;
    f->waits = true;
    WaitingCalls::Get().Wait(wish, changed);
    return s;
  }
  *pending = false;
  return s;
}

}  // namespace thalweg
