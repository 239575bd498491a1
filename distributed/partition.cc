#include "distributed/partition.h"

#include <algorithm>
#include <optional>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/flow.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kSmallConst = 4096;     // bytes up to which a constant is made where it is needed rather than sent
constexpr int64_t kSmallValue = 64 << 10;  // bytes up to which a value is sent unasked: as many go with a message's head

// The smallest value there is, for those who only wait.
StatusOr<std::string> Nothing() {
  const int64_t none = 0;
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_FLOAT, &none, 1));
  return SerializeAttr(AttrValue::OfTensor(std::move(t)));
}

bool IsSmallConst(const Node& n) {
  return n.op().role == "const" && n.controls().empty() && n.value(0) && n.value(0).bytes() <= kSmallConst;
}

}  // namespace

// It hands the same value to every iteration.
bool IsInvariant(const Node& n) {
  if (FlowOf(n) != Flow::kEnter || !n.controls().empty() || !n.FindAttr("is_constant")->bools()[0]) return false;
  const uint32_t type = n.out_type(0);
  return type != TW_RESOURCE && type != TW_VARIANT && !IsRef(type);
}

// One signature's way through a Partition.
class Splitter {
 public:
  Splitter(Partition* partition, const CallableSpec& spec) : p_(*partition), flow_(partition->placement_->flow()), spec_(spec) {}

  StatusOr<Parts> Run() {
    for (size_t i = 0; i < spec_.feeds.size(); ++i) fed_.emplace(Key(spec_.feeds[i]), int32_t(i));
    RETURN_IF_ERROR(Settle());
    p_.placement_->Update([this](const Edge& e) { return p_.Real(e); }, [this](const Node& n) { return p_.lowered_.Takes(n); });
    for (const Node* n : needed_) {
      ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
      RETURN_IF_ERROR(AddNode(*n, task));
    }
    for (const Edge& e : spec_.fetches) RETURN_IF_ERROR(AddFetch(e));
    for (const Node* target : spec_.targets) {
      if (Given(target)) continue;
      const Node* n = p_.Real(target);
      ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
      AddTarget(task, n->name());
    }
    RETURN_IF_ERROR(Emit());
    return Finish();
  }

 private:
  using EdgeKey = std::pair<const Node*, int32_t>;
  static EdgeKey Key(const Edge& e) { return {e.node, e.port}; }
  // What is to become a part.
  struct Work {
    Part part;
    std::set<int32_t> wanted;              // nodes of the graph that must be there
    std::vector<PieceNode> before, after;  // nodes of ours: what nodes of the graph read, and what reads them
    std::map<std::string, int32_t> feed_at, fetch_at;
    std::set<std::string> targets, made, over;
  };

  std::optional<int32_t> Feed(const Edge& e) const {
    auto it = fed_.find(Key(e));
    return it == fed_.end() ? std::nullopt : std::optional(it->second);
  }
  // A placeholder that is fed runs nothing, so nobody has to wait for it.
  bool Given(const Node* n) const { return (n->op().role == "placeholder" && Feed({n, 0})) || Over(n); }
  // An earlier part of the run has run it: what is needed of it is fed.
  bool Over(const Node* n) const {
    return std::binary_search(spec_.over.begin(), spec_.over.end(), n, [](auto* a, auto* b) { return a->id() < b->id(); });
  }

  // As planning does it in one process: backwards from what is wanted, stopping at feeds.
  void CollectNeeded() {
    std::vector<const Node*> todo;
    std::set<const Node*> seen;
    needed_.clear();
    auto need = [&](const Node* n) {
      if (!Given(n) && seen.insert(n).second) todo.push_back(n);
    };
    for (const Edge& e : spec_.fetches) {
      if (!Feed(e)) need(p_.Real(e).node);
    }
    for (const Node* n : spec_.targets) need(p_.Real(n));
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      needed_.push_back(n);
      for (const Edge& e : n->inputs()) {
        if (!Feed(e)) need(p_.Real(e).node);
      }
      for (const Node* c : n->controls()) need(p_.Real(c));
      for (int32_t i = 0; i < n->n_in(); ++i) {
        if (const Node* next = n->back(i)) need(next);
      }
    }
    std::sort(needed_.begin(), needed_.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  }

