#include "framework/runtime/flow/token_flow.h"

#include <algorithm>
#include <new>
#include <utility>

#include "framework/base/shown.h"

namespace thalweg {

void TokenFlow::Begin() {
  root_ = loops_.Begin(0, nullptr, nullptr);
  for (int32_t i : f_.roots) Ready(i, false, root_, root_->At(0));
}

static constexpr int32_t kWasReady = -(1 << 30);  // a count whose node has been queued

void TokenFlow::Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
  ++it->ops;
  it->counts[size_t(f_.nodes[size_t(node)].index)].pending = kWasReady;
  listener_->Ready(node, dead, loop, it);
}

// Takes an input of a node that routes values.
Tensor TokenFlow::TakeInput(const FramePlan::Node& n, size_t i, Iteration* it) {
  if (n.fixed[i] >= 0) return Tensor::Share(s_->slot(n.fixed[i]).view.tensor);
  return std::move(it->tokens[size_t(n.first_token) + i]);
}

void TokenFlow::Decide(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
  const FramePlan::Node& n = f_.nodes[size_t(node)];
  outputs_.clear();
  outputs_.resize(n.next.size());
  if (dead) {
    for (size_t i = 0; i < n.fixed.size(); ++i) calls_.LetGo(std::move(it->tokens[size_t(n.first_token) + i]));
  } else if (n.constant) {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      outputs_[o] = Tensor::Share(s_->slot(p_.nodes[size_t(node)].out[o]).view.tensor);
    }
  } else if (n.flow == Flow::kSwitch) {
    const Tensor pred = TakeInput(n, 1, it);
    if (pred.rank() != 0) return listener_->Fail(NoScalar(node, *loop, *it, "pred", pred));
    outputs_[*pred.as<bool>() ? 1 : 0] = TakeInput(n, 0, it);
  } else if (n.flow == Flow::kMerge) {
    Choose(n, it);
  } else if (n.flow != Flow::kControlTrigger) {
    outputs_[0] = TakeInput(n, 0, it);
    if (n.flow == Flow::kLoopCond && outputs_[0].rank() != 0) return listener_->Fail(NoScalar(node, *loop, *it, "input", outputs_[0]));
  }
  HandOn(node, dead, loop, it);
}

Status TokenFlow::NoScalar(int32_t node, const LoopRun& loop, const Iteration& it, std::string_view input, const Tensor& value) const {
  const PlanNode& n = p_.nodes[size_t(node)];
  const std::string where = loops_.Where(loop, it);
  return OfNode(*n.run.node, InvalidArgument(n.title, " ", input, " must be a scalar, but is ", value.shape().text(),
                                             where.empty() ? "" : " in ", where));
}

void TokenFlow::Choose(const FramePlan::Node& n, Iteration* it) {
  for (size_t i = 0; i < n.fixed.size(); ++i) {
    Tensor& t = it->tokens[size_t(n.first_token) + i];
    if (!t) continue;
    outputs_[0] = std::move(t);
    if (!n.next[1].empty() || n.fetched[1] >= 0) outputs_[1] = IndexTensor(i);
    return;
  }
}

Tensor TokenFlow::IndexTensor(size_t i) {
  std::vector<Tensor>& all = indices_;
  while (all.size() <= i) {
    auto t = Tensor::Make(TW_INT32, nullptr, 0);
    if (!t.ok()) throw std::bad_alloc();
    *t->as<int32_t>() = int32_t(all.size());
    all.push_back(*std::move(t));
  }
  return all[i];
}

// Ends the node. outputs_ are its outputs, empty where dead.
void TokenFlow::HandOn(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
  const FramePlan::Node& n = f_.nodes[size_t(node)];
  switch (n.flow) {
    case Flow::kEnter: HandIn(node, dead, loop, it); break;
    case Flow::kExit: HandOut(node, dead, loop, it); break;
    case Flow::kNextIteration:
      if (!dead) HandRound(node, loop, it);
      break;
    default: Deliver(n, dead, loop, it);
  }
  if (--it->ops == 0) EndWhatIsOver(loop, it);
}

void TokenFlow::HandIn(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
  const FramePlan::Node& n = f_.nodes[size_t(node)];
  auto inner = std::find_if(it->inner.begin(), it->inner.end(), [&](const LoopRun* l) { return l->frame == n.into; });
  LoopRun* into = inner != it->inner.end() ? *inner : loops_.Begin(n.into, loop, it);
  if (n.invariant) {
    into->invariants.emplace_back(node, outputs_[0]);
    for (int64_t k = into->first; k <= into->last; ++k) {
      if (Iteration* each = into->At(k)) DeliverOne(n, dead, outputs_[0], into, each);
    }
  } else {
    Deliver(n, dead, into, into->At(0));
  }
  --into->enters_left;
  if (into->enters_left == 0 && into->At(0)->ops == 0) EndWhatIsOver(into, into->At(0));
}

