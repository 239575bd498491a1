#include "distributed/lowered_flow.h"

#include <algorithm>
#include <unordered_map>

#include "framework/graph/flow.h"
#include "framework/graph/function_shapes.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {
namespace {

const std::string& FunctionOf(const Node& n, std::string_view attr) { return n.FindAttr(attr)->strings()[0]; }

// Returns the task that a device names, such as "/job:ps/task:0"; "" if it names none.
std::string TaskOf(const std::string& device) {
  if (device.empty()) return "";
  const auto spec = ParseDeviceSpec(device);
  if (!spec.ok() || (spec->job.empty() && spec->task < 0)) return "";
  DeviceSpec task;
  task.job = spec->job;
  task.task = spec->task;
  return task.text();
}

// A node that names no task runs on the task that its caller asks for.
std::string DeviceWithin(const Node& n, const Node& caller) {
  if (caller.device().empty() || !TaskOf(n.device()).empty()) return n.device();
  const auto own = ParseDeviceSpec(n.device()), around = ParseDeviceSpec(caller.device());
  if (!own.ok() || !around.ok()) return n.device();
  DeviceSpec both = *own;
  both.job = around->job;
  both.task = around->task;
  return both.text();
}

// Returns true for a scalar that is a truth value, or a number (0 means false). Inside a loop,
// shapes may be unknown.
bool MayDecide(const Edge& e) {
  const uint32_t type = e.node->out_type(e.port);
  const Shape& shape = e.node->shape(e.port);
  return (type == TW_BOOL || type == TW_INT32 || type == TW_INT64 || type == TW_FLOAT) && (!shape.has_rank() || shape.rank() == 0);
}

// Returns the name and function of each branch, in the order of the selecting numbers; the last
// branch serves all other numbers.
std::vector<std::pair<std::string, std::string>> BranchesOf(const Node& n) {
  if (CallRole(n.op()) == "if") return {{"else", FunctionOf(n, "else_branch")}, {"then", FunctionOf(n, "then_branch")}};
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& f : n.FindAttr("branches")->strings()) all.emplace_back(StrCat("branch_", all.size()), f);
  return all;
}

// Returns, in order, the nodes that results and targets need. Loops are complete.
std::vector<const Node*> NeededOf(const Function& f) {
  std::set<int32_t> seen;
  std::vector<const Node*> todo(f.targets()), all;
  for (const Edge& e : f.results()) todo.push_back(e.node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!seen.insert(n->id()).second) continue;
    all.push_back(n);
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
    todo.insert(todo.end(), n->controls().begin(), n->controls().end());
    for (int32_t i = 0; i < n->n_in(); ++i) {
      if (const Node* next = n->back(i)) todo.push_back(next);
    }
  }
  std::sort(all.begin(), all.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return all;
}

}  // namespace

// ---- Which ----

// Returns whether the function, or one that it calls, has a node that names another task. A
// recursive function is examined once.
bool LoweredFlow::Asks(const std::string& function, const std::string& task) {
  auto [at, is_new] = asked_.try_emplace(function);
  if (is_new) {
    const auto f = graph_->functions() ? graph_->functions()->Find(function)
                                       : StatusOr<std::shared_ptr<const Function>>(NotFound("there is no library"));
    std::set<std::string> tasks;
    const std::vector<const Node*> all = f.ok() ? NeededOf(**f) : std::vector<const Node*>();
    for (const Node* n : all) {
      if (const std::string own = TaskOf(n->device()); !own.empty()) tasks.insert(own);
      for (const AttrValue& a : n->attrs()) {
        for (size_t i = 0; a.kind() == TW_ATTR_FUNC && i < a.strings().size(); ++i) {
          const std::string& called = a.strings()[i];
          Asks(called, "");
          tasks.insert(asked_[called].begin(), asked_[called].end());
        }
      }
    }
    at->second = std::move(tasks);
  }
  return std::any_of(at->second.begin(), at->second.end(), [&](const std::string& t) { return t != task; });
}

StatusOr<bool> LoweredFlow::Spans(const Node& n) {
  if (!CallsFunctions(n.op())) return false;
  const std::string_view role = CallRole(n.op());
  const std::string task = TaskOf(n.device());
  if (role == "call") return Asks(FunctionOf(n, "f"), task);
  if (role == "if" || role == "case") {
    bool asks = false;
    for (const auto& [name, function] : BranchesOf(n)) asks = Asks(function, task) || asks;
    return asks && MayDecide(n.inputs()[0]);
  }
  if (role != "while" || n.n_in() == 0) return false;
  const std::string& test = FunctionOf(n, "cond");
  if (!Asks(test, task) && !Asks(FunctionOf(n, "body"), task)) return false;
  ASSIGN_OR_RETURN(const auto cond, graph_->functions()->Find(test));
  return cond->results().size() == 1 && MayDecide(cond->results()[0]);
}