  // What is needed once values are read where they are made: in the end nothing new is decided.
  Status Settle() {
    for (;;) {
      CollectNeeded();
      bool changed = false;
      for (const Node* n : needed_) {
        if (p_.graph_->has_replaced()) changed = TakeForms(*n) || changed;
        if (!CallsFunctions(n->op())) continue;
        ASSIGN_OR_RETURN(const bool lowered, LowerOne(n));
        changed = changed || lowered;
      }
      if (!changed) return Status();
    }
  }

  // Values that are made another way by nodes that are needed anyway come from those.
  bool TakeForms(const Node& n) {
    bool changed = false;
    for (int32_t o = 0; o < n.n_out(); ++o) {
      const Edge by = Feed({&n, o}) ? Edge() : p_.graph_->ReplacedBy({&n, o});
      bool runs = false;
      for (const Node* form = by.node; form && !runs; form = p_.graph_->ExtendedBy(form)) runs = IsNeeded(form);
      if (runs && !p_.WasTold(&n)) changed = p_.replaced_.emplace(std::pair(&n, o), by).second || changed;
    }
    return changed;
  }

  StatusOr<bool> LowerOne(const Node* n) {
    const Node* last = n;
    for (const Node* by = p_.graph_->ExtendedBy(n); by; by = p_.graph_->ExtendedBy(by)) {
      if (IsNeeded(by)) last = by;
    }
    if (auto it = p_.runs_.find(n); it != p_.runs_.end()) {
      if (it->second != n || last == n || !n->op().stateful) return false;
      return OfNode(*n, Unimplemented(n->title(), ": it spans tasks, has run without what its gradient needs, and must not run twice in a ",
                                      "step; run the step with the gradient first"));
    }
    RETURN_IF_ERROR(p_.lowered_.Lower(*last).status());
    return p_.lowered_.Has(last) && p_.runs_.emplace(n, last).second;
  }

  Work& WorkOf(int32_t task) {
    Work& w = work_[task];
    w.part.task = task;
    return w;
  }

  std::string TaskText(int32_t task) const {
    const TaskId& id = p_.cluster_->tasks()[size_t(task)].id;
    return StrCat(id.job, "_", id.index);
  }

  // ---- What runs ----

  Status AddNode(const Node& n, int32_t task) {
    Work& w = WorkOf(task);
    w.wanted.insert(n.id());
    RETURN_IF_ERROR(AddLoop(n, task));
    for (const Edge& e : n.inputs()) RETURN_IF_ERROR(AddInput(e, task));
    for (const Node* c : n.controls()) RETURN_IF_ERROR(Over(c) ? AddOver(p_.Real(c), task) : AddControl(p_.Real(c), task));
    if (const Node* by = p_.graph_->ExtendedBy(&n)) {
      if (IsNeeded(by)) w.part.piece.extended.emplace_back(n.name(), by->name());
    }
    return Status();
  }