// Passes a live value out of the loop. An exit is dead if no iteration passes a live value, which
// is known only after the last one.
void TokenFlow::HandOut(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
  const bool before = std::find(loop->left.begin(), loop->left.end(), node) != loop->left.end();
  if (dead) {
    if (!before && it->number == loop->last) loop->dead_exits.push_back(node);
    return;
  }
  const Node& exit = *p_.nodes[size_t(node)].run.node;
  if (before) {
    return listener_->Fail(OfNode(exit, InvalidArgument(exit.title(), ": it leaves its frame in two iterations, the second time in ",
                                                        loops_.Where(*loop, *it), "; let it out of a Switch that ends the loop")));
  }
  loop->left.push_back(node);
  Deliver(f_.nodes[size_t(node)], false, loop->parent, loop->within);
}

void TokenFlow::HandRound(int32_t node, LoopRun* loop, Iteration* it) {
  if (interruptible_) {
    if (Status s = StepInterrupted(calls_); !s.ok()) return listener_->Fail(std::move(s));
  }
  if (it->number < loop->last) return Deliver(f_.nodes[size_t(node)], false, loop, loop->At(it->number + 1));
  if (loop->under_way >= f_.frames[size_t(loop->frame)].parallel) {
    loop->deferred.emplace_back(node, std::move(outputs_[0]));
    return;
  }
  Tensor value = std::move(outputs_[0]);
  Iteration* next = StartIteration(loop);
  outputs_.resize(1);
  outputs_[0] = std::move(value);
  Deliver(f_.nodes[size_t(node)], false, loop, next);
}

Iteration* TokenFlow::StartIteration(LoopRun* loop) {
  Iteration* it = loops_.AddIteration(loop);
  loop->dead_exits.clear();
  auto deferred = std::move(loop->deferred);
  loop->deferred.clear();
  for (auto& [node, value] : deferred) DeliverOne(f_.nodes[size_t(node)], false, std::move(value), loop, it);
  for (const auto& [node, value] : loop->invariants) DeliverOne(f_.nodes[size_t(node)], !value, value, loop, it);
  return it;
}

// Delivers the only output of a node.
void TokenFlow::DeliverOne(const FramePlan::Node& n, bool dead, Tensor value, LoopRun* loop, Iteration* it) {
  DeliverTo(n.next[0], std::move(value), n.flow == Flow::kEnter, loop, it);
  for (const FramePlan::Target& t : n.then) Arrive(t, !dead, nullptr, false, loop, it);
}

void TokenFlow::Deliver(const FramePlan::Node& n, bool dead, LoopRun* loop, Iteration* it) {
  for (size_t o = 0; o < n.next.size(); ++o) {
    if (n.fetched[o] >= 0 && outputs_[o]) s_->slot(n.fetched[o]).Hold(outputs_[o]);
    if (n.fetched[o] >= 0 && !outputs_[o]) dead_fetches_.push_back(int32_t(&n - f_.nodes.data()));
    DeliverTo(n.next[o], std::move(outputs_[o]), n.flow == Flow::kEnter, loop, it);
  }
  for (const FramePlan::Target& t : n.then) Arrive(t, !dead, nullptr, false, loop, it);
}

// Delivers an output, empty if dead. The last reader becomes the only owner.
void TokenFlow::DeliverTo(const std::vector<FramePlan::Target>& targets, Tensor value, bool enters, LoopRun* loop, Iteration* it) {
  const bool live = bool(value);
  if (targets.empty()) return calls_.LetGo(std::move(value));
  for (size_t k = 0; k < targets.size(); ++k) {
    Tensor mine = k + 1 == targets.size() ? std::move(value) : value;
    Arrive(targets[k], live, &mine, enters, loop, it);
  }
}

// Counts one input of a node that has arrived, or is dead. enters: the value comes from an Enter.
void TokenFlow::Arrive(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it) {
  const FramePlan::Node& n = f_.nodes[size_t(t.node)];
  FramePlan::Count& c = it->counts[size_t(n.index)];
  if (n.flow == Flow::kMerge) return ArriveAtMerge(t, live, value, enters, loop, it);
  const int32_t inputs = f_.frames[size_t(n.frame)].counts[size_t(n.index)].pending;
  if (c.pending == inputs) ++it->waiting;
  if (!live) ++c.dead;
  if (live && t.input >= 0) it->tokens[size_t(n.first_token + t.input)] = std::move(*value);
  if (--c.pending != 0) return;
  --it->waiting;
  Ready(t.node, c.dead > 0 && n.flow != Flow::kControlTrigger, loop, it);
}

