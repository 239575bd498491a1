// From the work graph, placed, to the flat plan: copies between devices, order, kinds of values, in-place pairs, offsets, engine.
#include <algorithm>
#include <map>
#include <set>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/plan/memory_plan.h"
#include "framework/plan/plan.h"
#include "framework/plan/work_graph.h"
#include "framework/runtime/evaluate.h"

namespace thalweg {
namespace {

// Up to here the exact "is over before" relation is worth its n^2 bits; larger counted plans reuse no memory across branches.
constexpr size_t kMostForAncestors = 4096;

class Emitter {
 public:
  Emitter(WorkGraph* w, StateCache* states) : w_(*w), states_(states), plan_(std::make_unique<Plan>()) {}

  StatusOr<std::unique_ptr<Plan>> Run() {
    ASSIGN_OR_RETURN(plan_->host, w_.runtime().host_device());
    value_of_.resize(w_.nodes.size());
    node_of_.assign(w_.nodes.size(), -1);
    leads_to_.assign(w_.nodes.size(), -1);
    for (size_t i = 0; i < w_.nodes.size(); ++i) value_of_[i].assign(w_.nodes[i].shapes.size(), -1);
    RETURN_IF_ERROR(EvaluateOnce());
    RETURN_IF_ERROR(PrunePass(&w_));
    MarkHeld();
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (n.dead) continue;
      Status s = EmitNode(int32_t(i));
      if (!s.ok()) return n.node ? OfNode(n.node->name(), s) : s;
      leads_to_[i] = LeadsTo(int32_t(i));
    }
    for (size_t i = 0; i < w_.feeds.size(); ++i) {
      int32_t n = w_.feeds[i];
      plan_->feeds.push_back(n < 0 ? -1 : value_of_[size_t(n)][0]);
    }
    for (const WorkEdge& e : w_.fetches) {
      ASSIGN_OR_RETURN(int32_t v, ValueAt(e, 0));
      plan_->values[size_t(v)].fetched = true;
      plan_->fetches.push_back(v);
    }
    MarkHeavy();
    ChooseEngine();
    CountReaders();
    RETURN_IF_ERROR(PlanMemory());
    Finish();
    return std::move(plan_);
  }

 private:
  // Handles and the like: run now, a constant from then on.
  Status EvaluateOnce() {
    for (WorkNode& n : w_.nodes) {
      if (n.dead || n.constant || !n.node || !n.node->op().once || !n.in.empty()) continue;
      NodeRun run = RunOf(n);
      ASSIGN_OR_RETURN(n.values, states_->Once(run));
      n.constant = true;
    }
    return Status();
  }

  NodeRun RunOf(const WorkNode& n) const {
    NodeRun run;
    run.node = n.node;
    run.kernel = n.kernel;
    run.device = n.device;
    run.types = n.node->types().data();
    ResolveArguments(&run);
    if (!run.opens()) return run;
    for (const WorkEdge& e : n.in) run.variables.push_back(w_.nodes[size_t(e.node)].handles[size_t(e.port)].shape);
    return run;
  }

  int32_t Location(Device* d) {
    if (d->host_memory()) return 0;
    for (size_t i = 0; i < plan_->devices.size(); ++i) {
      if (plan_->devices[i] == d) return int32_t(i) + 1;
    }
    plan_->devices.push_back(d);
    return int32_t(plan_->devices.size());
  }

