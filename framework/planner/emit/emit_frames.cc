#include "framework/planner/emit/emit_frames.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/plan/frame_plan.h"
#include "framework/planner/emit/layout.h"
#include "framework/planner/emit/plan_values.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {
namespace {

class FrameEmitter {
 public:
  FrameEmitter(WorkGraph* w, StateCache* states)
      : w_(*w), states_(states), plan_(std::make_unique<Plan>()), frames_(std::make_unique<FramePlan>()) {}

  StatusOr<std::unique_ptr<Plan>> Run() {
    ASSIGN_OR_RETURN(plan_->host, w_.runtime().host_device());
    plan_->takes_feeds = w_.signature->takes_feeds;
    plan_->check = w_.options->check;
    for (const WorkFrame& f : w_.frames) frames_->frames.push_back({f.name, f.parent, f.parallel, 0, 0, {}, {}});
    FindLocations();
    node_of_.assign(w_.nodes.size(), -1);
    value_of_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      value_of_[i].assign(w_.nodes[i].shapes.size(), -1);
      if (w_.nodes[i].dead) continue;
      Status s = Emit(int32_t(i));
      if (!s.ok()) return w_.nodes[i].node ? OfNode(*w_.nodes[i].node, s) : s;
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) RETURN_IF_ERROR(CloseLoop(int32_t(i)));
    for (int32_t f : w_.feeds) plan_->feeds.push_back(f < 0 ? -1 : ValueOf({f, 0}));
    for (size_t k = 0; k < w_.fetches.size(); ++k) RETURN_IF_ERROR(Fetch(w_.fetches[k], w_.signature->fetch_device(k)));
    for (int32_t t : w_.targets) {
      if (node_of_[size_t(t)] >= 0) At(node_of_[size_t(t)]).watched = true;
    }
    Count();
    Finish();
    return std::move(plan_);
  }

 private:
  FramePlan::Node& At(int32_t node) { return frames_->nodes[size_t(node)]; }
  // Returns true if the value exists before any node runs: a feed, or a constant that waits for
  // nothing.
  bool IsFixed(const WorkNode& n) const { return !n.node || (n.constant && n.controls.empty()); }

  // Returns true if the node forwards its only input, which needs no kernel.
  static bool Passes(const WorkNode& n) { return n.node->op().algebra.passes == 0 && n.in.size() == 1 && n.device->host_memory(); }

  int32_t Add(const PlanValue& v, Shape shape, Tensor constant = {}) {
    return AddValue(v, std::move(shape), std::move(constant), plan_.get(), &shapes_);
  }

  int32_t AddHeld(uint32_t dtype, const Shape& shape, int32_t location) {
    PlanValue v;
    v.dtype = dtype;
    v.location = location;
    return Add(v, shape);
  }

  // ---- Where values are ----

  int32_t& WhereIs(const WorkEdge& e) { return where_[size_t(e.node)][size_t(e.port)]; }
  static bool Decides(const WorkNode& n) { return n.node && !n.dead && !n.constant && n.flow != Flow::kNone; }