// A Merge waits for its control inputs, alive or dead, and for one live data input, or for all of
// them to be dead. A dead value that enters a loop is the only input of the first iteration.
void TokenFlow::ArriveAtMerge(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it) {
  const FramePlan::Node& n = f_.nodes[size_t(t.node)];
  FramePlan::Count& c = it->counts[size_t(n.index)];
  if (t.input < 0) {
    c.pending -= 2;
  } else if (live) {
    if (!(c.pending & 1)) return calls_.LetGo(std::move(*value));  // another value came before
    it->tokens[size_t(n.first_token + t.input)] = std::move(*value);
    c.pending &= ~1;
  } else {
    c.dead = enters ? int32_t(n.fixed.size()) : c.dead + 1;
  }
  if (c.pending == 0) return Ready(t.node, false, loop, it);
  if (c.pending == 1 && c.dead >= int32_t(n.fixed.size())) Ready(t.node, true, loop, it);
}

bool TokenFlow::IsOver(const LoopRun& loop, const Iteration& it) const {
  if (it.ops > 0 || !it.inner.empty()) return false;
  return it.number == 0 ? loop.enters_left == 0 : !loop.At(it.number - 1);
}

// Releases values that arrived for nodes that will not run.
void TokenFlow::LetGo(Iteration* it) {
  for (Tensor& t : it->tokens) calls_.LetGo(std::move(t));
}

// Called if nothing of the iteration is in progress: ends it if it is over, then later iterations,
// the loop, and the iteration around the loop.
void TokenFlow::EndWhatIsOver(LoopRun* loop, Iteration* it) {
  while (loop->parent) {
    for (int64_t k = it->number; k <= loop->last; ++k) {
      Iteration* next = loop->At(k);
      if (!IsOver(*loop, *next)) break;
      if (next->waiting > 0) NoteWaiting(*loop, *next);
      if (calls_.has_queues()) LetGo(next);
      loops_.EndIteration(loop, next);
      if (!loop->deferred.empty()) StartIteration(loop);
    }
    if (loop->enters_left > 0 || loop->under_way > 0) return;
    LoopRun* parent = loop->parent;
    it = loop->within;
    const std::vector<int32_t> dead_exits = std::move(loop->dead_exits);
    for (auto& [node, value] : loop->invariants) calls_.LetGo(std::move(value));
    loops_.End(loop);
    for (int32_t exit : dead_exits) {
      outputs_.clear();
      outputs_.resize(1);
      Deliver(f_.nodes[size_t(exit)], true, parent, it);
    }
    loop = parent;
    if (it->ops > 0) return;
  }
}

// ---- The end ----

// Checks that all fetches have values and that all targets have run or are dead.
Status TokenFlow::Check() {
  for (size_t i = 0; i < f_.nodes.size(); ++i) {
    const FramePlan::Node& n = f_.nodes[i];
    bool there = !n.watched || n.frame != 0 || root_->At(0)->counts[size_t(n.index)].pending == kWasReady;
    for (int32_t v : n.fetched) there = there && (v < 0 || s_->slot(v).view.tensor);
    if (!there) return NotThere(p_.nodes[i], std::find(dead_fetches_.begin(), dead_fetches_.end(), int32_t(i)) != dead_fetches_.end());
  }
  return Status();
}

Status TokenFlow::NotThere(const PlanNode& n, bool dead) {
  const Node& node = *n.run.node;
  if (dead) {
    return OfNode(node,
                  InvalidArgument(node.title(), ": it is fetched, but dead: the branch that it comes from was not taken; fetch what a ",
                                  "Merge makes of both branches"));
  }
  ListWaiting(*root_);
  return OfNode(node, InvalidArgument(node.title(), ": it was never reached, and nothing is under way any more; ", stuck_,
                                      stuck_ == 1 ? " node waits" : " nodes wait", " for inputs that do not come",
                                      stuck_names_.empty() ? "" : ": ", stuck_names_));
}

void TokenFlow::ListWaiting(const LoopRun& loop) {
  for (int64_t k = loop.first; k <= loop.last; ++k) {
    const Iteration* it = loop.At(k);
    if (!it) continue;
    if (it->waiting > 0) NoteWaiting(loop, *it);
    for (const LoopRun* inner : it->inner) ListWaiting(*inner);
  }
}

// Counts the nodes that received some inputs but not all, and lists some names.
void TokenFlow::NoteWaiting(const LoopRun& loop, const Iteration& it) {
  constexpr int32_t kShown = 4;
  const FramePlan::Frame& frame = f_.frames[size_t(loop.frame)];
  stuck_ += it.waiting;
  for (size_t i = 0; i < frame.nodes.size() && named_ < kShown; ++i) {
    if (it.counts[i].pending <= 0 || it.counts[i].pending == frame.counts[i].pending) continue;
    ++named_;
    const std::string where = loops_.Where(loop, it);
    stuck_names_ += StrCat(stuck_names_.empty() ? "'" : ", '", Shown(p_.nodes[size_t(frame.nodes[i])].run.node->name()), "'",
                           where.empty() ? "" : StrCat(" in ", where));
  }
}

}  // namespace thalweg
