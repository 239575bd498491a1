#include "framework/planner/emit/emit.h"

#include <algorithm>
#include <map>
#include <set>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/planner/compilers/part.h"
#include "framework/planner/crossings.h"
#include "framework/planner/emit/arrange.h"
#include "framework/planner/emit/plan_values.h"
#include "framework/planner/emit/readers.h"
#include "framework/planner/emit/runs.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {
namespace {

// Reads the int attribute "_priority", which nodes may have although ops do not declare it.
int32_t PriorityOf(const Node& node) {
  auto it = node.extra_attrs().find("_priority");
  if (it == node.extra_attrs().end()) return 0;
  AttrSpec spec;
  spec.kind = TW_ATTR_INT;
  SplatBudget budget;
  bool whole = false;
  auto value = ParseAttr(it->second, spec, &budget, &whole);
  if (!value.ok() || value->kind() != TW_ATTR_INT || value->is_list()) return 0;
  return int32_t(std::clamp<int64_t>(value->ints()[0], INT32_MIN, INT32_MAX));
}

// For a part, returns the highest priority of its nodes.
int32_t PriorityOf(const WorkNode& x) {
  if (!x.part) return PriorityOf(*x.node);
  int32_t highest = INT32_MIN;
  for (const PartGraph::Member& m : x.part->graph().members) highest = std::max(highest, PriorityOf(*m.node));
  return highest;
}

class Emitter {
 public:
  Emitter(WorkGraph* w, StateCache* states) : w_(*w), states_(states), plan_(std::make_unique<Plan>()), crossings_(*w, plan_.get()) {}

  StatusOr<std::unique_ptr<Plan>> Run() {
    ASSIGN_OR_RETURN(plan_->host, w_.runtime().host_device());
    plan_->takes_feeds = w_.signature->takes_feeds;
    plan_->check = w_.options->check;
    node_of_.assign(w_.nodes.size(), -1);
    leads_to_.assign(w_.nodes.size(), -1);
    CountOutputs();
    for (const WorkEdge& e : crossings_.Find()) Held(e) = 1;
    MarkHeld();
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (n.dead) continue;
      Status s = EmitNode(int32_t(i));
      if (!s.ok()) return n.node ? OfNode(*n.node, s) : s;
      leads_to_[i] = LeadsTo(int32_t(i));
    }
    for (size_t i = 0; i < w_.feeds.size(); ++i) {
      int32_t n = w_.feeds[i];
      plan_->feeds.push_back(n < 0 ? -1 : ValueOf({n, 0}));
    }
    for (size_t k = 0; k < w_.fetches.size(); ++k) {
      Device* device = w_.signature->fetch_device(k);
      const int32_t there = w_.signature->stays ? WhereItStays(w_.fetches[k]) : LocationOf(device, plan_.get());
      ASSIGN_OR_RETURN(int32_t v, ValueAt(w_.fetches[k], there));
      plan_->values[size_t(v)].fetched = true;
      plan_->fetches.push_back(v);
    }
    PassFetches();
    CountReaders(plan_.get());
    Arrange(*w_.options, plan_.get(), &shapes_);
    MarkSimple(plan_.get());
    if (plan_->records && !plan_->counted) plan_->runs = FindRuns(*plan_, shapes_);
    if (plan_->counted) SetCounts(plan_.get());
    Note();
    plan_->shapes = std::make_shared<PlanShapes>(std::move(shapes_));
    return std::move(plan_);
  }

  std::vector<WorkEdge> TakeEdges() { return std::move(edges_); }

 private:
  void CountOutputs() {
    size_t n = 0, running = 0;
    first_output_.reserve(w_.nodes.size());
    for (const WorkNode& x : w_.nodes) {
      first_output_.push_back(n);
      n += x.shapes.size();
      running += x.node && !x.dead && !x.constant;
    }
    value_of_.assign(n, -1);
    held_.assign(n, 0);
    plan_->nodes.reserve(running);
  }
  int32_t& ValueOf(const WorkEdge& e) { return value_of_[first_output_[size_t(e.node)] + size_t(e.port)]; }
  uint8_t& Held(const WorkEdge& e) { return held_[first_output_[size_t(e.node)] + size_t(e.port)]; }