bool LoweredFlow::Takes(const Node& n) {
  const auto spans = Spans(n);
  return spans.ok() && *spans;
}

StatusOr<bool> LoweredFlow::Lower(const Node& n) {
  if (Has(&n)) return false;
  ASSIGN_OR_RETURN(const bool spans, Spans(n));
  if (!spans) return false;
  const std::string_view role = CallRole(n.op());
  Status s = role == "while" ? LowerWhile(n) : role == "call" ? LowerCall(n) : LowerBranches(n);
  if (!s.ok()) return OfNode(n, Prefix(s, n.title() + ":"));
  return true;
}

// ---- Nodes ----

StatusOr<const Node*> LoweredFlow::Add(const Node& like, std::string_view role, const std::string& name, std::vector<Edge> inputs,
                                       std::vector<const Node*> controls) {
  NodeSpec spec;
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole(role));
  spec.op = op->name;
  spec.name = graph_->UniqueName(name);
  spec.inputs = std::move(inputs);
  spec.controls = std::move(controls);
  spec.device = like.device();
  spec.place = like.place();
  spec.imported = like.imported();
  return graph_->AddNode(std::move(spec));
}

StatusOr<const Node*> LoweredFlow::AddEnter(const Node& n, const std::string& name, const Edge& value, bool invariant) {
  NodeSpec spec;
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole("enter"));
  spec.op = op->name;
  spec.name = graph_->UniqueName(name);
  spec.inputs = {value};
  spec.controls = n.controls();
  spec.attrs["frame_name"] = AttrValue::String(n.name() + "/_apart");
  spec.attrs["is_constant"] = AttrValue::Bool(invariant);
  spec.attrs["parallel_iterations"] = *n.FindAttr("parallel_iterations");
  if (!invariant) spec.device = n.device();
  spec.place = n.place();
  spec.imported = n.imported();
  return graph_->AddNode(std::move(spec));
}

// Converts the condition to a truth value.
StatusOr<Edge> LoweredFlow::Truth(const Node& n, const std::string& name, const Edge& pred) {
  if (pred.node->out_type(pred.port) == TW_BOOL) return pred;
  NodeSpec spec;
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole("cast"));
  spec.op = op->name;
  spec.name = graph_->UniqueName(name);
  spec.inputs = {pred};
  spec.attrs["DstT"] = AttrValue::Type(TW_BOOL);
  spec.device = n.device();
  spec.place = n.place();
  spec.imported = n.imported();
  ASSIGN_OR_RETURN(const Node* truth, graph_->AddNode(std::move(spec)));
  return Edge{truth, 0};
}

// Returns whether the number differs from `k`.
StatusOr<Edge> LoweredFlow::IsNot(const Node& n, const std::string& name, const Edge& index, int32_t k) {
  if (k == 0) return Truth(n, name, index);
  ASSIGN_OR_RETURN(Tensor less, Tensor::Make(TW_INT32, nullptr, 0));
  *less.as<int32_t>() = -k;
  NodeSpec spec;
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole("const"));
  spec.op = op->name;
  spec.name = graph_->UniqueName(name + "/less");
  spec.controls = {index.node};  // places the constant in the loops of the number
  spec.attrs["dtype"] = AttrValue::Type(TW_INT32);
  spec.attrs["value"] = AttrValue::OfTensor(std::move(less));
  spec.device = n.device();
  spec.place = n.place();
  spec.imported = n.imported();
  ASSIGN_OR_RETURN(const Node* constant, graph_->AddNode(std::move(spec)));
  ASSIGN_OR_RETURN(const Node* rest, Add(n, "add_n", name + "/rest", {index, {constant, 0}}));
  return Truth(n, name, {rest, 0});
}

// Makes constants, and values that are made once, outside the loop.
StatusOr<const Node*> LoweredFlow::AddLoopConst(const Node& of, const Place& place, NodeSpec spec) {
  const std::string name = spec.name;
  ASSIGN_OR_RETURN(const Node* value, graph_->AddNode(of.op(), of.attrs(), std::move(spec)));
  return AddEnter(*place.node, name + "/enter", {value, 0}, true);
}

