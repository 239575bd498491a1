// From the work graph, placed, to the flat plan: copies between devices, order, kinds of values, in-place pairs, offsets, engine.
#include <algorithm>
#include <map>
#include <set>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/plan/batches.h"
#include "framework/plan/emit_frames.h"
#include "framework/plan/frame_plan.h"
#include "framework/plan/layout.h"
#include "framework/plan/order.h"
#include "framework/plan/part.h"
#include "framework/plan/plan.h"
#include "framework/plan/runs.h"
#include "framework/plan/shape_source.h"
#include "framework/plan/work_graph.h"
#include "framework/runtime/evaluate.h"

namespace thalweg {
namespace {

// An int attribute "_priority", which ops do not have but nodes may.
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

// Of a part: the highest of its nodes.
int32_t PriorityOf(const WorkNode& x) {
  if (!x.part) return PriorityOf(*x.node);
  int32_t highest = INT32_MIN;
  for (const PartGraph::Member& m : x.part->graph().members) highest = std::max(highest, PriorityOf(*m.node));
  return highest;
}

class Emitter {
 public:
  Emitter(WorkGraph* w, StateCache* states) : w_(*w), states_(states), plan_(std::make_unique<Plan>()) {}

  StatusOr<std::unique_ptr<Plan>> Run() {
    ASSIGN_OR_RETURN(plan_->host, w_.runtime().host_device());
    plan_->takes_feeds = w_.signature->takes_feeds;
    node_of_.assign(w_.nodes.size(), -1);
    leads_to_.assign(w_.nodes.size(), -1);
    CountOutputs();
    FindCrossings();
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
      const int32_t there = w_.signature->stays ? WhereItStays(w_.fetches[k]) : device ? Location(device) : 0;
      ASSIGN_OR_RETURN(int32_t v, ValueAt(w_.fetches[k], there));
      plan_->values[size_t(v)].fetched = true;
      plan_->fetches.push_back(v);
    }
    PassFetches();
    CountReaders();
    RETURN_IF_ERROR(Arrange());
    Finish();
    Note();
    plan_->shapes = std::make_shared<PlanShapes>(std::move(shapes_));
    return std::move(plan_);
  }

  std::vector<WorkEdge> TakeEdges() { return std::move(edges_); }

 private:
  int32_t Location(Device* d) {
    if (d->host_memory()) return 0;
    for (size_t i = 0; i < plan_->devices.size(); ++i) {
      if (plan_->devices[i] == d) return int32_t(i) + 1;
    }
    plan_->devices.push_back(d);
    return int32_t(plan_->devices.size());
  }

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

  // Held: the value must have a tensor of its own. A view of such a value passes the wish on to what it is a view of.
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

  // Whether a value that goes in or out is better copied than a tensor of its own.
  bool IsPassed(const WorkEdge& e) const {
    if (!plan_->takes_feeds || !runs_.empty()) return false;  // some nodes are on devices with memory of their own
    const WorkNode& n = w_.nodes[size_t(e.node)];
    const uint32_t dtype = n.out_types[size_t(e.port)];
    const DTypeInfo* info = FindDType(dtype);
    const Shape& shape = n.shapes[size_t(e.port)];
    if (n.constant || !info || !info->plain || !shape.known()) return false;
    const auto bytes = CountBytes(shape.dims().data(), shape.rank(), dtype);
    return bytes.ok() && uint64_t(*bytes) <= kMostPassed;
  }

  // What is fetched and has no tensor stays as it is until the step is over.
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

