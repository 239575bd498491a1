#include "framework/runtime/flow/loop_run.h"

#include <algorithm>

#include "framework/base/shown.h"
#include "framework/base/status.h"

namespace thalweg {

std::string IterationNumbers(const LoopRun& loop, const Iteration& it) {
  std::string text;
  const Iteration* in = &it;
  for (const LoopRun* l = &loop; l->parent; in = l->within, l = l->parent) {
    text = text.empty() ? StrCat(in->number) : StrCat(in->number, ".", text);
  }
  return text;
}

LoopRun* Loops::Begin(int32_t frame, LoopRun* parent, Iteration* within) {
  if (free_loops_.empty()) {
    loops_.push_back(std::make_unique<LoopRun>());
    free_loops_.push_back(loops_.back().get());
  }
  LoopRun* loop = free_loops_.back();
  if (within) within->inner.push_back(loop);
  free_loops_.pop_back();
  loop->frame = frame;
  loop->serial = ++begun_;
  loop->parent = parent;
  loop->within = within;
  loop->first = 0;
  loop->last = -1;
  loop->under_way = 0;
  loop->enters_left = p_.frames[size_t(frame)].enters;
  AddIteration(loop);
  return loop;
}

void Loops::End(LoopRun* loop) {
  if (loop->within) {
    std::vector<LoopRun*>& inner = loop->within->inner;
    inner.erase(std::find(inner.begin(), inner.end(), loop));
  }
  loop->iterations.clear();
  loop->deferred.clear();
  loop->invariants.clear();
  loop->dead_exits.clear();
  loop->left.clear();
  free_loops_.push_back(loop);
}

Iteration* Loops::AddIteration(LoopRun* loop) {
  const FramePlan::Frame& frame = p_.frames[size_t(loop->frame)];
  std::vector<Iteration*>& free = free_iterations_[size_t(loop->frame)];
  if (free.empty()) {
    iterations_.push_back(std::make_unique<Iteration>());
    iterations_.back()->tokens.resize(size_t(frame.tokens));
    free.push_back(iterations_.back().get());
  }
  Iteration* it = free.back();
  it->counts = frame.counts;
  loop->iterations.push_back(it);
  free.pop_back();
  it->number = ++loop->last;
  it->ops = it->waiting = 0;
  ++loop->under_way;
  return it;
}

void Loops::EndIteration(LoopRun* loop, Iteration* it) {
  for (Tensor& t : it->tokens) t.reset();
  free_iterations_[size_t(loop->frame)].push_back(it);
  loop->iterations[size_t(it->number - loop->first)] = nullptr;
  for (; !loop->iterations.empty() && !loop->iterations.front(); ++loop->first) loop->iterations.pop_front();
  --loop->under_way;
}

void Loops::Abandon(LoopRun* loop) {
  for (int64_t k = loop->first; k <= loop->last; ++k) {
    Iteration* it = loop->At(k);
    if (!it) continue;
    while (!it->inner.empty()) Abandon(it->inner.back());
    EndIteration(loop, it);
  }
  End(loop);
}

std::string Loops::Where(const LoopRun& loop, const Iteration& it) const {
  std::string text;
  const Iteration* in = &it;
  for (const LoopRun* l = &loop; l->parent; in = l->within, l = l->parent) {
    text += StrCat(text.empty() ? "" : ", ", "iteration ", in->number, " of frame '", Shown(p_.frames[size_t(l->frame)].name), "'");
  }
  return text;
}

}  // namespace thalweg