StatusOr<LoweredFlow::Copies> LoweredFlow::Copy(const Function& f, const Place& place) {
  std::map<std::pair<const Node*, int32_t>, Edge> values;
  std::unordered_map<const Node*, const Node*> nodes;
  for (size_t i = 0; i < f.args().size(); ++i) values[{f.args()[i].node, f.args()[i].port}] = place.args[i];
  const auto value = [&](const Edge& e) {
    auto it = values.find({e.node, e.port});
    return it == values.end() ? Edge{nodes.at(e.node), e.port} : it->second;
  };
  const std::vector<const Node*> all = NeededOf(f);
  for (const Node* n : all) {
    if (n->op().role == "placeholder") continue;
    NodeSpec spec;
    spec.name = graph_->UniqueName(place.prefix + n->name());
    for (const Edge& e : n->inputs()) spec.inputs.push_back(value(e));
    for (const Node* c : n->controls()) {
      if (auto it = nodes.find(c); it != nodes.end()) spec.controls.push_back(it->second);
    }
    spec.extra_attrs = n->extra_attrs();
    spec.device = DeviceWithin(*n, *place.node);
    spec.place = n->place();
    spec.imported = n->imported() || place.node->imported();
    const bool root = spec.inputs.empty() && spec.controls.empty();
    if (root && place.loops && n->n_out() == 1 && (n->op().once || n->op().role == "const")) {
      ASSIGN_OR_RETURN(nodes[n], AddLoopConst(*n, place, std::move(spec)));
      continue;
    }
    if (root) spec.controls = {place.pivot};
    std::vector<AttrValue> attrs = n->attrs();
    if (FlowOf(*n) == Flow::kEnter) {  // a loop of its own: other nodes may copy the function too
      const auto at = size_t(n->op().FindAttr("frame_name"));
      attrs[at] = AttrValue::String(place.prefix + attrs[at].strings()[0]);
    }
    ASSIGN_OR_RETURN(nodes[n], graph_->AddNode(n->op(), std::move(attrs), std::move(spec)));
  }
  for (const Node* n : all) {
    for (int32_t i = 0; i < n->n_in(); ++i) {
      if (const Node* next = n->back(i)) RETURN_IF_ERROR(graph_->CloseLoop(nodes.at(n), i, nodes.at(next)));
    }
  }
  Copies out;
  for (const Edge& e : f.results()) out.results.push_back(value(e));
  for (const Node* t : f.targets()) {
    if (auto it = nodes.find(t); it != nodes.end()) out.targets.push_back(it->second);
  }
  return out;
}

// targets: nodes that must end before the outputs may be used.
Status LoweredFlow::Finish(const Node& n, const std::vector<Edge>& outs, const std::vector<const Node*>& targets) {
  std::vector<Edge> given = outs;
  for (size_t k = 0; k < outs.size() && !targets.empty(); ++k) {
    if (outs[k].node->out_type(outs[k].port) == TW_RESOURCE) continue;
    ASSIGN_OR_RETURN(const Node* after, Add(n, "identity", n.name() + "/_apart/after", {outs[k]}, targets));
    given[k] = {after, 0};
  }
  std::vector<const Node*> all(targets);
  for (const Edge& e : given) all.push_back(e.node);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  ASSIGN_OR_RETURN(const Node* done, Add(n, "no_op", n.name() + "/_apart/done", {}, all));
  for (size_t k = 0; k < given.size(); ++k) outs_[{&n, int32_t(k)}] = given[k];
  done_[&n] = done;
  return Status();
}

// ---- Calls ----

Status LoweredFlow::LowerCall(const Node& n) {
  const std::string prefix = n.name() + "/_apart/";
  ASSIGN_OR_RETURN(const auto f, graph_->functions()->Find(FunctionOf(n, "f")));
  ASSIGN_OR_RETURN(const Node* begin, Add(n, "no_op", prefix + "begin", {}, n.controls()));
  ASSIGN_OR_RETURN(const Copies copies, Copy(*f, {&n, prefix, n.inputs(), begin, false}));
  return Finish(n, copies.results, copies.targets);
}

// ---- Branches ----

