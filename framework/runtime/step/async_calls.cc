#include "framework/runtime/step/async_calls.h"

#include "framework/runtime/step/frame.h"

namespace thalweg {

AsyncCalls& AsyncCalls::Get() {
  static AsyncCalls* calls = new AsyncCalls;  // never destroyed: completions may still arrive while the process ends
  return *calls;
}

tw_token AsyncCalls::Begin(StepBase* step, uint64_t tag) {
  std::lock_guard lock(mu_);
  if (free_.empty()) {
    free_.reserve(calls_.size() + 1);  // so that completions need no memory
    calls_.emplace_back();
    free_.push_back(uint32_t(calls_.size() - 1));
  }
  uint32_t i = free_.back();
  free_.pop_back();
  Call& c = calls_[i];
  c.step = step;
  c.tag = tag;
  ++live_;
  return (uint64_t{c.generation} << 32) | (i + 1u);
}

AsyncCalls::Call* AsyncCalls::Find(tw_token t) {
  uint64_t i = (t & 0xffffffffu) - 1;
  if (i >= calls_.size()) return nullptr;
  Call& c = calls_[i];
  return c.step && c.generation == (t >> 32) ? &c : nullptr;
}

bool AsyncCalls::Cancel(tw_token t) {
  std::lock_guard lock(mu_);
  Call* c = Find(t);
  if (!c) return false;
  c->step = nullptr;
  ++c->generation;
  free_.push_back(uint32_t((t & 0xffffffffu) - 1));
  --live_;
  return true;
}

void AsyncCalls::Complete(tw_token t, Status s) {
  StepBase* step = nullptr;
  uint64_t tag = 0;
  {
    std::lock_guard lock(mu_);
    Call* c = Find(t);
    if (!c) return;  // completed twice, or never begun: dropped
    step = c->step;
    tag = c->tag;
    c->step = nullptr;
    ++c->generation;
    free_.push_back(uint32_t((t & 0xffffffffu) - 1));
    --live_;
  }
  step->Complete(tag, std::move(s));
}

uint64_t AsyncCalls::under_way() const {
  std::lock_guard lock(mu_);
  return live_;
}

}  // namespace thalweg