  // Control-flow nodes forward values in the memory where they are. Such a value may move only from
  // host memory to a device, so the iteration ends.
  void FindLocations() {
    where_.resize(w_.nodes.size());
    wants_.resize(w_.nodes.size());
    runs_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& x = w_.nodes[i];
      where_[i].assign(x.shapes.size(), 0);
      wants_[i].assign(x.in.size(), 0);
      if (!x.node) where_[i][0] = LocationOf(w_.signature->feed_device(size_t(x.feed)), plan_.get());
      if (!x.node || x.dead || x.constant || x.flow != Flow::kNone) continue;
      runs_[i] = RunOf(w_, x);
      if (x.device->host_memory()) continue;
      const NodeRun& run = runs_[i];
      for (size_t o = 0; o < where_[i].size(); ++o) where_[i][o] = run.host_out[o] ? 0 : LocationOf(x.device, plan_.get());
      for (size_t k = 0; k < wants_[i].size(); ++k) wants_[i][k] = run.host_in[k] ? 0 : LocationOf(x.device, plan_.get());
    }
    if (plan_->devices.empty()) return;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < w_.nodes.size(); ++i) {
        const WorkNode& x = w_.nodes[i];
        if (Decides(x)) moved = HandOn(int32_t(i)) || moved;
        for (size_t k = 0; k < x.in.size() && !x.dead && !x.constant; ++k) {
          moved = CallFor(x, k, wants_[i][k]) || Land(InputOf(x, k), wants_[i][k]) || moved;
        }
      }
    }
  }

  // Puts the node's outputs where its first input is, or, for a merge, any input.
  bool HandOn(int32_t work) {
    const WorkNode& x = w_.nodes[size_t(work)];
    if (x.flow == Flow::kLoopCond || x.flow == Flow::kControlTrigger || WhereIs({work, 0})) return false;
    int32_t there = WhereIs(x.in[0]);
    for (size_t k = 0; k < x.in.size() && x.flow == Flow::kMerge; ++k) {
      if (!there) there = WhereIs(InputOf(x, k));
    }
    if (!there) return false;
    const size_t data = x.flow == Flow::kSwitch ? 2 : 1;
    for (size_t o = 0; o < data; ++o) where_[size_t(work)][o] = there;
    for (size_t k = 0; k < x.in.size() && (k == 0 || x.flow == Flow::kMerge); ++k) wants_[size_t(work)][k] = there;
    return true;
  }

  // A value that enters a loop, or comes round it, is placed where it is needed: so it is copied
  // before the loop, and an invariant is copied once.
  bool CallFor(const WorkNode& x, size_t k, int32_t there) {
    const WorkEdge e = InputOf(x, k);
    const Flow from = w_.nodes[size_t(e.node)].flow;
    if (!there || (from != Flow::kEnter && from != Flow::kNextIteration) || !Decides(w_.nodes[size_t(e.node)]) || WhereIs(e)) return false;
    WhereIs(e) = there;
    wants_[size_t(e.node)][0] = there;
    return true;
  }

  // If a kernel may give a value in any memory, the value goes to the first device that needs it.
  bool Land(const WorkEdge& e, int32_t there) {
    NodeRun& run = runs_[size_t(e.node)];
    if (!there || WhereIs(e) || run.anywhere_out.empty() || !run.anywhere_out[size_t(e.port)]) return false;
    if (!FindDType(w_.nodes[size_t(e.node)].out_types[size_t(e.port)])->plain) return false;
    run.lands.resize(w_.nodes[size_t(e.node)].shapes.size(), nullptr);
    run.lands[size_t(e.port)] = plan_->devices[size_t(there) - 1];
    WhereIs(e) = there;
    return true;
  }

  static WorkEdge InputOf(const WorkNode& x, size_t k) { return !x.back.empty() && x.back[k].node >= 0 ? x.back[k] : x.in[k]; }

  // Returns a constant in the memory of a location.
  StatusOr<int32_t> ConstantAt(const WorkEdge& e, int32_t location) {
    const int32_t v = ValueOf(e);
    if (location == 0) return v;
    auto [it, is_new] = moved_.emplace(std::make_tuple(e.node, e.port, location), -1);
    if (!is_new) return it->second;
    const Tensor constant = shapes_.values[size_t(v)].constant;
    auto moved = plan_->devices[size_t(location) - 1]->FromHost(constant);
    if (!moved.ok()) return Prefix(moved.status(), StrCat("constant '", Shown(w_.nodes[size_t(e.node)].node->name()), "':"));
    PlanValue c;
    c.kind = PlanValue::kConst;
    c.dtype = constant.dtype();
    c.location = location;
    return it->second = Add(c, constant.shape(), *std::move(moved));
  }

  // Returns the node that copies the value there. Two devices that do not reach each other copy
  // through the host.
  int32_t CopyOf(const WorkEdge& e, int32_t location) {
    auto [it, is_new] = moved_.emplace(std::make_tuple(e.node, e.port, location), -1);
    if (!is_new) return it->second;
    const WorkNode& x = w_.nodes[size_t(e.node)];
    const auto device = [&](int32_t l) { return plan_->devices[size_t(l) - 1]; };
    int32_t here = WhereIs(e), before = -1;  // -1: the node that made the value
    if (here && location && !device(here)->Reaches(*device(location))) {
      before = CopyOf(e, 0);
      here = 0;
    }
    const bool fed = before < 0 && !x.node;
    const int32_t from = before >= 0 ? plan_->nodes[size_t(before)].out[0] : ValueOf(e);
    PlanNode n;
    n.kind = location == 0 ? PlanNode::kCopyOut : here == 0 ? PlanNode::kCopyIn : PlanNode::kCopyPeer;
    n.run.device = device(here ? here : location);
    n.run.node = x.node ? x.node : w_.signature->feeds[size_t(x.feed)].node;
    n.title = StrCat("copy of '", Shown(Edge{n.run.node, e.port}.text()), "'", here ? StrCat(" from ", device(here)->name()) : "",
                     location ? StrCat(" to ", device(location)->name()) : "", ":");
    n.in = {from};
    n.out = {AddHeld(x.out_types[size_t(e.port)], x.shapes[size_t(e.port)], location)};
    FramePlan::Node f;
    f.frame = f.into = x.node ? x.into : 0;
    f.fixed = {fed ? from : -1};
    f.next.resize(1);
    f.fetched = {-1};
    const int32_t self = int32_t(plan_->nodes.size());
    if (!fed) {
      const int32_t maker = before >= 0 ? before : node_of_[size_t(e.node)];
      At(maker).next[before >= 0 ? 0 : size_t(e.port)].push_back({self, 0});
      plan_->nodes[size_t(maker)].next.push_back(self);
    }
    Add(std::move(n), std::move(f));
    return moved_[{e.node, e.port, location}] = self;
  }

  int32_t ValueOf(const WorkEdge& e) {
    int32_t& v = value_of_[size_t(e.node)][size_t(e.port)];
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (v < 0 && n.constant) {
      const Tensor& t = n.values[size_t(e.port)];
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.dtype = t.dtype();
      v = Add(c, t.shape(), t);
    }
    return v;
  }

  Status Emit(int32_t work) {
    const WorkNode& x = w_.nodes[size_t(work)];
    if (!x.node) {
      PlanValue v;
      v.kind = plan_->takes_feeds ? PlanValue::kHeld : PlanValue::kFeed;
      v.feed = x.feed;
      v.dtype = x.out_types[0];
      v.location = WhereIs({work, 0});
      value_of_[size_t(work)][0] = Add(v, x.shapes[0]);
      return Status();
    }
    if (IsFixed(x)) return Status();
    PlanNode n;
    FramePlan::Node f;
    if (x.flow != Flow::kNone || x.constant || Passes(x)) {
      n.kind = PlanNode::kFlow;
      n.run.node = x.node;
      n.run.device = plan_->host;
      n.run.types = x.node->types().data();
      n.title = StrCat(x.node->title(), ":");
    } else {
      RETURN_IF_ERROR(SetKernel(x, &n));
    }
    RETURN_IF_ERROR(FindSources(work, n.run));
    const int32_t self = Connect(x, &n, &f);
    for (size_t o = 0; o < x.shapes.size(); ++o) n.out.push_back(MakeOutput(x, {work, int32_t(o)}));
    node_of_[size_t(work)] = self;
    Add(std::move(n), std::move(f));
    return Status();
  }

  int32_t MakeOutput(const WorkNode& x, const WorkEdge& e) {
    if (x.constant) return ValueOf(e);
    return value_of_[size_t(e.node)][size_t(e.port)] = AddHeld(x.out_types[size_t(e.port)], x.shapes[size_t(e.port)], WhereIs(e));
  }

  // Sets kernel, state and scratch, and whether only running tells some of the shapes.
  Status SetKernel(const WorkNode& x, PlanNode* n) {
    n->run = std::move(runs_[size_t(&x - w_.nodes.data())]);
    if (Status s = CheckHandles(n->run); !s.ok()) return Prefix(s, StrCat(x.node->title(), ":"));
    n->cheap = x.kernel->spec.cheap;
    n->title = StrCat(x.reader ? x.reader->title() : x.node->title(), " on ", x.device->kind(), ":", x.device->index(), ":");
    std::vector<tw_shape> shapes;
    bool known = true;
    const auto add = [&](const Shape& s) {
      known = known && s.known();
      shapes.push_back(s.c());
    };
    for (const WorkEdge& e : x.in) add(w_.nodes[size_t(e.node)].shapes[size_t(e.port)]);
    for (const Shape& s : x.shapes) add(s);
    for (size_t o = 0; known && o < x.shapes.size(); ++o) {
      known = CountBytes(x.shapes[o].dims().data(), x.shapes[o].rank(), x.out_types[o]).ok();
    }
    ASSIGN_OR_RETURN(n->run.state, states_->State(n->run, shapes));
    // A node that is never reached may have any sizes, so errors in them are reported when it runs.
    auto scratch = known ? PrepareScratch(n->run, shapes) : StatusOr<uint64_t>(uint64_t{0});
    n->dynamic = !known || !scratch.ok();
    scratch_ = n->dynamic ? 0 : *scratch;
    n->given = !x.kernel->gives.empty() || std::any_of(x.kernel->view.begin(), x.kernel->view.end(), [](int32_t a) { return a >= 0; });
    n->simple = !n->dynamic && !n->run.opens() && !n->given && !n->run.async && !x.kernel->spec.may_block && scratch_ == 0;
    return Status();
  }

  // Makes the node, which is about to be added, wait for its inputs and control inputs. Returns its
  // number.
  int32_t Connect(const WorkNode& x, PlanNode* n, FramePlan::Node* f) {
    f->flow = x.flow;
    f->constant = x.constant;
    f->sends = x.node->op().role == "send";
    f->frame = x.frame;
    f->into = x.into;
    if (x.flow == Flow::kEnter) {
      f->invariant = x.node->FindAttr("is_constant")->bools()[0];
      ++frames_->frames[size_t(x.into)].enters;
    }
    f->next.resize(x.shapes.size());
    f->fetched.assign(x.shapes.size(), -1);
    if (x.constant) return AddControls(x);  // its values are known: it only waits
    const int32_t self = int32_t(plan_->nodes.size());
    for (size_t i = 0; i < x.in.size(); ++i) {
      const Source& from = sources_[i];
      n->in.push_back(from.value);
      f->fixed.push_back(from.node < 0 && !IsBack(x, i) ? from.value : -1);
      if (from.node < 0) continue;
      At(from.node).next[from.port].push_back({self, int32_t(i)});
      plan_->nodes[size_t(from.node)].next.push_back(self);
    }
    return AddControls(x);
  }

  static bool IsBack(const WorkNode& x, size_t i) { return !x.back.empty() && x.back[i].node >= 0; }

  // Finds the maker of each input, in the memory where the node wants it; adds the nodes that this
  // takes. A merge distinguishes its inputs by which one arrives, so even a value that exists from
  // the beginning must be sent to it.
  Status FindSources(int32_t work, const NodeRun& run) {
    const WorkNode& x = w_.nodes[size_t(work)];
    sources_.clear();
    for (size_t i = 0; i < x.in.size() && !x.constant; ++i) {
      const WorkEdge& e = x.in[i];
      const bool anywhere = !run.anywhere_in.empty() && run.anywhere_in[i];
      const int32_t there = anywhere ? WhereIs(e) : wants_[size_t(work)][i];
      Source from;
      if (IsBack(x, i)) {
        from.value = ValueOf(e);
      } else if (w_.nodes[size_t(e.node)].node && IsFixed(w_.nodes[size_t(e.node)])) {
        ASSIGN_OR_RETURN(from.value, ConstantAt(e, there));
        if (x.flow == Flow::kMerge) from.node = AddSource(e, from.value);
      } else if (WhereIs(e) != there) {
        from.node = CopyOf(e, there);
        from.value = plan_->nodes[size_t(from.node)].out[0];
      } else {
        from.value = ValueOf(e);
        const bool fed = !w_.nodes[size_t(e.node)].node;
        if (!fed) from.node = node_of_[size_t(e.node)];
        if (!fed) from.port = size_t(e.port);
        if (fed && x.flow == Flow::kMerge) from.node = AddSource(e, from.value);
      }
      sources_.push_back(from);
    }
    return Status();
  }

  // Adds the control edges of the node that is about to be added. Returns its number.
  int32_t AddControls(const WorkNode& x) {
    const int32_t self = int32_t(plan_->nodes.size());
    for (int32_t c : x.controls) {
      const int32_t before = node_of_[size_t(c)];
      if (before < 0) continue;  // it exists before any node runs
      At(before).then.push_back({self, FramePlan::kControl});
      plan_->nodes[size_t(before)].next.push_back(self);
    }
    return self;
  }

  // Adds a node that sends a value which exists before any node runs. Returns its number.
  int32_t AddSource(const WorkEdge& e, int32_t value) {
    const WorkNode& x = w_.nodes[size_t(e.node)];
    PlanNode n;
    n.kind = PlanNode::kFlow;
    n.run.node = x.node ? x.node : w_.signature->feeds[size_t(x.feed)].node;
    n.run.device = plan_->host;
    n.run.types = n.run.node->types().data();
    n.title = StrCat(n.run.node->title(), ":");
    n.out = {value};
    FramePlan::Node f;
    f.constant = true;
    f.next.resize(1);
    f.fetched = {-1};
    Add(std::move(n), std::move(f));
    return int32_t(plan_->nodes.size()) - 1;
  }

  void Add(PlanNode n, FramePlan::Node f) {
    shapes_.scratch.push_back({n.kind == PlanNode::kKernel ? scratch_ : 0, 0});
    plan_->nodes.push_back(std::move(n));
    frames_->nodes.push_back(std::move(f));
  }

  Status CloseLoop(int32_t work) {
    const WorkNode& x = w_.nodes[size_t(work)];
    const int32_t self = node_of_[size_t(work)];
    for (size_t i = 0; self >= 0 && i < x.back.size(); ++i) {
      const WorkEdge& e = x.back[i];
      if (e.node < 0) continue;
      if (WhereIs(e) != WhereIs({work, 0})) {
        return OfNode(*x.node, Unimplemented(x.node->title(), ": it and '", Shown(w_.nodes[size_t(e.node)].node->name()),
                                             "', which closes its loop, come to lie on different devices; place the loop on one"));
      }
      plan_->nodes[size_t(self)].in[i] = ValueOf(e);
      At(node_of_[size_t(e.node)]).next[size_t(e.port)].push_back({self, int32_t(i)});
    }
    return Status();
  }

  Status Fetch(const WorkEdge& e, Device* device) {
    const WorkNode& x = w_.nodes[size_t(e.node)];
    const bool fixed = x.node && IsFixed(x);
    const int32_t location = !w_.signature->stays ? LocationOf(device, plan_.get()) : fixed ? 0 : WhereIs(e);
    int32_t v = ValueOf(e);
    if (fixed) {
      ASSIGN_OR_RETURN(v, ConstantAt(e, location));
    } else if (WhereIs(e) != location) {
      const int32_t copy = CopyOf(e, location);
      v = At(copy).fetched[0] = plan_->nodes[size_t(copy)].out[0];
    } else if (x.node) {
      int32_t& fetched = At(node_of_[size_t(e.node)]).fetched[size_t(e.port)];
      if (fetched < 0) fetched = x.constant ? AddHeld(x.out_types[size_t(e.port)], x.shapes[size_t(e.port)], 0) : v;  // it may be dead
      v = fetched;
    }
    plan_->values[size_t(v)].fetched = true;
    plan_->fetches.push_back(v);
    return Status();
  }

  // Assigns each node its place in an iteration's arrays, and counts the inputs that it waits for.
  void Count() {
    std::vector<int32_t> waits(frames_->nodes.size(), 0);
    for (const FramePlan::Node& f : frames_->nodes) {
      for (const auto& list : f.next) {
        for (const FramePlan::Target& t : list) waits[size_t(t.node)] += At(t.node).flow != Flow::kMerge;
      }
      for (const FramePlan::Target& t : f.then) waits[size_t(t.node)] += At(t.node).flow == Flow::kMerge ? 2 : 1;
    }
    for (size_t i = 0; i < frames_->nodes.size(); ++i) {
      FramePlan::Node& f = frames_->nodes[i];
      FramePlan::Frame& frame = frames_->frames[size_t(f.frame)];
      f.index = int32_t(frame.nodes.size());
      f.first_token = frame.tokens;
      frame.tokens += int32_t(f.fixed.size());
      frame.nodes.push_back(int32_t(i));
      const int32_t pending = waits[i] + (f.flow == Flow::kMerge);
      frame.counts.push_back({pending, 0});
      if (pending == 0) frames_->roots.push_back(int32_t(i));
    }
  }

  void Finish() {
    for (PlanNode& n : plan_->nodes) {
      std::sort(n.next.begin(), n.next.end());
      n.next.erase(std::unique(n.next.begin(), n.next.end()), n.next.end());
    }
    MarkHeavy(*plan_, &shapes_);
    shapes_.block_bytes.assign(plan_->devices.size() + 1, 0);
    plan_->async = NeedsCounts(*plan_);
    plan_->counted = plan_->wants_counts = true;
    plan_->notes = std::move(w_.notes);
    plan_->frames = std::move(frames_);
    plan_->shapes = std::make_shared<PlanShapes>(std::move(shapes_));
  }

  WorkGraph& w_;
  StateCache* states_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<FramePlan> frames_;
  PlanShapes shapes_;
  std::vector<int32_t> node_of_;                // work node -> plan node, -1 if none
  std::vector<std::vector<int32_t>> value_of_;  // work node, output -> value, -1 if none yet
  std::vector<std::vector<int32_t>> where_;     // work node, output -> location
  std::vector<std::vector<int32_t>> wants_;     // work node, input -> location
  std::vector<NodeRun> runs_;                   // per work node with a kernel, until it is emitted
  // Constants (values) and copies (nodes) by work node, output and destination.
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> moved_;
  struct Source {
    int32_t value = -1, node = -1;  // node -1: the value exists before any node runs, or comes round the loop
    size_t port = 0;
  };
  std::vector<Source> sources_;  // per input of the node that is being connected
  uint64_t scratch_ = 0;         // of the kernel that SetKernel set last
};

}  // namespace

StatusOr<std::unique_ptr<Plan>> EmitFrames(WorkGraph* w, StateCache* states) { return FrameEmitter(w, states).Run(); }

}  // namespace thalweg