  // Marks the values that must have a tensor of their own. A view of such a value passes the mark
  // on to its source.
  void MarkHeld() {
    auto mark = [&](const WorkEdge& e) { Held(e) = 1; };
    for (const WorkEdge& e : w_.fetches) {
      if (!IsPassed(e)) mark(e);
    }
    for (size_t i = w_.nodes.size(); i-- > 0;) {
      const WorkNode& n = w_.nodes[i];
      if (n.dead || n.constant || !n.node) continue;
      const Node& node = *n.node;
      for (size_t a = 0; a < node.op().inputs.size(); ++a) {
        if (!n.kernel->keep[a]) continue;
        for (uint32_t k = node.in_at()[a]; k < node.in_at()[a + 1]; ++k) mark(n.in[k]);
      }
      for (size_t o = 0; o < node.op().outputs.size(); ++o) {
        int32_t a = n.kernel->view[o];
        if (a < 0) continue;
        for (uint32_t k = 0; k < node.out_at()[o + 1] - node.out_at()[o]; ++k) {
          if (Held({int32_t(i), int32_t(node.out_at()[o] + k)})) mark(n.in[node.in_at()[size_t(a)] + k]);
        }
      }
    }
  }

  // Returns true if copying an argument or result costs less than a tensor of its own.
  bool IsPassed(const WorkEdge& e) const {
    if (!plan_->takes_feeds || crossings_.any()) return false;  // some nodes are on devices with memory of their own
    const WorkNode& n = w_.nodes[size_t(e.node)];
    const uint32_t dtype = n.out_types[size_t(e.port)];
    const DTypeInfo* info = FindDType(dtype);
    const Shape& shape = n.shapes[size_t(e.port)];
    if (n.constant || !info || !info->plain || !shape.known()) return false;
    const auto bytes = CountBytes(shape.dims().data(), shape.rank(), dtype);
    return bytes.ok() && uint64_t(*bytes) <= kMostPassed;
  }

  // A fetch that has no tensor keeps its memory until the step ends.
  void PassFetches() {
    std::vector<PlanValue>& values = plan_->values;
    const auto root = [&](int32_t v) { return size_t(values[size_t(v)].view_of < 0 ? v : values[size_t(v)].view_of); };
    for (int32_t v : plan_->fetches) {
      if (values[root(v)].kind == PlanValue::kBlock) values[root(v)].kind = PlanValue::kPassed;
    }
    for (PlanValue& v : values) {
      if (v.view_of >= 0 && values[size_t(v.view_of)].kind == PlanValue::kPassed) v.kind = PlanValue::kPassed;
    }
  }

  // Copies each output that leaves a device as soon as it is made, while the device's next kernels
  // run, which frees memory there. A value that enters a device is copied when it is first needed.
  Status SendOutputs(int32_t work) {
    for (size_t o = 0; crossings_.any() && o < w_.nodes[size_t(work)].shapes.size(); ++o) {
      for (int32_t location : crossings_.WantedOf(size_t(work), o)) {
        RETURN_IF_ERROR(ValueAt({work, int32_t(o)}, location).status());
      }
    }
    return Status();
  }

  // edge: the value's edge, in whatever memory the value lies.
  int32_t Add(const PlanValue& v, const WorkEdge& edge, Shape shape, Tensor constant = {}) {
    edges_.push_back(edge);
    maker_.push_back(-1);
    return AddValue(v, std::move(shape), std::move(constant), plan_.get(), &shapes_);
  }
  // Returns the location where the value is made. REQUIRES: it is made already.
  int32_t WhereIs(const WorkEdge& e) {
    const int32_t v = ValueOf(e);
    return v < 0 ? 0 : plan_->values[size_t(v)].location;
  }
  // Returns the location of a fetch. An argument that a function returns unchanged is taken from
  // the location it was copied to, unless the host reads it, so that the next call finds it there.
  int32_t WhereItStays(const WorkEdge& e) {
    const int32_t v = ValueOf(e);
    if (w_.nodes[size_t(e.node)].node || v < 0 || plan_->values[size_t(v)].location != 0) return WhereIs(e);
    int32_t there = 0;
    for (const PlanNode& n : plan_->nodes) {
      if (std::find(n.in.begin(), n.in.end(), v) == n.in.end()) continue;
      if (n.kind != PlanNode::kCopyIn) return 0;
      there = plan_->values[size_t(n.out[0])].location;
    }
    return there;
  }
  const Shape& ShapeOf(int32_t v) const { return shapes_.values[size_t(v)].shape; }