// Tests the branches one after the other: a switch with a false condition leads to its branch, else
// to the next test; after the last test, to the last branch.
Status LoweredFlow::LowerBranches(const Node& n) {
  const std::string prefix = n.name() + "/_apart/";
  const auto branches = BranchesOf(n);
  const Edge& index = n.inputs()[0];
  const size_t last = branches.size() - 1;
  ASSIGN_OR_RETURN(const Node* begin, Add(n, "no_op", prefix + "begin", {}, n.controls()));
  Edge token = index;
  std::vector<Edge> values(n.inputs().begin() + 1, n.inputs().end());
  std::vector<const Node*> over(branches.size(), begin);
  std::vector<Copies> sides(branches.size());
  bool acts = false;
  for (size_t k = 0; k <= last; ++k) {
    const auto& [name, function] = branches[k];
    Place place = {&n, StrCat(prefix, name, "/"), values, begin, false};
    if (k < last) {
      ASSIGN_OR_RETURN(const Edge other, IsNot(n, StrCat(prefix, name, "_pred"), index, int32_t(k)));
      ASSIGN_OR_RETURN(const Node* choice, Add(n, "switch", StrCat(prefix, name, "_choice"), {token, other}, n.controls()));
      token = {choice, 1};
      ASSIGN_OR_RETURN(over[k], Add(n, "identity", StrCat(prefix, name, "_pivot"), {{choice, 0}}));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSIGN_OR_RETURN(const Node* s, Add(n, "switch", StrCat(prefix, name, "_switch_", i), {values[i], other}, n.controls()));
        place.args[i] = {s, 0};
        values[i] = {s, 1};
      }
    } else if (last > 0) {
      ASSIGN_OR_RETURN(over[k], Add(n, "identity", StrCat(prefix, name, "_pivot"), {token}));
    }
    place.pivot = over[k];
    ASSIGN_OR_RETURN(const auto f, graph_->functions()->Find(function));
    ASSIGN_OR_RETURN(sides[k], Copy(*f, place));
    acts = acts || !sides[k].targets.empty();
  }
  if (last == 0) return Finish(n, sides[0].results, sides[0].targets);
  std::vector<Edge> outs;
  for (int32_t k = 0; k < n.n_out(); ++k) {
    std::vector<Edge> results;
    for (const Copies& side : sides) results.push_back(side.results[size_t(k)]);
    ASSIGN_OR_RETURN(const Node* merge, Add(n, "merge", StrCat(prefix, "merge_", k), results));
    outs.push_back({merge, 0});
  }
  std::vector<const Node*> targets;
  if (acts || outs.empty()) {
    std::vector<Edge> ends;
    for (size_t k = 0; k <= last; ++k) {
      ASSIGN_OR_RETURN(const Node* end, Add(n, "identity", prefix + "end", {{over[k], 0}}, sides[k].targets));
      ends.push_back({end, 0});
    }
    ASSIGN_OR_RETURN(const Node* end, Add(n, "merge", prefix + "end", ends));
    targets.push_back(end);
  }
  return Finish(n, outs, targets);
}

// ---- Loops ----

Status LoweredFlow::LowerWhile(const Node& n) {
  const std::string prefix = n.name() + "/_apart/";
  ASSIGN_OR_RETURN(const auto cond, graph_->functions()->Find(FunctionOf(n, "cond")));
  ASSIGN_OR_RETURN(const auto body, graph_->functions()->Find(FunctionOf(n, "body")));
  const auto size = n.inputs().size();
  std::vector<bool> stays(size);
  for (size_t i = 0; i < size; ++i) stays[i] = body->results()[i] == body->args()[i];
  if (std::find(stays.begin(), stays.end(), false) == stays.end())
    return Unimplemented("a loop whose variables all stay the same spans tasks");
  std::vector<const Node*> merges(size);
  std::vector<Edge> here;
  const Node* first = nullptr;
  for (size_t i = 0; i < size; ++i) {
    ASSIGN_OR_RETURN(const Node* enter, AddEnter(n, StrCat(prefix, "enter_", i), n.inputs()[i], stays[i]));
    if (!stays[i]) {
      ASSIGN_OR_RETURN(merges[i], Add(n, "merge", StrCat(prefix, "merge_", i), {{enter, 0}, {enter, 0}}));
      if (!first) first = merges[i];
    }
    here.push_back({stays[i] ? enter : merges[i], 0});
  }
  ASSIGN_OR_RETURN(const Copies test, Copy(*cond, {&n, prefix + "cond/", here, first, true}));
  ASSIGN_OR_RETURN(const Edge truth, Truth(n, prefix + "truth", test.results[0]));
  ASSIGN_OR_RETURN(const Node* goes_on, Add(n, "loop_cond", prefix + "cond", {truth}, test.targets));
  std::vector<const Node*> switches(size);
  const Node* pivot = nullptr;
  for (size_t i = 0; i < size; ++i) {
    if (stays[i]) continue;
    ASSIGN_OR_RETURN(switches[i], Add(n, "switch", StrCat(prefix, "switch_", i), {here[i], {goes_on, 0}}));
    here[i] = {switches[i], 1};
    if (!pivot) {
      ASSIGN_OR_RETURN(pivot, Add(n, "identity", prefix + "pivot", {here[i]}));
    }
  }
  ASSIGN_OR_RETURN(const Copies round, Copy(*body, {&n, prefix + "body/", here, pivot, true}));
  std::vector<Edge> outs;
  for (size_t i = 0; i < size; ++i) {
    if (stays[i]) {
      outs.push_back(n.inputs()[i]);
      continue;
    }
    ASSIGN_OR_RETURN(const Node* next, Add(n, "next_iteration", StrCat(prefix, "next_", i), {round.results[i]}, round.targets));
    RETURN_IF_ERROR(graph_->CloseLoop(merges[i], 1, next));
    ASSIGN_OR_RETURN(const Node* exit, Add(n, "exit", StrCat(prefix, "exit_", i), {{switches[i], 0}}));
    outs.push_back({exit, 0});
  }
  return Finish(n, outs, {});
}

}  // namespace thalweg::distributed
