#include <iterator>

#include "distributed/piece_nodes.h"
#include "distributed/splitter.h"
#include "framework/base/dtype.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"

namespace thalweg::distributed {

Status Splitter::Emit() {
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

Parts Splitter::Finish() {
  Parts out;
  std::map<int32_t, int32_t> index;
  for (auto& [task, w] : work_) {
    index[task] = int32_t(out.parts.size());
    out.parts.push_back(std::move(w.part));
  }
  for (const auto& [task, at] : fetches_) out.fetches.emplace_back(task < 0 ? -1 : index.at(task), at);
  return out;
}

// ---- Nodes of the client's graph ----

// Returns the edge as a node reads it. A fed value is fed at the node that would make it.
Edge Splitter::Read(const Edge& e) const { return needed_.Feed(e) ? e : p_.forms_.Real(e); }

// Emits the wanted nodes and, on the same task, the nodes that their inputs need; each node after
// its inputs.
Status Splitter::EmitNodes(int32_t task, Work* w) {
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
      for (const Node* c : n->controls()) RETURN_IF_ERROR(want(p_.forms_.Real(c)));
      for (int32_t i = 0; i < n->n_in(); ++i) {
        if (const Node* next = n->back(i)) roots.push_back(next->id());
      }
    }
  }
  return Status();
}

Status Splitter::EmitNode(const Node& n, int32_t task, Work* w) {
  PieceNode out;
  out.name = n.name();
  out.op = n.op().name;
  out.place = n.place();
  out.colocate_with = n.colocate_with();
  RETURN_IF_ERROR(SetDevice(n, p_.wish_, &out));
  for (const Edge& input : n.inputs()) {
    const Edge e = Read(input);
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    out.inputs.push_back(from == task ? e.text() : Away(e, task));
    if (from != task) RETURN_IF_ERROR(NeedAway(e, task, w));
  }
  for (const Node* control : n.controls()) {
    const Node* c = p_.forms_.Real(control);
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

Status Splitter::EmitLibrary(int32_t task, Work* w) {
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

// ---- Values of other tasks ----

Status Splitter::NeedAway(const Edge& e, int32_t task, Work* w) {
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
  const bool invariant = IsEnteredThere(*e.node, task);
  if (!invariant && !IsSmallConst(*e.node)) {
    return AddReceive(Away(e, task), ValueKey(e, task), BaseType(e.node->out_type(e.port)), e, from, w);
  }
  PieceNode copy;
  copy.name = Away(e, task);
  copy.op = e.node->op().name;
  copy.place = e.node->place();
  if (invariant) RETURN_IF_ERROR(ReadInvariant(p_.forms_.Real(e.node->inputs()[0]), task, w, &copy));
  RETURN_IF_ERROR(SetAttrs(*e.node, &copy));
  AddMade(w, std::move(copy), &w->before);
  return Status();
}

Status Splitter::ReadInvariant(const Edge& e, int32_t task, Work* w, PieceNode* enter) {
  ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
  const bool here = from == task && !IsSmallConst(*e.node);
  enter->inputs = {here ? e.text() : Away(e, task)};
  return here ? Status() : NeedAway(e, task, w);
}

// of: the value, or, with port -1, the node that is waited for.
Status Splitter::AddReceive(const std::string& name, const std::string& key, uint32_t type, const Edge& of, int32_t from, Work* w) {
  const int32_t task = w->part.task;
  const int32_t frame = flow_.FrameOf(*of.node);
  if (frame) RETURN_IF_ERROR(BeginLoop(frame, task, w));
  ASSIGN_OR_RETURN(PieceNode n, ReceiveNode(name, {key, type, p_.TaskName(from), p_.TaskName(task)}));
  if (frame) n.controls = {LoopName(frame, task, "merge")};
  // In a loop, the shape may differ between iterations.
  const bool known = of.port >= 0 && !frame && !flow_.MayHaveAnotherShape(*of.node) && of.node->shape(of.port).has_rank();
  if (known) {
    ASSIGN_OR_RETURN(n.extra_attrs[kReceivedShape], SerializeAttr(AttrValue::OfShape(of.node->shape(of.port))));
  }
  if (flow_.MayBeDead(of)) {
    ASSIGN_OR_RETURN(n.extra_attrs[kMayBeDead], SerializeAttr(AttrValue::Bool(true)));
  }
  AddMade(w, std::move(n), &w->before);
  return Status();
}

// ---- Our variable of a loop whose condition is elsewhere ----

StatusOr<PieceNode> Splitter::LoopNode(int32_t frame, int32_t task, std::string_view what, std::string_view role) {
  PieceNode n;
  n.name = LoopName(frame, task, what);
  ASSIGN_OR_RETURN(const OpSchema* op, p_.graph_->host().FindRole(role));
  n.op = op->name;
  ASSIGN_OR_RETURN(n.attrs["T"], SerializeAttr(AttrValue::Type(TW_FLOAT)));
  return n;
}

// Emits the nodes that must exist before any receive: an initial value, and the place where it goes
// round. The enclosing loop comes first.
Status Splitter::BeginLoop(int32_t frame, int32_t task, Work* w) {
  const FlowMap::Frame& f = flow_.frame(frame);
  if (f.parent) RETURN_IF_ERROR(BeginLoop(f.parent, task, w));
  ASSIGN_OR_RETURN(PieceNode none, NothingNode(LoopName(frame, task, "none"), RuntimeOf(*p_.graph_).registry()));
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

Status Splitter::EndLoop(int32_t frame, int32_t task, Work* w) {
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

}  // namespace thalweg::distributed