  // held_[node][port]: the value must have a tensor of its own. A view of such a value passes the wish on to what it is a view of.
  void MarkHeld() {
    held_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) held_[i].assign(w_.nodes[i].shapes.size(), 0);
    auto mark = [&](const WorkEdge& e) { held_[size_t(e.node)][size_t(e.port)] = 1; };
    for (const WorkEdge& e : w_.fetches) mark(e);
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
          if (held_[i][node.out_at()[o] + k]) mark(n.in[node.in_at()[size_t(a)] + k]);
        }
      }
    }
  }

  int32_t AddValue(PlanValue v) {
    if (v.shape.known() && v.dtype) {
      auto count = CountElements(v.shape.dims().data(), v.shape.rank());
      auto bytes = CountBytes(v.shape.dims().data(), v.shape.rank(), v.dtype);
      if (count.ok() && bytes.ok()) {
        v.count = uint64_t(*count);
        v.bytes = uint64_t(*bytes);
      }
    }
    plan_->values.push_back(std::move(v));
    maker_.push_back(-1);
    same_storage_.push_back(-1);
    return int32_t(plan_->values.size()) - 1;
  }

  // The plan's value for an edge, in the memory of a location; adds the copies that this takes.
  StatusOr<int32_t> ValueAt(const WorkEdge& e, int32_t location) {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    int32_t& v = value_of_[size_t(e.node)][size_t(e.port)];
    if (v < 0 && n.constant) {
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.constant = n.values[size_t(e.port)];
      c.dtype = c.constant.dtype();
      c.shape = c.constant.shape();
      v = AddValue(std::move(c));
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
      ASSIGN_OR_RETURN(c.constant, plan_->devices[size_t(location - 1)]->FromHost(from.constant));
      c.dtype = from.dtype;
      c.shape = from.shape;
      return moved_[{v, location}] = AddValue(std::move(c));
    }
    if (from.location != 0 && location != 0) {  // between two devices: by way of the host
      ASSIGN_OR_RETURN(int32_t on_host, ValueAt(e, 0));
      return moved_[{v, location}] = AddCopy(on_host, location, held_[size_t(e.node)][size_t(e.port)]);
    }
    return moved_[{v, location}] = AddCopy(v, location, held_[size_t(e.node)][size_t(e.port)]);
  }

  int32_t AddCopy(int32_t from, int32_t location, bool held) {
    PlanNode n;
    n.kind = location == 0 ? PlanNode::kCopyOut : PlanNode::kCopyIn;
    const PlanValue& f = plan_->values[size_t(from)];
    n.run.device = plan_->devices[size_t((location ? location : f.location) - 1)];
    PlanValue v;
    v.dtype = f.dtype;
    v.shape = f.shape;
    v.location = location;
    v.kind = v.shape.known() && !held ? PlanValue::kBlock : PlanValue::kHeld;
    n.title = StrCat("copy of a value ", location == 0 ? "from " : "to ", n.run.device->name(), ":");
    int32_t to = AddValue(std::move(v));
    maker_[size_t(to)] = int32_t(plan_->nodes.size());
    n.in = {from};
    n.out = {to};
    AddDependency(from, &n);
    plan_->nodes.push_back(std::move(n));
    return to;
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
      v.kind = PlanValue::kFeed;
      v.feed = x.feed;
      v.dtype = x.out_types[0];
      v.shape = x.shapes[0];
      value_of_[size_t(work)][0] = AddValue(std::move(v));
      return Status();
    }
    if (x.constant) return Status();  // made when somebody reads it
    const Node& node = *x.node;
    const KernelDef& kernel = *x.kernel;
    int32_t device_location = Location(x.device);
    PlanNode n;
    n.run = RunOf(x);
    for (int32_t i = 0; i < node.n_in(); ++i) {
      ASSIGN_OR_RETURN(int32_t v, ValueAt(x.in[size_t(i)], n.run.host_in[size_t(i)] ? 0 : device_location));
      n.in.push_back(v);
    }
    if (MakeViews(x, work, n)) return Status();

    // ValueAt may have added copy nodes, so only now is this node's own place known.
    for (int32_t v : n.in) AddDependency(v, &n);
    AddControls(work, &n);
    n.cheap = kernel.spec.cheap;
    n.title = StrCat(node.title(), " on ", x.device->kind(), ":", x.device->index(), ":");
    bool known = true;
    std::vector<tw_shape> shapes;
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
    ASSIGN_OR_RETURN(n.run.state, states_->State(n.run, shapes));
    n.dynamic = !outputs_known || !known;  // the shape rule judges every step's sizes, also where nothing follows from them
    if (known && outputs_known) {
      ASSIGN_OR_RETURN(n.scratch, PrepareScratch(n.run, shapes));
    }
    if (n.dynamic) {
      n.attrs = std::make_unique<CAttrs>();
      node.FillC(n.attrs.get());
    }
    bool given = false;
    for (size_t o = 0; o < node.op().outputs.size(); ++o) given = given || kernel.view[o] >= 0;
    n.given = given;
    int32_t self = int32_t(plan_->nodes.size());
    for (int32_t o = 0; o < node.n_out(); ++o) {
      PlanValue v;
      v.dtype = node.out_type(o);
      v.shape = x.shapes[size_t(o)];
      v.location = n.run.host_out[size_t(o)] ? 0 : device_location;
      const DTypeInfo* info = FindDType(v.dtype);
      bool block = v.shape.known() && !held_[size_t(work)][size_t(o)] && !given && info && info->plain;
      v.kind = block ? PlanValue::kBlock : PlanValue::kHeld;
      int32_t id = AddValue(std::move(v));
      if (block || plan_->values[size_t(id)].shape.known()) {
        // A known shape that cannot be is an error now, not when memory is asked for.
        const Shape& s = plan_->values[size_t(id)].shape;
        auto bytes = CountBytes(s.dims().data(), s.rank(), plan_->values[size_t(id)].dtype);
        if (!bytes.ok()) return Prefix(bytes.status(), n.title);
      }
      maker_[size_t(id)] = self;
      value_of_[size_t(work)][size_t(o)] = id;
      n.out.push_back(id);
    }
    node_of_[size_t(work)] = self;
    plan_->nodes.push_back(std::move(n));
    return Status();
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
      if (held_[size_t(work)][o] || f.kind == PlanValue::kHeld || !x.shapes[o].known() || !f.shape.known() || !info || !info->plain ||
          f.dtype != node.out_type(int32_t(o))) {
        return false;
      }
    }
    for (size_t o = 0; o < from.size(); ++o) {
      PlanValue v = plan_->values[size_t(from[o])];
      if (v.kind == PlanValue::kConst) {
        auto t = v.constant.Reshape(x.shapes[o].dims().data(), x.shapes[o].rank());
        if (!t.ok()) return false;  // the kernel will say what is wrong
        v.constant = *std::move(t);
      } else if (v.kind == PlanValue::kFeed) {
        v.kind = PlanValue::kFeedView;
      }
      v.shape = x.shapes[o];
      int32_t id = AddValue(std::move(v));
      same_storage_[size_t(id)] = Root(from[o]);  // not from[o]: chains of views stay short
      maker_[size_t(id)] = maker_[size_t(from[o])];
      value_of_[size_t(work)][o] = id;
    }
    return true;
  }

  void MarkHeavy() {
    constexpr uint64_t kWorth = 64 << 10;  // bytes touched: about 10 us of a memory-bound kernel
    for (PlanNode& n : plan_->nodes) {
      uint64_t bytes = 0;
      for (int32_t v : n.in) bytes += plan_->values[size_t(v)].bytes;
      for (int32_t v : n.out) bytes += plan_->values[size_t(v)].bytes;
      n.heavy = bytes >= kWorth;
    }
  }

  void ChooseEngine() {
    plan_->counted = false;
    const PlanOptions& o = *w_.options;
    bool needs_counts = false;
    for (const PlanNode& n : plan_->nodes) needs_counts = needs_counts || (n.run.kernel && n.run.kernel->spec.async);
    if (o.engine == "fixed") {
      plan_->counted = needs_counts;
    } else if (o.engine == "counted") {
      plan_->counted = true;
    } else {
      plan_->counted = needs_counts || (o.threads > 1 && WorthSharing());
    }
  }

  // Some nodes can run side by side, and what they touch outweighs the hand-over. Loops inside kernels use the threads either way.
  bool WorthSharing() {
    std::vector<int32_t> depth(plan_->nodes.size(), 0);
    std::map<int32_t, int32_t> heavy_at;
    bool blocking = false;
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      const PlanNode& n = plan_->nodes[i];
      for (int32_t k : n.next) depth[size_t(k)] = std::max(depth[size_t(k)], depth[i] + 1);
      if (n.heavy) ++heavy_at[depth[i]];
      blocking = blocking || (n.run.kernel && n.run.kernel->spec.may_block) || n.kind != PlanNode::kKernel;
    }
    int32_t wide = 0, levels = int32_t(heavy_at.size());
    for (auto& [d, count] : heavy_at) wide += count > 1;
    return (blocking && plan_->nodes.size() > 1) || (levels > 0 && wide * 2 >= levels);
  }

  int32_t Root(int32_t v) const {
    while (same_storage_[size_t(v)] >= 0) v = same_storage_[size_t(v)];
    return v;
  }

  void CountReaders() {
    for (PlanNode& n : plan_->nodes) {
      for (int32_t v : n.in) {
        if (plan_->values[size_t(v)].kind == PlanValue::kHeld) n.held_in.push_back(v);
      }
      std::sort(n.held_in.begin(), n.held_in.end());
      n.held_in.erase(std::unique(n.held_in.begin(), n.held_in.end()), n.held_in.end());
      for (int32_t v : n.held_in) ++plan_->values[size_t(v)].readers;
    }
  }

  Status PlanMemory() {
    size_t n_nodes = plan_->nodes.size();
    Ancestors ancestors;
    bool counted_large = false;
    if (plan_->counted) {
      if (n_nodes <= kMostForAncestors) {
        std::vector<std::vector<int32_t>> next;
        for (const PlanNode& n : plan_->nodes) next.push_back(n.next);
        ancestors = FindAncestors(next);
      } else {
        counted_large = true;
      }
    }
    auto before = [&](int32_t a, int32_t b) {  // a is certainly over when b starts
      if (!plan_->counted) return a < b;
      if (counted_large) return false;
      return (ancestors[size_t(b)][size_t(a) / 64] >> (size_t(a) % 64) & 1) != 0;
    };
    // Storages per location, in the order of their makers.
    std::vector<std::vector<Storage>> storages(plan_->devices.size() + 1);
    std::vector<std::pair<int32_t, int32_t>> place(plan_->values.size(), {-1, -1});  // root value -> location, index
    auto storage = [&](int32_t v) -> Storage& {
      auto [l, i] = place[size_t(Root(v))];
      return storages[size_t(l)][size_t(i)];
    };
    // Who reads each root, views included.
    std::vector<std::vector<int32_t>> readers(plan_->values.size());
    for (size_t i = 0; i < n_nodes; ++i) {
      for (int32_t v : plan_->nodes[i].in) {
        std::vector<int32_t>& r = readers[size_t(Root(v))];
        if (r.empty() || r.back() != int32_t(i)) r.push_back(int32_t(i));
      }
    }
    std::vector<std::pair<int32_t, std::pair<int32_t, int32_t>>> scratch;  // node -> location, index
    for (size_t i = 0; i < n_nodes; ++i) {
      PlanNode& n = plan_->nodes[i];
      for (size_t o = 0; o < n.out.size(); ++o) {
        int32_t v = n.out[o];
        PlanValue& value = plan_->values[size_t(v)];
        if (value.kind != PlanValue::kBlock) continue;
        plan_->unplanned_bytes += value.bytes;
        if (int32_t x = InPlaceInput(n, int32_t(i), o, readers, before); x >= 0) {
          int32_t root = Root(x);
          same_storage_[size_t(v)] = root;
          // Whoever used the memory so far is over before this node, so only this node and what follows still counts.
          Storage& s = storage(root);
          s.users = readers[size_t(v)];
          s.users.push_back(int32_t(i));
          readers[size_t(root)] = readers[size_t(v)];
          continue;
        }
        Storage s;
        s.bytes = value.bytes;
        s.first = int32_t(i);
        s.users = {int32_t(i)};
        s.users.insert(s.users.end(), readers[size_t(v)].begin(), readers[size_t(v)].end());
        auto& list = storages[size_t(value.location)];
        place[size_t(v)] = {value.location, int32_t(list.size())};
        list.push_back(std::move(s));
      }
      if (n.scratch) {
        int32_t l = Location(n.run.device);
        Storage s;
        s.bytes = n.scratch;
        s.first = int32_t(i);
        s.users = {int32_t(i)};
        scratch.push_back({int32_t(i), {l, int32_t(storages[size_t(l)].size())}});
        storages[size_t(l)].push_back(std::move(s));
      }
    }
    if (counted_large) {  // nothing is known to be over before anything else: each its own place
      for (auto& list : storages) {
        for (Storage& s : list) s.users.push_back(INT32_MAX);
      }
    }
    for (auto& list : storages) plan_->block_bytes.push_back(PlanOffsets(&list, counted_large ? Ancestors() : ancestors));
    for (size_t v = 0; v < plan_->values.size(); ++v) {
      if (plan_->values[v].kind == PlanValue::kBlock) plan_->values[v].offset = storage(int32_t(v)).offset;
    }
    for (auto& [node, where] : scratch)
      plan_->nodes[size_t(node)].scratch_offset = storages[size_t(where.first)][size_t(where.second)].offset;
    return Status();
  }

  // The input whose memory output o may take over; -1: none.
  template <class Before>
  int32_t InPlaceInput(const PlanNode& n, int32_t self, size_t o, const std::vector<std::vector<int32_t>>& readers, const Before& before) {
    if (n.kind != PlanNode::kKernel) return -1;
    const Node& node = *n.run.node;
    const PlanValue& out = plan_->values[size_t(n.out[o])];
    size_t arg = 0;
    while (node.out_at()[arg + 1] <= o) ++arg;
    for (int32_t a : n.run.kernel->inplace[arg]) {
      uint32_t i = node.in_at()[size_t(a)];
      if (node.in_at()[size_t(a) + 1] != i + 1) continue;
      int32_t x = n.in[i];
      const PlanValue& in = plan_->values[size_t(x)];
      if (in.kind != PlanValue::kBlock || in.location != out.location || in.bytes != out.bytes || out.bytes == 0) continue;
      int32_t root = Root(x);
      // From the end: of many readers the last one tells most often.
      const std::vector<int32_t>& all = readers[size_t(root)];
      const bool last = std::all_of(all.rbegin(), all.rend(), [&](int32_t r) { return r == self || before(r, self); });
      // The node must not read the same memory through another input, nor have given it to another output.
      int32_t uses = 0;
      for (int32_t v : n.in) uses += Root(v) == root;
      for (size_t p = 0; p < o; ++p) uses += Root(n.out[p]) == root;
      if (last && uses == 1) return x;
    }
    return -1;
  }

  void Finish() {
    for (PlanNode& n : plan_->nodes) {
      if (n.kind != PlanNode::kKernel) continue;
      bool simple = !n.dynamic && !n.run.opens() && n.held_in.empty() && !n.given && !n.run.kernel->spec.async &&
                    !n.run.kernel->spec.may_block && n.run.device->host_memory();
      for (int32_t v : n.out) simple = simple && plan_->values[size_t(v)].kind == PlanValue::kBlock;
      n.simple = simple;
    }
    if (!plan_->counted) return;
    for (size_t i = 0; i < plan_->nodes.size(); ++i) {
      plan_->pending.push_back(plan_->nodes[i].pending);
      if (plan_->nodes[i].pending == 0) plan_->roots.push_back(int32_t(i));
    }
  }

  WorkGraph& w_;
  StateCache* states_;
  std::unique_ptr<Plan> plan_;
  std::vector<std::vector<int32_t>> value_of_;  // work node, port -> value, where it is made
  std::vector<std::vector<uint8_t>> held_;
  std::vector<int32_t> node_of_;                          // work node -> plan node
  std::vector<int32_t> leads_to_;                         // work node -> the work node to wait for in its place, -1: none
  std::vector<int32_t> maker_;                            // value -> plan node, -1: none
  std::vector<int32_t> same_storage_;                     // value -> the value whose memory it shows, -1: its own
  std::map<std::pair<int32_t, int32_t>, int32_t> moved_;  // value, location -> the copy there
};

}  // namespace

StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states) {
  WorkGraph w;
  w.options = &options;
  w.feed_shapes = feed_shapes;
  RETURN_IF_ERROR(BuildWorkGraph(&graph, signature, &w));
  for (const Pass& pass : Passes()) {
    const auto& off = options.disabled_passes;
    if (pass.optional && (!options.optimize || std::find(off.begin(), off.end(), pass.name) != off.end())) continue;
    RETURN_IF_ERROR(pass.run(&w));
  }
  return Emitter(&w, states).Run();
}

}  // namespace thalweg