  // Returns the plan's value for an edge, in the memory of a location; adds the copies that this
  // takes.
  StatusOr<int32_t> ValueAt(const WorkEdge& e, int32_t location) {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    int32_t& v = ValueOf(e);
    if (v < 0 && n.constant) {
      const Tensor& value = n.values[size_t(e.port)];
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.dtype = value.dtype();
      v = Add(c, e, value.shape(), value);
    }
    if (v < 0) return Internal("value ", e.port, " of node ", e.node, " is read before it is made");
    if (plan_->values[size_t(v)].location == location) return v;
    auto [it, is_new] = moved_.emplace(std::make_pair(v, location), -1);
    if (!is_new) return it->second;
    const PlanValue& from = plan_->values[size_t(v)];
    if (from.kind == PlanValue::kConst) {
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.location = location;
      c.dtype = from.dtype;
      auto moved = plan_->devices[size_t(location - 1)]->FromHost(shapes_.values[size_t(v)].constant);
      if (!moved.ok()) return Prefix(moved.status(), StrCat("constant '", Shown(NameOf(e)), "':"));
      return moved_[{v, location}] = Add(c, e, ShapeOf(v), *std::move(moved));
    }
    const bool between = from.location != 0 && location != 0;
    if (between && !plan_->devices[size_t(from.location - 1)]->Reaches(*plan_->devices[size_t(location - 1)])) {  // through the host
      ASSIGN_OR_RETURN(int32_t on_host, ValueAt(e, 0));
      return moved_[{v, location}] = AddCopy(on_host, location, e);
    }
    return moved_[{v, location}] = AddCopy(v, location, e);
  }

  std::string NameOf(const WorkEdge& e) const {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    return n.node ? Edge{n.node, e.port}.text() : w_.signature->feeds[size_t(n.feed)].text();
  }

  int32_t AddCopy(int32_t from, int32_t location, const WorkEdge& edge) {
    PlanNode n;
    const PlanValue& f = plan_->values[size_t(from)];
    n.kind = location == 0 ? PlanNode::kCopyOut : f.location == 0 ? PlanNode::kCopyIn : PlanNode::kCopyPeer;
    n.run.device = plan_->devices[size_t((f.location ? f.location : location) - 1)];
    PlanValue v;
    v.dtype = f.dtype;
    v.location = location;
    const bool held = Held(edge) != 0;
    v.kind = ShapeOf(from).known() && !held ? PlanValue::kBlock : PlanValue::kHeld;
    n.title = StrCat("copy of '", Shown(NameOf(edge)), "'");
    if (f.location) n.title += StrCat(" from ", n.run.device->name());
    if (location) n.title += StrCat(" to ", plan_->devices[size_t(location - 1)]->name());
    n.title += ":";
    int32_t to = Add(v, edge, Shape(ShapeOf(from)));
    maker_[size_t(to)] = int32_t(plan_->nodes.size());
    n.in = {from};
    n.out = {to};
    AddDependency(from, &n);
    AddCopied(&n);
    AddNode(std::move(n), 0);
    return to;
  }

  // Records the inputs that copies make, or that may still be on their way to a device.
  void AddCopied(PlanNode* n) {
    for (int32_t v : n->in) {
      const int32_t m = maker_[size_t(v)];
      if (m < 0) continue;
      const bool lands = !plan_->nodes[size_t(m)].run.lands.empty() && plan_->values[size_t(v)].location != 0;
      if (lands || plan_->nodes[size_t(m)].kind != PlanNode::kKernel) n->copied_in.push_back(v);
    }
  }

  // Makes `n`, the node about to be added, wait for the maker of value v.
  void AddDependency(int32_t v, PlanNode* n) {
    int32_t m = maker_[size_t(v)];
    if (m < 0) return;
    AddOrder(m, n);
  }
  void AddOrder(int32_t before, PlanNode* n) {
    std::vector<int32_t>& next = plan_->nodes[size_t(before)].next;
    int32_t self = int32_t(plan_->nodes.size());
    if (!next.empty() && next.back() == self) return;  // nodes are added in order, so `self` is nowhere else
    next.push_back(self);
    ++n->pending;
  }
  // Feeds, constants and views do not run: their readers wait for the nodes that they would wait
  // for.
  template <class F>
  void ForEachAwaited(int32_t work, F&& f) {
    const WorkNode& x = w_.nodes[size_t(work)];
    for (int32_t c : x.controls) f(leads_to_[size_t(c)]);
    if (x.constant) return;  // a constant need not wait for the predecessors of its inputs: see InferPass
    for (const WorkEdge& e : x.in) f(leads_to_[size_t(e.node)]);
  }
  // Returns the node to wait for in place of `work`. If `work` does not run and waits for only one
  // node, that is this one node, so that readers do not walk along chains of views. -1 if there is
  // none.
  int32_t LeadsTo(int32_t work) {
    if (node_of_[size_t(work)] >= 0) return work;
    int32_t only = -1;
    bool several = false;
    ForEachAwaited(work, [&](int32_t other) {
      several = several || (only >= 0 && other >= 0 && other != only);
      if (only < 0) only = other;
    });
    return several ? work : only;
  }
  // Adds dependencies on control inputs, and on those of the constants and views that the node
  // reads.
  void AddControls(int32_t work, PlanNode* n) {
    const WorkNode& x = w_.nodes[size_t(work)];
    std::vector<int32_t> todo;
    for (int32_t c : x.controls) todo.push_back(leads_to_[size_t(c)]);
    for (const WorkEdge& e : x.in) {
      if (node_of_[size_t(e.node)] < 0) todo.push_back(leads_to_[size_t(e.node)]);
    }
    std::set<int32_t> seen;
    while (!todo.empty()) {
      int32_t other = todo.back();
      todo.pop_back();
      if (other < 0) continue;
      if (node_of_[size_t(other)] >= 0) {
        AddOrder(node_of_[size_t(other)], n);
      } else if (seen.insert(other).second) {
        ForEachAwaited(other, [&](int32_t further) { todo.push_back(further); });
      }
    }
  }