  // Values that are needed in other memory than they are made in, by way of queues: each has a tensor of its own, which stays until its
  // copies are over, and so does not hold up whoever would use a block's memory next.
  void FindCrossings() {
    const auto away = [](const WorkNode& n) { return n.node && !n.dead && !n.constant && !n.device->host_memory(); };
    if (w_.signature->feed_devices.empty() && w_.signature->fetch_devices.empty() && std::none_of(w_.nodes.begin(), w_.nodes.end(), away)) {
      return;
    }
    runs_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (n.node && !n.dead && !n.constant) runs_[i] = RunOf(w_, n);
    }
    FindLandings();
    wanted_.resize(value_of_.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      for (size_t k = 0; runs_[i].device && k < w_.nodes[i].in.size(); ++k) {
        if (!TakesAnywhere(i, k)) AddCrossing(w_.nodes[i].in[k], runs_[i].host_in[k] ? nullptr : runs_[i].device);
      }
    }
    for (size_t k = 0; k < w_.fetches.size() && !w_.signature->stays; ++k) AddCrossing(w_.fetches[k], w_.signature->fetch_device(k));
  }

  // What kernels give wherever it lies comes to the device of its first reader that is on one: later readers, and the host, get copies.
  void FindLandings() {
    const auto land = [&](const WorkEdge& e, Device* device) {
      NodeRun& run = runs_[size_t(e.node)];
      const WorkNode& maker = w_.nodes[size_t(e.node)];
      if (!device || device->host_memory() || !run.device || run.anywhere_out.empty() || !run.anywhere_out[size_t(e.port)]) return;
      if (!FindDType(maker.out_types[size_t(e.port)])->plain) return;
      run.lands.resize(maker.shapes.size(), nullptr);
      if (!run.lands[size_t(e.port)]) run.lands[size_t(e.port)] = device;
    };
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      for (size_t k = 0; runs_[i].device && k < w_.nodes[i].in.size(); ++k) {
        if (!runs_[i].host_in[k]) land(w_.nodes[i].in[k], runs_[i].device);
      }
    }
    for (size_t k = 0; k < w_.fetches.size(); ++k) land(w_.fetches[k], w_.signature->fetch_device(k));
  }

  bool TakesAnywhere(size_t work, size_t input) const {
    return !runs_.empty() && !runs_[work].anywhere_in.empty() && runs_[work].anywhere_in[input];
  }

  // device: where the value is needed; NULL: in host memory.
  void AddCrossing(const WorkEdge& e, Device* device) {
    const WorkNode& maker = w_.nodes[size_t(e.node)];
    if (maker.constant) return;  // it is there before anything runs
    const int32_t there = device ? Location(device) : 0;
    const int32_t here = WhereMade(e);
    if (here == there) return;
    Held(e) = 1;
    if (here && maker.node) wanted_[first_output_[size_t(e.node)] + size_t(e.port)].push_back(there);
  }

  int32_t WhereMade(const WorkEdge& e) {
    const WorkNode& maker = w_.nodes[size_t(e.node)];
    const NodeRun& run = runs_[size_t(e.node)];
    if (!run.lands.empty() && run.lands[size_t(e.port)]) return Location(run.lands[size_t(e.port)]);
    Device* device = maker.node ? run.device : w_.signature->feed_device(size_t(maker.feed));
    return !device || (maker.node && run.host_out[size_t(e.port)]) ? 0 : Location(device);
  }

  // What leaves a device does so as soon as it is made, while its next kernels run, and makes room there; what comes to one does when it is
  // first needed.
  Status SendOutputs(int32_t work) {
    for (size_t o = 0; !wanted_.empty() && o < w_.nodes[size_t(work)].shapes.size(); ++o) {
      for (int32_t location : wanted_[first_output_[size_t(work)] + o]) {
        RETURN_IF_ERROR(ValueAt({work, int32_t(o)}, location).status());
      }
    }
    return Status();
  }

  // edge: what the value is, wherever it lies.
  int32_t AddValue(const PlanValue& v, const WorkEdge& edge, Shape shape, Tensor constant = {}) {
    PlanShapes::Value sized;
    sized.shape = std::move(shape);
    sized.constant = std::move(constant);
    SetSizes(v.dtype, &sized);
    plan_->values.push_back(v);
    shapes_.values.push_back(std::move(sized));
    edges_.push_back(edge);
    maker_.push_back(-1);
    return int32_t(plan_->values.size()) - 1;
  }
  // Where the value is made. REQUIRES: it is made already.
  int32_t LocationOf(const WorkEdge& e) {
    const int32_t v = ValueOf(e);
    return v < 0 ? 0 : plan_->values[size_t(v)].location;
  }
  // Of what a function hands on as it came: where it was copied to, unless the host reads it, so that the next call finds it there.
  int32_t WhereItStays(const WorkEdge& e) {
    const int32_t v = ValueOf(e);
    if (w_.nodes[size_t(e.node)].node || v < 0 || plan_->values[size_t(v)].location != 0) return LocationOf(e);
    int32_t there = 0;
    for (const PlanNode& n : plan_->nodes) {
      if (std::find(n.in.begin(), n.in.end(), v) == n.in.end()) continue;
      if (n.kind != PlanNode::kCopyIn) return 0;
      there = plan_->values[size_t(n.out[0])].location;
    }
    return there;
  }
  const Shape& ShapeOf(int32_t v) const { return shapes_.values[size_t(v)].shape; }

  // The plan's value for an edge, in the memory of a location; adds the copies that this takes.
  StatusOr<int32_t> ValueAt(const WorkEdge& e, int32_t location) {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    int32_t& v = ValueOf(e);
    if (v < 0 && n.constant) {
      const Tensor& value = n.values[size_t(e.port)];
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.dtype = value.dtype();
      v = AddValue(c, e, value.shape(), value);
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
      return moved_[{v, location}] = AddValue(c, e, ShapeOf(v), *std::move(moved));
    }
    const bool between = from.location != 0 && location != 0;
    if (between && !plan_->devices[size_t(from.location - 1)]->Reaches(*plan_->devices[size_t(location - 1)])) {  // by way of the host
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
    int32_t to = AddValue(v, edge, Shape(ShapeOf(from)));
    maker_[size_t(to)] = int32_t(plan_->nodes.size());
    n.in = {from};
    n.out = {to};
    AddDependency(from, &n);
    AddCopied(&n);
    AddNode(std::move(n), 0);
    return to;
  }

  // Inputs that copies make, or that may be on their way to a device.
  void AddCopied(PlanNode* n) {
    for (int32_t v : n->in) {
      const int32_t m = maker_[size_t(v)];
      if (m < 0) continue;
      const bool lands = !plan_->nodes[size_t(m)].run.lands.empty() && plan_->values[size_t(v)].location != 0;
      if (lands || plan_->nodes[size_t(m)].kind != PlanNode::kKernel) n->copied_in.push_back(v);
    }
  }

  // `n`, the node about to be added, waits for whoever makes value v.
  void AddDependency(int32_t v, PlanNode* n) {
    int32_t m = maker_[size_t(v)];
    if (m < 0) return;
    AddOrder(m, n);
  }
  void AddOrder(int32_t before, PlanNode* n) {
    std::vector<int32_t>& next = plan_->nodes[size_t(before)].next;
    int32_t self = int32_t(plan_->nodes.size());
    if (!next.empty() && next.back() == self) return;  // nodes are added in order, so it is nowhere else
    next.push_back(self);
    ++n->pending;
  }
  // Feeds, constants and views run nothing themselves: whoever reads them waits for what they wait for.
  template <class F>
  void ForEachAwaited(int32_t work, F&& f) {
    const WorkNode& x = w_.nodes[size_t(work)];
    for (int32_t c : x.controls) f(leads_to_[size_t(c)]);
    if (x.constant) return;  // what its inputs wait for does not concern it: see InferPass
    for (const WorkEdge& e : x.in) f(leads_to_[size_t(e.node)]);
  }
  // The node to wait for in place of `work`: the only one that it waits for itself where it runs nothing, so that nobody walks along
  // chains of views. -1: none.
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
  // Control inputs, and those of the constants and views that are read.
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
      if (Device* d = w_.signature->feed_device(size_t(x.feed))) v.location = Location(d);
      ValueOf({work, 0}) = AddValue(v, {work, 0}, x.shapes[0]);
      return Status();
    }
    if (x.constant) return Status();  // made when somebody reads it
    const Node& node = *x.node;
    const KernelDef& kernel = *x.kernel;
    int32_t device_location = Location(x.device);
    PlanNode n;
    n.run = RunOf(w_, x);
    if (!runs_.empty()) n.run.lands = runs_[size_t(work)].lands;
    n.part = x.part;
    n.in.reserve(x.in.size());
    n.out.reserve(x.shapes.size());
    for (int32_t i = 0; i < node.n_in(); ++i) {
      const bool anywhere = TakesAnywhere(size_t(work), size_t(i));
      const int32_t there = anywhere ? LocationOf(x.in[size_t(i)]) : n.run.host_in[size_t(i)] ? 0 : device_location;
      ASSIGN_OR_RETURN(int32_t v, ValueAt(x.in[size_t(i)], there));
      n.in.push_back(v);
    }
    if (MakeViews(x, work, n)) return Status();

    // ValueAt may have added copy nodes, so only now is this node's own place known.
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
    n.dynamic = !outputs_known || !known;  // the shape rule judges every step's sizes, also where nothing follows from them
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
      if (!n.run.lands.empty() && n.run.lands[size_t(o)]) v.location = Location(n.run.lands[size_t(o)]);
      const Shape& s = x.shapes[size_t(o)];
      const DTypeInfo* info = FindDType(v.dtype);
      bool block = s.known() && !Held({work, o}) && !given && info && info->plain;
      v.kind = block ? PlanValue::kBlock : PlanValue::kHeld;
      int32_t id = AddValue(v, {work, o}, s);
      if (s.known()) {
        // A known shape that cannot be is an error now, not when memory is asked for.
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

  // A node that only shows its input under other dims needs no run where the input is plan memory, a constant or a feed.
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
        if (!t.ok()) return false;  // the kernel will say what is wrong
        constant = *std::move(t);
      } else if (v.kind == PlanValue::kFeed) {
        v.kind = PlanValue::kFeedView;
      }
      if (v.view_of < 0) v.view_of = from[o];
      int32_t id = AddValue(v, {work, int32_t(o)}, x.shapes[o], std::move(constant));
      maker_[size_t(id)] = maker_[size_t(from[o])];
      ValueOf({work, int32_t(o)}) = id;
    }
    return true;
  }

  void CountReaders() {
    for (PlanNode& n : plan_->nodes) {
      for (int32_t v : n.in) {
        if (plan_->values[size_t(v)].kind == PlanValue::kHeld) n.held_in.push_back(v);
      }
      std::sort(n.held_in.begin(), n.held_in.end());
      n.held_in.erase(std::unique(n.held_in.begin(), n.held_in.end()), n.held_in.end());
      for (int32_t v : n.held_in) ++plan_->values[size_t(v)].readers;
      // What is fetched stays until the step is over, whoever has read it.
      std::erase_if(n.held_in, [&](int32_t v) { return plan_->values[size_t(v)].fetched; });
    }
  }

  // Its kernel's call is all there is to do, unless it reads values that somebody has to let go.
  bool OnlyCalls(const PlanNode& n) const {
    if (n.kind != PlanNode::kKernel || n.dynamic || n.given || n.run.async || n.run.opens() || !n.copied_in.empty()) return false;
    return !n.run.kernel->spec.may_block && n.run.device->host_memory() && std::all_of(n.out.begin(), n.out.end(), [&](int32_t v) {
      const PlanValue::Kind kind = plan_->values[size_t(v)].kind;
      return kind == PlanValue::kBlock || kind == PlanValue::kPassed;
    });
  }

  // One node after the other, the last reader of a value lets it go. Of those before it only they count that have more to do than to call
  // their kernel, who may want to know whether they are the last: so a value that a thousand small nodes read costs one of them something.
  void LeaveToLastReader() {
    if (plan_->counted || !plan_->batches.empty()) return;
    std::vector<int32_t> last(plan_->values.size(), -1);
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      for (int32_t v : plan_->nodes[i].held_in) last[size_t(v)] = int32_t(i);
    }
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      PlanNode& n = plan_->nodes[i];
      if (n.held_in.empty() || !OnlyCalls(n)) continue;
      std::erase_if(n.held_in, [&](int32_t v) {
        const bool leaves = last[size_t(v)] != int32_t(i);
        if (leaves) --plan_->values[size_t(v)].readers;
        return leaves;
      });
    }
  }

  // Engine, order and memory. What the budget does not allow side by side is tried one node after the other, then in another order.
  Status Arrange() {
    const PlanOptions& o = *w_.options;
    const bool for_memory = o.order == "smallest_peak";
    if (plan_->prioritized && !for_memory) Reorder(OrderByPriority(*plan_), plan_.get(), &shapes_);
    plan_->records = WorthRecording(*plan_, o);
    if (plan_->records && o.order == "auto") Reorder(OrderForRuns(*plan_), plan_.get(), &shapes_);
    MarkHeavy(*plan_, &shapes_);
    plan_->async = NeedsCounts(*plan_);
    plan_->wants_counts = WantsCounts(*plan_, o, shapes_);
    plan_->counted = plan_->wants_counts;
    if (!for_memory) {
      FormBatches(o, plan_.get());
      LayOut(*plan_, &shapes_);
      if (FitsBudget(o, shapes_) && FitsDevices()) return Status();
      plan_->batches.clear();
    }
    plan_->counted = plan_->async || o.engine == "counted";
    plan_->in_turn = plan_->counted;
    LayOut(*plan_, &shapes_);
    if (o.order == "given" || (!for_memory && FitsBudget(o, shapes_) && FitsDevices())) return CheckBudget();
    const uint64_t given = shapes_.total_bytes();
    const std::vector<int32_t> order = OrderForMemory(*plan_, shapes_);
    Reorder(order, plan_.get(), &shapes_);
    LayOut(*plan_, &shapes_);
    plan_->smallest_peak = true;
    if (shapes_.total_bytes() <= given) return CheckBudget();
    std::vector<int32_t> back(order.size());  // small gaps may cost more than the smaller peak gains
    for (size_t k = 0; k < order.size(); ++k) back[size_t(order[k])] = int32_t(k);
    Reorder(back, plan_.get(), &shapes_);
    LayOut(*plan_, &shapes_);
    return CheckBudget();
  }

  // Whether the blocks are within what devices may hold, as far as that is known.
  bool FitsDevices() const {
    for (size_t d = 0; d < plan_->devices.size(); ++d) {
      const uint64_t limit = plan_->devices[d]->pool()->stats().limit, all = plan_->devices[d]->memory();
      const uint64_t most = limit && all ? std::min(limit, all) : std::max(limit, all);
      if (most && shapes_.block_bytes[d + 1] > most) return false;
    }
    return true;
  }

  Status CheckBudget() const {
    if (FitsBudget(*w_.options, shapes_)) return Status();
    std::vector<size_t> largest;
    for (size_t v = 0; v < plan_->values.size(); ++v) {
      if (plan_->values[v].kind == PlanValue::kBlock && plan_->values[v].view_of < 0) largest.push_back(v);
    }
    auto larger = [&](size_t a, size_t b) { return shapes_.values[a].bytes > shapes_.values[b].bytes; };
    const size_t shown = std::min<size_t>(largest.size(), 3);
    std::partial_sort(largest.begin(), largest.begin() + int64_t(shown), largest.end(), larger);
    std::string all;
    for (size_t k = 0; k < shown; ++k) {
      const size_t v = largest[k];
      const WorkEdge& e = edges_[v];
      all += StrCat(k ? ", '" : "'", Shown(Edge{w_.nodes[size_t(e.node)].node, e.port}.text()), "' (", DTypeName(plan_->values[v].dtype),
                    ShapeText(shapes_.values[v].shape.dims().data(), shapes_.values[v].shape.rank()), ", ", shapes_.values[v].bytes,
                    " bytes)");
    }
    return ResourceExhausted("the values of a step need ", shapes_.total_bytes(), " bytes, but the session option 'memory_budget' allows ",
                             w_.options->memory_budget, "; the largest are ", all,
                             "; feed less at once, leave order=auto to be chosen, or allow more");
  }

  // For reports.
  void Note() {
    plan_->notes = std::move(w_.notes);
    for (const WorkNode& n : w_.nodes) {
      if (n.node && n.constant && !n.dead && n.node->op().role != "const" && !n.node->op().once) plan_->notes.folded.push_back(n.node);
    }
  }

  void Finish() {
    LeaveToLastReader();
    for (PlanNode& n : plan_->nodes) n.simple = n.held_in.empty() && OnlyCalls(n);
    if (plan_->records && !plan_->counted) plan_->runs = FindRuns(*plan_);
    if (!plan_->counted) return;
    // Queues are given their work in the plan's order, as far as it is ready.
    for (const Device* d : plan_->devices) plan_->prioritized = plan_->prioritized || d->has_streams();
    for (size_t i = 1; plan_->in_turn && i < plan_->nodes.size(); ++i) {
      std::vector<int32_t>& next = plan_->nodes[i - 1].next;
      if (!next.empty() && next.front() == int32_t(i)) continue;
      next.insert(next.begin(), int32_t(i));
      ++plan_->nodes[i].pending;
    }
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      plan_->pending.push_back(plan_->nodes[i].pending);
      if (plan_->nodes[i].pending == 0) plan_->roots.push_back(int32_t(i));
    }
  }

  WorkGraph& w_;
  StateCache* states_;
  std::unique_ptr<Plan> plan_;
  PlanShapes shapes_;
  std::vector<size_t> first_output_;                      // work node -> its first output in the next two
  std::vector<int32_t> value_of_;                         // output -> value, where it is made
  std::vector<uint8_t> held_;                             // output -> it must have a tensor of its own
  std::vector<NodeRun> runs_;                             // per work node, where some are on devices with memory of their own
  std::vector<std::vector<int32_t>> wanted_;              // output of a device -> other locations where it is needed
  std::vector<int32_t> node_of_;                          // work node -> plan node
  std::vector<int32_t> leads_to_;                         // work node -> the work node to wait for in its place, -1: none
  std::vector<int32_t> maker_;                            // value -> plan node, -1: none
  std::vector<WorkEdge> edges_;                           // value -> what it is, wherever it lies
  std::map<std::pair<int32_t, int32_t>, int32_t> moved_;  // value, location -> the copy there
};

}  // namespace

