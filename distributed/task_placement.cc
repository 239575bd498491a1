#include "distributed/task_placement.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"

namespace thalweg::distributed {
namespace {

// Values that cannot leave the task that made them.
bool Stays(uint32_t type) { return type == TW_RESOURCE || type == TW_VARIANT || IsRef(type); }

bool Unopened(const Node& n, int32_t i) {
  const auto& at = n.in_at();
  const auto argument = std::upper_bound(at.begin(), at.end(), uint32_t(i)) - at.begin() - 1;
  return n.op().unopened[size_t(argument)] != 0;
}

// Returns true for an Enter that passes its value only to the first iteration: its readers are part
// of the loop's variable.
bool ComesOnce(const Node& n) { return FlowOf(n) == Flow::kEnter && !n.FindAttr("is_constant")->bools()[0]; }

// Returns true for nodes that compute nothing: their device wishes do not count, and they go where
// their loop's variable is.
bool Follows(const Node& n) {
  const Flow flow = FlowOf(n);
  return flow == Flow::kExit || flow == Flow::kNextIteration;
}

}  // namespace

int32_t TaskPlacement::Find(int32_t id) const {
  auto& p = parent_;
  while (p[size_t(id)] != id) id = p[size_t(id)] = p[size_t(p[size_t(id)])];
  return id;
}

// The first node of a group names it.
void TaskPlacement::Join(const Node* a, const Node* b) {
  const int32_t x = Find(a->id()), y = Find(b->id());
  parent_[size_t(std::max(x, y))] = std::min(x, y);
}

void TaskPlacement::Update(const RealValue& real, const Gone& gone) {
  const auto size = size_t(graph_->size());
  if (parent_.size() == size) return;
  parent_.resize(size);
  for (size_t i = 0; i < size; ++i) parent_[i] = int32_t(i);
  flow_.Update();
  JoinAll(real, gone);
  Choose();
}

void TaskPlacement::JoinAll(const RealValue& real, const Gone& gone) {
  const auto size = int32_t(parent_.size());
  auto there = [size](const Node* n) { return n && n->id() < size; };
  for (int32_t id = 0; id < size; ++id) {
    const Node& n = *graph_->node(id);
    if (!gone(n)) JoinInputs(n, real);
    JoinLoop(n);
    for (const std::string& other : n.colocate_with()) {
      if (const Node* with = graph_->Find(other); there(with)) Join(with, &n);
    }
    if (const Node* by = graph_->ExtendedBy(&n); there(by)) Join(by, &n);
    for (int32_t i = 0; i < n.n_in(); ++i) {
      if (const Node* next = n.back(i); there(next)) Join(next, &n);
    }
  }
}

void TaskPlacement::JoinInputs(const Node& n, const RealValue& real) {
  for (int32_t i = 0; i < n.n_in(); ++i) {
    const uint32_t type = n.inputs()[size_t(i)].node->out_type(n.inputs()[size_t(i)].port);
    // The value of a variable may leave the task, a reference to it may not.
    const bool stays = IsRef(type) ? IsRef(n.in_type(i)) : Stays(type) && !(type == TW_RESOURCE && Unopened(n, i));
    if (stays) Join(real(n.inputs()[size_t(i)]).node, &n);
  }
}

void TaskPlacement::JoinLoop(const Node& n) {
  for (const Edge& e : n.inputs()) {
    if (ComesOnce(*e.node) || FlowOf(n) == Flow::kExit) Join(e.node, &n);
  }
}

// For a group in a loop or branch, returns the group of the input of its first node; -1 for other
// groups. The returned group comes before this one.
int32_t TaskPlacement::Followed(int32_t group) const {
  const Node& n = *graph_->node(group);
  if (n.n_out() == 0 ? flow_.FrameOf(n) == 0 : !flow_.MayBeDead({&n, 0})) return -1;
  if (!n.inputs().empty()) return Find(n.inputs()[0].node->id());
  return n.controls().empty() ? -1 : Find(n.controls()[0]->id());
}

void TaskPlacement::Choose() {
  struct Wishes {
    DeviceSpec spec;
    const Node* asked = nullptr;
    Status wrong;
    int32_t settled = -1;
  };
  std::map<int32_t, Wishes> wishes;
  for (int32_t id = 0; id < int32_t(parent_.size()); ++id) {
    Wishes& w = wishes[Find(id)];
    const Node& n = *graph_->node(id);
    Wish(n, &w.spec, &w.asked, &w.wrong);
    if (auto it = settled_.find(id); it != settled_.end()) {
      if (w.wrong.ok() && w.settled >= 0 && w.settled != it->second) {
        w.wrong = FailedPrecondition(n.title(), ": must share a task with a node that has run on another one");
      }
      w.settled = it->second;
    }
  }
  groups_.clear();
  for (auto& [id, w] : wishes) {
    Group& g = groups_[id];
    const Node& n = w.asked ? *w.asked : *graph_->node(id);
    g.wrong = w.wrong;
    if (!g.wrong.ok()) continue;
    const bool open = w.spec.job.empty() && w.spec.task < 0;
    const int32_t followed = open && w.settled < 0 ? Followed(id) : -1;
    auto task = open && w.settled >= 0 ? StatusOr<int32_t>(w.settled)
                : followed >= 0        ? TaskOf(*graph_->node(followed))
                                       : Pick(open ? wish_ : w.spec, n);
    if (task.ok() && w.settled >= 0 && *task != w.settled) {
      task = OfNode(n, FailedPrecondition(n.title(), ": asks for ", cluster_->tasks()[size_t(*task)].id.text(),
                                          ", but what it works on is on ", cluster_->tasks()[size_t(w.settled)].id.text(), " already"));
    }
    g.wrong = task.status();
    if (task.ok()) g.task = *task;
  }
}

// Merges the task that a node asks for into the wishes of its group.
void TaskPlacement::Wish(const Node& n, DeviceSpec* spec, const Node** asked, Status* wrong) const {
  if (n.device().empty() || Follows(n) || !wrong->ok()) return;
  auto own = ParseDeviceSpec(n.device());
  if (!own.ok()) {
    *wrong = OfNode(n, Prefix(own.status(), n.title() + ":"));
    return;
  }
  DeviceSpec task;
  task.job = own->job;
  task.task = own->task;
  if (task.job.empty() && task.task < 0) return;
  auto both = MergeDeviceSpecs(*spec, task);
  if (!both.ok()) {
    *wrong =
        OfNode(n, InvalidArgument(n.title(), ": '", Shown(task.text()), "' contradicts '", Shown(spec->text()), "' of ", (*asked)->title(),
                                  ", with which it must share a task: they work on the same state, are colocated, or ",
                                  "belong to one variable of a loop"));
    return;
  }
  *spec = *std::move(both);
  if (!*asked) *asked = &n;
}

StatusOr<int32_t> TaskPlacement::Pick(const DeviceSpec& spec, const Node& n) const {
  const auto& tasks = cluster_->tasks();
  auto fits = [&](const ClusterSpec::Task& t) {
    return (spec.job.empty() || spec.job == t.id.job) && (spec.task < 0 || spec.task == t.id.index);
  };
  if (fits(tasks[size_t(fallback_)])) return fallback_;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (fits(tasks[i])) return int32_t(i);
  }
  DeviceSpec task;
  task.job = spec.job;
  task.task = spec.task;
  return OfNode(n, NotFound(n.title(), ": the cluster has no task '", Shown(task.text()), "'; its tasks: ", cluster_->names()));
}

StatusOr<int32_t> TaskPlacement::TaskOf(const Node& node) const {
  const Group& g = groups_.at(Find(node.id()));
  if (!g.wrong.ok()) return g.wrong;
  return g.task;
}

void TaskPlacement::Settle(const Node& node) {
  const Group& g = groups_.at(Find(node.id()));
  if (g.task >= 0) settled_.emplace(node.id(), g.task);
}

}  // namespace thalweg::distributed
