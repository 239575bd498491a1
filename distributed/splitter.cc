#include "distributed/splitter.h"

#include "distributed/piece_nodes.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kSmallConst = 4096;     // most bytes of a constant that is copied to its readers instead of being sent
constexpr int64_t kSmallValue = 64 << 10;  // most bytes of a value that is pushed: as many go with a message's head

// Decides by the shape in the graph. Strings may have any length.
bool IsSmall(const Edge& e) {
  const Shape& shape = e.node->shape(e.port);
  const uint32_t type = BaseType(e.node->out_type(e.port));
  if (!shape.known() || type == TW_STRING) return false;
  const auto bytes = CountBytes(shape.dims().data(), shape.rank(), type);
  return bytes.ok() && *bytes <= kSmallValue;
}

}  // namespace

bool IsSmallConst(const Node& n) {
  return n.op().role == "const" && n.controls().empty() && n.value(0) && n.value(0).bytes() <= kSmallConst;
}

bool IsInvariant(const Node& n) {
  if (FlowOf(n) != Flow::kEnter || !n.controls().empty() || !n.FindAttr("is_constant")->bools()[0]) return false;
  const uint32_t type = n.out_type(0);
  return type != TW_RESOURCE && type != TW_VARIANT && !IsRef(type);
}

StatusOr<Parts> Splitter::Run() {
  RETURN_IF_ERROR(needed_.Collect([this](const Node* n) { return p_.WasTold(n); }));
  p_.placement_->Update([this](const Edge& e) { return p_.forms_.Real(e); }, [this](const Node& n) { return p_.forms_.AreOthersThan(n); });
  for (const Node* n : needed_.all()) {
    ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
    RETURN_IF_ERROR(AddNode(*n, task));
  }
  for (const Edge& e : spec_.fetches) RETURN_IF_ERROR(AddFetch(e));
  for (const Node* target : spec_.targets) {
    if (needed_.IsGiven(target)) continue;
    const Node* n = p_.forms_.Real(target);
    ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
    AddTarget(task, n->name());
  }
  RETURN_IF_ERROR(Emit());
  return Finish();
}

Splitter::Work& Splitter::WorkOf(int32_t task) {
  Work& w = work_[task];
  w.part.task = task;
  return w;
}

// ---- Names ----

std::string Splitter::TaskText(int32_t task) const {
  const TaskId& id = p_.cluster_->tasks()[size_t(task)].id;
  return StrCat(id.job, "_", id.index);
}

std::string Splitter::Away(const Edge& e, int32_t task) {
  if (IsSmallConst(*e.node) || IsEnteredThere(*e.node, task)) return p_.NameFor(StrCat(e.node->name(), "/_at/", TaskText(task)));
  return p_.NameFor(StrCat(ValueKey(e, task), "/_recv"));
}

const std::string& Splitter::LoopName(int32_t frame, int32_t task, std::string_view what) {
  return p_.NameFor(StrCat(flow_.frame(frame).enter->name(), "/_round/", TaskText(task), "/", what));
}

// ---- What runs ----

Status Splitter::AddNode(const Node& n, int32_t task) {
  Work& w = WorkOf(task);
  w.wanted.insert(n.id());
  RETURN_IF_ERROR(AddLoop(n, task));
  for (const Edge& e : n.inputs()) RETURN_IF_ERROR(AddInput(e, task));
  for (const Node* c : n.controls()) {
    const Node* real = p_.forms_.Real(c);
    RETURN_IF_ERROR(needed_.IsOver(c) ? AddOver(real, task) : AddControl(real, task));
  }
  if (const Node* by = p_.graph_->ExtendedBy(&n)) {
    if (needed_.Has(by)) w.part.piece.extended.emplace_back(n.name(), by->name());
  }
  return Status();
}

Status Splitter::AddInput(const Edge& input, int32_t task) {
  if (const auto feed = needed_.Feed(input)) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*input.node));
    AddFeed(task, from == task ? input.text() : Away(input, task), *feed);
    return Status();
  }
  const Edge e = p_.forms_.Real(input);
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
  if (from == task || IsSmallConst(*e.node)) return Status();
  return IsEnteredThere(*e.node, task) ? AddInput(e.node->inputs()[0], task) : Transfer(e, from, task);
}

// Plans of the task wait neither for the node nor for a message that it has ended.
Status Splitter::AddOver(const Node* c, int32_t task) {
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
  if (from != task && IsSmallConst(*c)) return Status();
  Work& w = WorkOf(task);
  const std::string name = from == task ? c->name() : p_.NameFor(StrCat(ControlKey(c, task), "/_recv"));
  if (w.over.insert(name).second) w.part.piece.over.push_back(name);
  return Status();
}

Status Splitter::AddControl(const Node* c, int32_t task) {
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
  if (needed_.IsGiven(c)) AddFeed(from, c->name(), *needed_.Feed({c, 0}));
  if (from == task || IsSmallConst(*c)) return Status();
  ASSIGN_OR_RETURN(const std::string done, DoneOf(c, from));
  if (const int32_t frame = flow_.FrameOf(*c)) RETURN_IF_ERROR(AddLoop(frame, task));
  return Send(done, TW_FLOAT, true, ControlKey(c, task), from, task);
}