  Status AddInput(const Edge& input, int32_t task) {
    if (const auto feed = Feed(input)) {
      ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*input.node));
      AddFeed(task, from == task ? input.text() : Away(input, task), *feed);
      return Status();
    }
    const Edge e = p_.Real(input);
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    if (from == task || IsSmallConst(*e.node)) return Status();
    return IsEnteredThere(*e.node, task) ? AddInput(e.node->inputs()[0], task) : Transfer(e, from, task);
  }

  // The task's plans do not wait for it, nor for the word that it is over.
  Status AddOver(const Node* c, int32_t task) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
    if (from != task && IsSmallConst(*c)) return Status();
    Work& w = WorkOf(task);
    const std::string name = from == task ? c->name() : p_.NameFor(StrCat(ControlKey(c, task), "/_recv"));
    if (w.over.insert(name).second) w.part.piece.over.push_back(name);
    return Status();
  }

  Status AddControl(const Node* c, int32_t task) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
    if (Given(c)) AddFeed(from, c->name(), *Feed({c, 0}));
    if (from == task || IsSmallConst(*c)) return Status();
    ASSIGN_OR_RETURN(const std::string done, DoneOf(c, from));
    if (const int32_t frame = flow_.FrameOf(*c)) RETURN_IF_ERROR(AddLoop(frame, task));
    return Send(done, TW_FLOAT, true, ControlKey(c, task), from, task);
  }

  // Another task has the value.
  Status Transfer(const Edge& e, int32_t from, int32_t task) {
    const uint32_t type = BaseType(e.node->out_type(e.port));
    if (type == TW_RESOURCE || type == TW_VARIANT) {
      return OfNode(
          *e.node, Unimplemented(e.node->title(), ": its ", DTypeName(type), " cannot leave ", p_.cluster_->tasks()[size_t(from)].id.text(),
                                 " for ", p_.cluster_->tasks()[size_t(task)].id.text(), "; place what takes it there too"));
    }
    WorkOf(from).wanted.insert(e.node->id());
    if (const int32_t frame = flow_.FrameOf(*e.node)) RETURN_IF_ERROR(AddLoop(frame, task));
    return Send(e.text(), type, IsSmall(e), ValueKey(e, task), from, task);
  }

  // ---- Loops that run here, and whose condition is elsewhere ----

  // An Enter of another task, which this one has a copy of: so what is the same in all iterations comes once, from outside of the loop.
  bool IsEnteredThere(const Node& n, int32_t task) const {
    if (!IsInvariant(n)) return false;
    const Node& from = *p_.Real(n.inputs()[0]).node;
    const auto at = p_.placement_->TaskOf(from);
    return at.ok() && (*at != task || IsSmallConst(from)) && !Feed(n.inputs()[0]);
  }

  bool IsNeeded(const Node* n) const {
    return std::binary_search(needed_.begin(), needed_.end(), n, [](auto* a, auto* b) { return a->id() < b->id(); });
  }

  // A node of a loop: where the task does not have the loop's condition, something has to tell it how often to go round.
  Status AddLoop(const Node& n, int32_t task) {
    const int32_t frame = flow_.RunsIn(n);
    const Node* cond = frame ? flow_.frame(frame).cond : nullptr;
    if (!cond) return Status();
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*cond));
    return from == task ? Status() : AddLoop(frame, task);
  }

  Status AddLoop(int32_t frame, int32_t task) {
    if (!loops_.emplace(frame, task).second) return Status();
    const FlowMap::Frame& f = flow_.frame(frame);
    if (!f.cond || !IsNeeded(f.cond)) {
      return OfNode(*f.enter, Unimplemented(f.enter->title(), ": its loop, frame '", Shown(f.name), "', spans several tasks, but no ",
                                            "LoopCond says how long it goes on; place all of it on one"));
    }
    if (f.parent) RETURN_IF_ERROR(AddLoop(f.parent, task));
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*f.cond));
    return from == task ? Status() : Transfer({f.cond, 0}, from, task);
  }

  // Of our variable of a loop: "enter", "merge", ...
  const std::string& LoopName(int32_t frame, int32_t task, std::string_view what) {
    return p_.NameFor(StrCat(flow_.frame(frame).enter->name(), "/_round/", TaskText(task), "/", what));
  }

  StatusOr<PieceNode> LoopNode(int32_t frame, int32_t task, std::string_view what, std::string_view role) {
    PieceNode n;
    n.name = LoopName(frame, task, what);
    ASSIGN_OR_RETURN(const OpSchema* op, p_.graph_->runtime().registry().FindRole(role));
    n.op = op->name;
    if (role == "const") {
      RETURN_IF_ERROR(SetNothing(&n));
    } else {
      ASSIGN_OR_RETURN(n.attrs["T"], SerializeAttr(AttrValue::Type(TW_FLOAT)));
    }
    return n;
  }

  // What is there before anything is received: a value that comes in, and where it goes round. What is around the loop is first.
  Status BeginLoop(int32_t frame, int32_t task, Work* w) {
    const FlowMap::Frame& f = flow_.frame(frame);
    if (f.parent) RETURN_IF_ERROR(BeginLoop(f.parent, task, w));
    ASSIGN_OR_RETURN(PieceNode none, LoopNode(frame, task, "none", "const"));
    if (f.parent) none.controls = {LoopName(f.parent, task, "merge")};
    ASSIGN_OR_RETURN(PieceNode enter, LoopNode(frame, task, "enter", "enter"));
    enter.inputs = {none.name};
    ASSIGN_OR_RETURN(enter.attrs["frame_name"], SerializeAttr(AttrValue::String(f.name)));
    ASSIGN_OR_RETURN(enter.attrs["parallel_iterations"], SerializeAttr(*f.enter->FindAttr("parallel_iterations")));
    ASSIGN_OR_RETURN(PieceNode merge, LoopNode(frame, task, "merge", "merge"));
    merge.inputs = {enter.name, enter.name};
    for (PieceNode* n : {&none, &enter, &merge}) AddMade(w, std::move(*n), &w->before);
    return Status();
  }

  Status EndLoop(int32_t frame, int32_t task, Work* w) {
    const Edge cond = {flow_.frame(frame).cond, 0};
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*cond.node));
    if (from != task) RETURN_IF_ERROR(NeedAway(cond, task, w));
    ASSIGN_OR_RETURN(PieceNode choose, LoopNode(frame, task, "switch", "switch"));
    choose.inputs = {LoopName(frame, task, "merge"), from == task ? cond.text() : Away(cond, task)};
    ASSIGN_OR_RETURN(PieceNode next, LoopNode(frame, task, "next", "next_iteration"));
    next.inputs = {StrCat(choose.name, ":1")};
    const std::string name = next.name;
    AddMade(w, std::move(choose), &w->after);
    if (AddMade(w, std::move(next), &w->after)) w->part.piece.loops.push_back({LoopName(frame, task, "merge"), name, 1});
    return Status();
  }

  // By what the graph says of its shape. Strings may be of any length.
  static bool IsSmall(const Edge& e) {
    const Shape& shape = e.node->shape(e.port);
    const uint32_t type = BaseType(e.node->out_type(e.port));
    if (!shape.known() || type == TW_STRING) return false;
    const auto bytes = CountBytes(shape.dims().data(), shape.rank(), type);
    return bytes.ok() && *bytes <= kSmallValue;
  }

  Status Send(const std::string& value, uint32_t type, bool small, const std::string& key, int32_t from, int32_t task) {
    const std::string& name = p_.NameFor(StrCat(key, "/_send"));
    if (!sent_.insert(key).second) return Status();
    Work& w = WorkOf(from);
    PieceNode n;
    n.name = name;
    n.op = "_Send";
    n.inputs = {value};
    RETURN_IF_ERROR(SetMeeting(key, "T", type, from, task, &n));
    AddMade(&w, std::move(n), &w.after);
    AddTarget(from, name);
    WorkOf(from).part.goes.push_back({key, task, small});
    WorkOf(task).part.comes.push_back({key, from, small});
    return Status();
  }

  Status SetMeeting(const std::string& key, const std::string& type_attr, uint32_t type, int32_t from, int32_t to, PieceNode* n) const {
    const auto& tasks = p_.cluster_->tasks();
    ASSIGN_OR_RETURN(n->attrs[type_attr], SerializeAttr(AttrValue::Type(type)));
    ASSIGN_OR_RETURN(n->attrs["tensor_name"], SerializeAttr(AttrValue::String(key)));
    ASSIGN_OR_RETURN(n->attrs["send_device"], SerializeAttr(AttrValue::String(tasks[size_t(from)].id.text())));
    ASSIGN_OR_RETURN(n->attrs["recv_device"], SerializeAttr(AttrValue::String(tasks[size_t(to)].id.text())));
    ASSIGN_OR_RETURN(n->attrs["send_device_incarnation"], SerializeAttr(AttrValue::Int(0)));
    return Status();
  }

  std::string ValueKey(const Edge& e, int32_t task) const { return StrCat(e.node->name(), "/", e.port, "/", TaskText(task)); }
  std::string ControlKey(const Node* c, int32_t task) const { return StrCat(c->name(), "/done/", TaskText(task)); }
  // The name under which a task has a value that another makes.
  std::string Away(const Edge& e, int32_t task) {
    if (IsSmallConst(*e.node) || IsEnteredThere(*e.node, task)) return p_.NameFor(StrCat(e.node->name(), "/_at/", TaskText(task)));
    return p_.NameFor(StrCat(ValueKey(e, task), "/_recv"));
  }

  // A value that is there when the node is over; on its own task.
  StatusOr<std::string> DoneOf(const Node* c, int32_t from) {
    Work& w = WorkOf(from);
    w.wanted.insert(c->id());
    PieceNode n;
    n.name = p_.NameFor(StrCat(c->name(), "/_done"));
    ASSIGN_OR_RETURN(const OpSchema* op, p_.graph_->runtime().registry().FindRole("const"));
    n.op = op->name;
    n.controls = {c->name()};
    RETURN_IF_ERROR(SetNothing(&n));
    const std::string name = n.name;
    AddMade(&w, std::move(n), &w.after);
    return name;
  }

  static Status SetNothing(PieceNode* n) {
    ASSIGN_OR_RETURN(n->attrs["dtype"], SerializeAttr(AttrValue::Type(TW_FLOAT)));
    ASSIGN_OR_RETURN(n->attrs["value"], Nothing());
    return Status();
  }

  // False: the task has it already.
  bool AddMade(Work* w, PieceNode n, std::vector<PieceNode>* list) const {
    auto known = p_.known_.find(w->part.task);
    if (known != p_.known_.end() && known->second.made.count(n.name)) return false;
    if (!w->made.insert(n.name).second) return false;
    w->part.made.push_back(n.name);
    list->push_back(std::move(n));
    return true;
  }

  void AddFeed(int32_t task, const std::string& text, int32_t feed) {
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

  void AddTarget(int32_t task, const std::string& name) {
    Work& w = WorkOf(task);
    if (w.targets.insert(name).second) w.part.piece.targets.push_back(name);
  }

  Status AddFetch(const Edge& fetch) {
    if (const auto feed = Feed(fetch)) {
      fetches_.emplace_back(-1, *feed);
      return Status();
    }
    const Edge e = p_.Real(fetch);
    ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*e.node));
    Work& w = WorkOf(task);
    auto [at, is_new] = w.fetch_at.emplace(e.text(), int32_t(w.part.piece.fetches.size()));
    if (is_new) w.part.piece.fetches.push_back(e.text());
    fetches_.emplace_back(task, at->second);
    return Status();
  }

  // ---- What has to be there ----

  Status Emit() {
    for (const auto& [frame, task] : loops_) RETURN_IF_ERROR(BeginLoop(frame, task, &WorkOf(task)));
    for (auto& [task, w] : work_) RETURN_IF_ERROR(EmitNodes(task, &w));
    for (const auto& [frame, task] : loops_) RETURN_IF_ERROR(EndLoop(frame, task, &WorkOf(task)));
    for (const auto& [e, task] : fed_away_) RETURN_IF_ERROR(NeedAway(e, task, &WorkOf(task)));
    for (auto& [task, w] : work_) {
      RETURN_IF_ERROR(EmitLibrary(task, &w));
      auto& nodes = w.part.piece.nodes;
      nodes.insert(nodes.begin(), std::make_move_iterator(w.before.begin()), std::make_move_iterator(w.before.end()));
      nodes.insert(nodes.end(), std::make_move_iterator(w.after.begin()), std::make_move_iterator(w.after.end()));
    }
    return Status();
  }

  // The value as a node reads it: what is fed is fed to the node that would make it.
  Edge Read(const Edge& e) const { return Feed(e) ? e : p_.Real(e); }

  // What is wanted, and, on the same task, whatever its inputs need to exist; what is read before what reads it.
  Status EmitNodes(int32_t task, Work* w) {
    struct Visit {
      const Node* node;
      bool ready;
    };
    std::set<int32_t> seen = p_.known_[task].nodes;
    std::vector<Visit> todo;
    std::vector<int32_t> roots(w->wanted.rbegin(), w->wanted.rend());
    auto want = [&](const Node* n) -> Status {
      ASSIGN_OR_RETURN(const int32_t at, p_.placement_->TaskOf(*n));
      if (at == task && !seen.count(n->id())) todo.push_back({n, false});
      return Status();
    };
    while (!roots.empty()) {
      todo.push_back({p_.graph_->node(roots.back()), false});
      roots.pop_back();
      while (!todo.empty()) {
        const auto [n, ready] = todo.back();
        todo.pop_back();
        if (ready) {
          RETURN_IF_ERROR(EmitNode(*n, task, w));
          continue;
        }
        if (!seen.insert(n->id()).second) continue;
        todo.push_back({n, true});
        for (const Edge& e : n->inputs()) RETURN_IF_ERROR(want(Read(e).node));
        for (const Node* c : n->controls()) RETURN_IF_ERROR(want(p_.Real(c)));
        for (int32_t i = 0; i < n->n_in(); ++i) {
          if (const Node* next = n->back(i)) roots.push_back(next->id());
        }
      }
    }
    return Status();
  }

  Status EmitNode(const Node& n, int32_t task, Work* w) {
    PieceNode out;
    out.name = n.name();
    out.op = n.op().name;
    out.place = n.place();
    out.colocate_with = n.colocate_with();
    RETURN_IF_ERROR(SetDevice(n, &out));
    for (const Edge& input : n.inputs()) {
      const Edge e = Read(input);
      ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
      out.inputs.push_back(from == task ? e.text() : Away(e, task));
      if (from != task) RETURN_IF_ERROR(NeedAway(e, task, w));
    }
    for (const Node* control : n.controls()) {
      const Node* c = p_.Real(control);
      ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
      if (from == task) {
        out.controls.push_back(c->name());
      } else if (!IsSmallConst(*c)) {
        out.controls.push_back(p_.NameFor(StrCat(ControlKey(c, task), "/_recv")));
        RETURN_IF_ERROR(AddReceive(out.controls.back(), ControlKey(c, task), TW_FLOAT, {c, -1}, from, w));
      }
    }
    for (int32_t i = 0; i < n.n_in(); ++i) {
      if (const Node* next = n.back(i)) w->part.piece.loops.push_back({n.name(), next->name(), i});
    }
    RETURN_IF_ERROR(SetAttrs(n, &out));
    w->part.piece.nodes.push_back(std::move(out));
    w->part.nodes.push_back(n.id());
    return Status();
  }

  Status NeedAway(const Edge& e, int32_t task, Work* w) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    const bool invariant = IsEnteredThere(*e.node, task);
    if (!invariant && !IsSmallConst(*e.node)) {
      return AddReceive(Away(e, task), ValueKey(e, task), BaseType(e.node->out_type(e.port)), e, from, w);
    }
    PieceNode copy;
    copy.name = Away(e, task);
    copy.op = e.node->op().name;
    copy.place = e.node->place();
    if (invariant) RETURN_IF_ERROR(ReadInvariant(p_.Real(e.node->inputs()[0]), task, w, &copy));
    RETURN_IF_ERROR(SetAttrs(*e.node, &copy));
    AddMade(w, std::move(copy), &w->before);
    return Status();
  }

  Status ReadInvariant(const Edge& e, int32_t task, Work* w, PieceNode* enter) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    const bool here = from == task && !IsSmallConst(*e.node);
    enter->inputs = {here ? e.text() : Away(e, task)};
    return here ? Status() : NeedAway(e, task, w);
  }

  // of: the value, or, with port -1, the node that is waited for.
  Status AddReceive(const std::string& name, const std::string& key, uint32_t type, const Edge& of, int32_t from, Work* w) {
    const int32_t task = w->part.task;
    PieceNode n;
    n.name = name;
    n.op = "_Recv";
    if (const int32_t frame = flow_.FrameOf(*of.node)) {
      RETURN_IF_ERROR(BeginLoop(frame, task, w));
      n.controls = {LoopName(frame, task, "merge")};
    }
    // In a loop, rounds may differ from what is said.
    const bool known =
        of.port >= 0 && !flow_.FrameOf(*of.node) && !flow_.MayHaveAnotherShape(*of.node) && of.node->shape(of.port).has_rank();
    if (known) {
      ASSIGN_OR_RETURN(n.extra_attrs[kReceivedShape], SerializeAttr(AttrValue::OfShape(of.node->shape(of.port))));
    }
    if (flow_.MayBeDead(of)) {
      ASSIGN_OR_RETURN(n.extra_attrs[kMayBeDead], SerializeAttr(AttrValue::Bool(true)));
    }
    RETURN_IF_ERROR(SetMeeting(key, "tensor_type", type, from, task, &n));
    AddMade(w, std::move(n), &w->before);
    return Status();
  }

  // Where on its task it is to run: what it says itself, and what the session says where it says nothing.
  Status SetDevice(const Node& n, PieceNode* out) const {
    auto spec = ParseDeviceSpec(n.device());
    if (!spec.ok()) return OfNode(n, Prefix(spec.status(), n.title() + ":"));
    if (auto both = MergeDeviceSpecs(*spec, p_.wish_); both.ok()) spec = *std::move(both);
    spec->job.clear();
    spec->replica = spec->task = -1;
    out->device = spec->text();
    return Status();
  }

  static Status SetAttrs(const Node& n, PieceNode* out) {
    for (size_t i = 0; i < n.attrs().size(); ++i) {
      const std::string& name = n.op().attrs[i].name;
      if (n.extra_attrs().count(name)) continue;  // its full form
      auto message = SerializeAttr(n.attrs()[i]);
      if (!message.ok()) return OfNode(n, Prefix(message.status(), StrCat(n.title(), ": attribute '", name, "':")));
      out->attrs.emplace(name, *std::move(message));
    }
    for (const auto& [name, message] : n.extra_attrs()) {
      if (name == "_class") continue;
      (name[0] == '_' ? out->extra_attrs : out->attrs).emplace(name, message);
    }
    return Status();
  }

  Status EmitLibrary(int32_t task, Work* w) {
    if (library_.empty()) {
      library_ = p_.graph_->extras().library;
      if (const auto functions = p_.graph_->functions()) {
        ASSIGN_OR_RETURN(const std::string added, functions->ExportAdded());
        library_ += added;
      }
    }
    if (library_ != p_.known_[task].library) w->part.piece.library = library_;
    return Status();
  }

  Parts Finish() {
    Parts out;
    std::map<int32_t, int32_t> index;
    for (auto& [task, w] : work_) {
      index[task] = int32_t(out.parts.size());
      out.parts.push_back(std::move(w.part));
    }
    for (const auto& [task, at] : fetches_) out.fetches.emplace_back(task < 0 ? -1 : index.at(task), at);
    return out;
  }

  Partition& p_;
  const FlowMap& flow_;
  const CallableSpec& spec_;
  std::map<EdgeKey, int32_t> fed_;
  std::vector<const Node*> needed_;
  std::map<int32_t, Work> work_;                    // by task
  std::set<std::string> sent_;                      // keys
  std::set<std::pair<int32_t, int32_t>> loops_;     // frame and task
  std::vector<std::pair<Edge, int32_t>> fed_away_;  // values that are fed to a task beside the one that would make them
  std::vector<std::pair<int32_t, int32_t>> fetches_;
  std::string library_;
};