Plan::Plan() = default;
Plan::~Plan() = default;

static void TakeFixed(WorkGraph* w, Plan* plan) {
  plan->fixed = std::move(w->fixed);
  plan->seen = w->seen;
}

StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states) {
  auto source = std::make_unique<ShapeSource>();
  source->signature = signature;
  source->options = options;
  WorkGraph& w = source->w;
  w.options = &source->options;
  w.feed_shapes = feed_shapes;
  w.states = states;
  RETURN_IF_ERROR(BuildWorkGraph(&graph, source->signature, &w));
  for (const Pass& pass : Passes()) {
    const auto& off = options.disabled_passes;
    if (pass.optional && (!options.optimize || std::find(off.begin(), off.end(), pass.name) != off.end())) continue;
    RETURN_IF_ERROR(pass.run(&w));
  }
  std::unique_ptr<Plan> plan;
  if (w.flow) {
    ASSIGN_OR_RETURN(plan, EmitFrames(&w, states));
    TakeFixed(&w, plan.get());
    return plan;
  }
  Emitter emitter(&w, states);
  ASSIGN_OR_RETURN(plan, emitter.Run());
  TakeFixed(&w, plan.get());
  if (!MayHaveOtherShapes(w)) return plan;
  source->edges = emitter.TakeEdges();
  plan->source = std::move(source);
  return plan;
}

}  // namespace thalweg