  Status EmitNode(int32_t work) {
    WorkNode& x = w_.nodes[size_t(work)];
    if (!x.node) {
      PlanValue v;
      const bool passed = IsPassed({work, 0}) && !Held({work, 0});
      v.kind = !plan_->takes_feeds ? PlanValue::kFeed : passed ? PlanValue::kPassed : PlanValue::kHeld;
      v.feed = x.feed;
      v.dtype = x.out_types[0];
      v.location = LocationOf(w_.signature->feed_device(size_t(x.feed)), plan_.get());
      ValueOf({work, 0}) = Add(v, {work, 0}, x.shapes[0]);
      return Status();
    }
    if (x.constant) return Status();  // added when some node reads it
    const Node& node = *x.node;
    const KernelDef& kernel = *x.kernel;
    int32_t device_location = LocationOf(x.device, plan_.get());
    PlanNode n;
    n.run = RunOf(w_, x);
    if (Status s = CheckHandles(n.run); !x.part && !s.ok()) return Prefix(s, StrCat(node.title(), ":"));
    n.run.lands = crossings_.LandsOf(size_t(work));
    n.part = x.part;
    n.in.reserve(x.in.size());
    n.out.reserve(x.shapes.size());
    for (int32_t i = 0; i < node.n_in(); ++i) {
      const bool anywhere = crossings_.TakesAnywhere(size_t(work), size_t(i));
      const int32_t there = anywhere ? WhereIs(x.in[size_t(i)]) : n.run.host_in[size_t(i)] ? 0 : device_location;
      ASSIGN_OR_RETURN(int32_t v, ValueAt(x.in[size_t(i)], there));
      n.in.push_back(v);
    }
    if (MakeViews(x, work, n)) return Status();

    // ValueAt may have added copy nodes, so the index of this node is known only now.
    for (int32_t v : n.in) AddDependency(v, &n);
    AddCopied(&n);
    AddControls(work, &n);
    n.cheap = kernel.spec.cheap;
    n.title = StrCat(x.within, x.reader ? x.reader->title() : node.title(), " on ", x.device->kind(), ":", x.device->index(), ":");
    bool known = true;
    std::vector<tw_shape> shapes;
    shapes.reserve(x.in.size() + x.shapes.size());
    for (const WorkEdge& e : x.in) {
      const Shape& s = w_.nodes[size_t(e.node)].shapes[size_t(e.port)];
      known = known && s.known();
      shapes.push_back(s.c());
    }
    bool outputs_known = true;
    for (const Shape& s : x.shapes) {
      outputs_known = outputs_known && s.known();
      shapes.push_back(s.c());
    }
    if (x.part) {
      n.run.state = x.part->state();
    } else {
      ASSIGN_OR_RETURN(n.run.state, states_->State(n.run, shapes));
    }
    n.dynamic = !outputs_known || !known;  // the shape rule checks the sizes of every step, even if no other shape depends on them
    uint64_t scratch = 0;
    if (known && outputs_known) {
      ASSIGN_OR_RETURN(scratch, PrepareScratch(n.run, shapes));
    }
    bool given = !kernel.gives.empty();
    for (size_t o = 0; o < node.op().outputs.size(); ++o) given = given || kernel.view[o] >= 0;
    n.given = given;
    int32_t self = int32_t(plan_->nodes.size());
    for (int32_t o = 0; o < node.n_out(); ++o) {
      PlanValue v;
      v.dtype = node.out_type(o);
      v.location = n.run.host_out[size_t(o)] ? 0 : device_location;
      if (!n.run.lands.empty() && n.run.lands[size_t(o)]) v.location = LocationOf(n.run.lands[size_t(o)], plan_.get());
      const Shape& s = x.shapes[size_t(o)];
      const DTypeInfo* info = FindDType(v.dtype);
      bool block = s.known() && !Held({work, o}) && !given && info && info->plain;
      v.kind = block ? PlanValue::kBlock : PlanValue::kHeld;
      int32_t id = Add(v, {work, o}, s);
      if (s.known()) {
        // A known but impossible shape is an error now, not when memory is allocated.
        auto bytes = CountBytes(s.dims().data(), s.rank(), plan_->values[size_t(id)].dtype);
        if (!bytes.ok()) return Prefix(bytes.status(), n.title);
      }
      maker_[size_t(id)] = self;
      ValueOf({work, o}) = id;
      n.out.push_back(id);
    }
    node_of_[size_t(work)] = self;
    n.priority = PriorityOf(x);
    plan_->prioritized = plan_->prioritized || n.priority != 0;
    AddNode(std::move(n), scratch);
    return SendOutputs(work);
  }