// For a node of a loop: if the task does not have the loop's condition, it needs a loop variable
// that tells it how often to go round.
Status Splitter::AddLoop(const Node& n, int32_t task) {
  const int32_t frame = flow_.RunsIn(n);
  const Node* cond = frame ? flow_.frame(frame).cond : nullptr;
  if (!cond) return Status();
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*cond));
  return from == task ? Status() : AddLoop(frame, task);
}

Status Splitter::AddLoop(int32_t frame, int32_t task) {
  if (!loops_.emplace(frame, task).second) return Status();
  const FlowMap::Frame& f = flow_.frame(frame);
  if (!f.cond || !needed_.Has(f.cond)) {
    return OfNode(*f.enter, Unimplemented(f.enter->title(), ": its loop, frame '", Shown(f.name), "', spans several tasks, but no ",
                                          "LoopCond says how long it goes on; place all of it on one"));
  }
  if (f.parent) RETURN_IF_ERROR(AddLoop(f.parent, task));
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*f.cond));
  return from == task ? Status() : Transfer({f.cond, 0}, from, task);
}

Status Splitter::AddFetch(const Edge& fetch) {
  if (const auto feed = needed_.Feed(fetch)) {
    fetches_.emplace_back(-1, *feed);
    return Status();
  }
  const Edge e = p_.forms_.Real(fetch);
  ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*e.node));
  Work& w = WorkOf(task);
  auto [at, is_new] = w.fetch_at.emplace(e.text(), int32_t(w.part.piece.fetches.size()));
  if (is_new) w.part.piece.fetches.push_back(e.text());
  fetches_.emplace_back(task, at->second);
  return Status();
}

void Splitter::AddFeed(int32_t task, const std::string& text, int32_t feed) {
  Work& w = WorkOf(task);
  if (!w.feed_at.emplace(text, feed).second) return;
  w.part.piece.feeds.push_back(text);
  w.part.feeds.push_back(feed);
  const Edge& e = spec_.feeds[size_t(feed)];
  if (text == e.text()) {
    w.wanted.insert(e.node->id());
  } else {
    fed_away_.emplace_back(e, task);
  }
}

void Splitter::AddTarget(int32_t task, const std::string& name) {
  Work& w = WorkOf(task);
  if (w.targets.insert(name).second) w.part.piece.targets.push_back(name);
}

// ---- What crosses ----

// Returns true for an Enter of another task that this task has a copy of: then an invariant is sent
// once, outside the loop.
bool Splitter::IsEnteredThere(const Node& n, int32_t task) const {
  if (!IsInvariant(n)) return false;
  const Node& from = *p_.forms_.Real(n.inputs()[0]).node;
  const auto at = p_.placement_->TaskOf(from);
  return at.ok() && (*at != task || IsSmallConst(from)) && !needed_.Feed(n.inputs()[0]);
}

// Sends a value that another task has.
Status Splitter::Transfer(const Edge& e, int32_t from, int32_t task) {
  const uint32_t type = BaseType(e.node->out_type(e.port));
  if (type == TW_RESOURCE || type == TW_VARIANT) {
    return OfNode(*e.node, Unimplemented(e.node->title(), ": its ", DTypeName(type), " cannot leave ", p_.TaskName(from), " for ",
                                         p_.TaskName(task), "; place what takes it there too"));
  }
  WorkOf(from).wanted.insert(e.node->id());
  if (const int32_t frame = flow_.FrameOf(*e.node)) RETURN_IF_ERROR(AddLoop(frame, task));
  return Send(e.text(), type, IsSmall(e), ValueKey(e, task), from, task);
}

// Returns a value, on the node's own task, that is available when the node has ended.
StatusOr<std::string> Splitter::DoneOf(const Node* c, int32_t from) {
  Work& w = WorkOf(from);
  w.wanted.insert(c->id());
  ASSIGN_OR_RETURN(PieceNode n, NothingNode(p_.NameFor(StrCat(c->name(), "/_done")), RuntimeOf(*p_.graph_).registry()));
  n.controls = {c->name()};
  std::string name = n.name;
  AddMade(&w, std::move(n), &w.after);
  return name;
}

Status Splitter::Send(const std::string& value, uint32_t type, bool small, const std::string& key, int32_t from, int32_t task) {
  const std::string& name = p_.NameFor(StrCat(key, "/_send"));
  if (!sent_.insert(key).second) return Status();
  Work& w = WorkOf(from);
  ASSIGN_OR_RETURN(PieceNode n, SendNode(name, value, {key, type, p_.TaskName(from), p_.TaskName(task)}));
  AddMade(&w, std::move(n), &w.after);
  AddTarget(from, name);
  WorkOf(from).part.goes.push_back({key, task, small});
  WorkOf(task).part.comes.push_back({key, from, small});
  return Status();
}

// Returns false if the task has the node already.
bool Splitter::AddMade(Work* w, PieceNode n, std::vector<PieceNode>* list) const {
  auto known = p_.known_.find(w->part.task);
  if (known != p_.known_.end() && known->second.made.count(n.name)) return false;
  if (!w->made.insert(n.name).second) return false;
  w->part.made.push_back(n.name);
  list->push_back(std::move(n));
  return true;
}

}  // namespace thalweg::distributed