const Node* Partition::RunsFor(const Node* n) const {
  auto it = runs_.find(n);
  return it == runs_.end() ? n : it->second;
}

Edge Partition::Real(Edge e) const {
  while (!runs_.empty() || !replaced_.empty()) {
    const Node* runs = RunsFor(e.node);
    if (auto it = replaced_.find({e.node, e.port}); it != replaced_.end()) {
      e = it->second;
    } else if (lowered_.Has(runs)) {
      e = lowered_.Out({runs, e.port});
    } else {
      break;
    }
  }
  return e;
}

const Node* Partition::Real(const Node* n) const {
  if (auto it = replaced_.find({n, 0}); it != replaced_.end()) return Real(it->second.node);
  const Node* runs = RunsFor(n);
  return lowered_.Has(runs) ? lowered_.Done(runs) : n;
}

bool Partition::WasTold(const Node* n) const {
  return std::any_of(known_.begin(), known_.end(), [n](const auto& k) { return k.second.nodes.count(n->id()) != 0; });
}

const std::string& Partition::NameFor(const std::string& base) {
  auto [it, is_new] = names_.emplace(base, std::string());
  if (!is_new) return it->second;
  std::string& name = it->second;
  for (char c : base) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
    name += plain ? c : '.';
  }
  while (graph_->Find(name)) name += "_";
  return name;
}

StatusOr<Parts> Partition::Split(const CallableSpec& spec) { return Splitter(this, spec).Run(); }

void Partition::Told(const Part& part) {
  Known& k = known_[part.task];
  k.nodes.insert(part.nodes.begin(), part.nodes.end());
  k.made.insert(part.made.begin(), part.made.end());
  if (!part.piece.library.empty()) k.library = part.piece.library;
  for (int32_t id : part.nodes) placement_->Settle(*graph_->node(id));
}

void Partition::Forget(int32_t task) { known_.erase(task); }

}  // namespace thalweg::distributed