  void AddNode(PlanNode n, uint64_t scratch) {
    plan_->nodes.push_back(std::move(n));
    shapes_.scratch.push_back({scratch, 0});
  }

  // A node that only shows its input under other dims need not run if the input is plan memory, a
  // constant or a feed.
  bool MakeViews(const WorkNode& x, int32_t work, const PlanNode& n) {
    const Node& node = *x.node;
    if (node.n_out() == 0 || !x.controls.empty()) return false;
    std::vector<int32_t> from;
    for (size_t o = 0; o < node.op().outputs.size(); ++o) {
      int32_t a = x.kernel->view[o];
      if (a < 0 || node.op().stateful) return false;
      for (uint32_t k = 0; k < node.out_at()[o + 1] - node.out_at()[o]; ++k) from.push_back(n.in[node.in_at()[size_t(a)] + k]);
    }
    for (size_t o = 0; o < from.size(); ++o) {
      const PlanValue& f = plan_->values[size_t(from[o])];
      const DTypeInfo* info = FindDType(f.dtype);
      if (Held({work, int32_t(o)}) || f.kind == PlanValue::kHeld || !x.shapes[o].known() || !ShapeOf(from[o]).known() || !info ||
          !info->plain || f.dtype != node.out_type(int32_t(o))) {
        return false;
      }
    }
    for (size_t o = 0; o < from.size(); ++o) {
      PlanValue v = plan_->values[size_t(from[o])];
      Tensor constant;
      if (v.kind == PlanValue::kConst) {
        auto t = shapes_.values[size_t(from[o])].constant.Reshape(x.shapes[o].dims().data(), x.shapes[o].rank());
        if (!t.ok()) return false;  // the kernel will report the error
        constant = *std::move(t);
      } else if (v.kind == PlanValue::kFeed) {
        v.kind = PlanValue::kFeedView;
      }
      if (v.view_of < 0) v.view_of = from[o];
      int32_t id = Add(v, {work, int32_t(o)}, x.shapes[o], std::move(constant));
      maker_[size_t(id)] = maker_[size_t(from[o])];
      ValueOf({work, int32_t(o)}) = id;
    }
    return true;
  }

  // Notes for reports.
  void Note() {
    plan_->notes = std::move(w_.notes);
    plan_->memory = std::move(w_.memory);
    for (const WorkNode& n : w_.nodes) {
      if (n.node && n.constant && !n.dead && n.node->op().role != "const" && !n.node->op().once) plan_->notes.folded.push_back(n.node);
    }
  }

  WorkGraph& w_;
  StateCache* states_;
  std::unique_ptr<Plan> plan_;
  Crossings crossings_;
  PlanShapes shapes_;
  std::vector<size_t> first_output_;                      // work node -> its first output in the next two vectors
  std::vector<int32_t> value_of_;                         // output -> value in the memory where it is made
  std::vector<uint8_t> held_;                             // output -> whether it must have a tensor of its own
  std::vector<int32_t> node_of_;                          // work node -> plan node
  std::vector<int32_t> leads_to_;                         // work node -> the work node to wait for in its place, -1 if none
  std::vector<int32_t> maker_;                            // value -> plan node, -1 if none
  std::vector<WorkEdge> edges_;                           // value -> its edge, in whatever memory it lies
  std::map<std::pair<int32_t, int32_t>, int32_t> moved_;  // value, location -> the copy there
};

}  // namespace

StatusOr<std::unique_ptr<Plan>> Emit(WorkGraph* w, StateCache* states, std::vector<WorkEdge>* edges) {
  Emitter emitter(w, states);
  ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, emitter.Run());
  *edges = emitter.TakeEdges();
  return plan;
}

}  // namespace thalweg
