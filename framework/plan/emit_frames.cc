#include "framework/plan/emit_frames.h"

#include <algorithm>

#include "framework/base/checked.h"
#include "framework/base/shown.h"
#include "framework/plan/frame_plan.h"
#include "framework/plan/layout.h"
#include "framework/plan/shape_source.h"
#include "framework/runtime/evaluate.h"

namespace thalweg {
namespace {

class FrameEmitter {
 public:
  FrameEmitter(WorkGraph* w, StateCache* states)
      : w_(*w), states_(states), plan_(std::make_unique<Plan>()), frames_(std::make_unique<FramePlan>()) {}

  StatusOr<std::unique_ptr<Plan>> Run() {
    ASSIGN_OR_RETURN(plan_->host, w_.runtime().host_device());
    plan_->takes_feeds = w_.signature->takes_feeds;
    for (const WorkFrame& f : w_.frames) frames_->frames.push_back({f.name, f.parent, f.parallel, 0, 0, {}, {}});
    node_of_.assign(w_.nodes.size(), -1);
    value_of_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      value_of_[i].assign(w_.nodes[i].shapes.size(), -1);
      if (w_.nodes[i].dead) continue;
      Status s = Emit(int32_t(i));
      if (!s.ok()) return w_.nodes[i].node ? OfNode(*w_.nodes[i].node, s) : s;
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) CloseLoop(int32_t(i));
    for (int32_t f : w_.feeds) plan_->feeds.push_back(f < 0 ? -1 : ValueOf({f, 0}));
    for (const WorkEdge& e : w_.fetches) Fetch(e);
    for (int32_t t : w_.targets) {
      if (node_of_[size_t(t)] >= 0) At(node_of_[size_t(t)]).watched = true;
    }
    Count();
    Finish();
    return std::move(plan_);
  }

 private:
  FramePlan::Node& At(int32_t node) { return frames_->nodes[size_t(node)]; }
  // What is there before anything runs: a feed, or a constant that waits for nothing.
  bool IsFixed(const WorkNode& n) const { return !n.node || (n.constant && n.controls.empty()); }

  // It hands its only input on, which needs no kernel.
  static bool Passes(const WorkNode& n) { return n.node->op().algebra.passes == 0 && n.in.size() == 1 && n.device->host_memory(); }

  int32_t AddValue(PlanValue v, Shape shape, Tensor constant = {}) {
    PlanShapes::Value sized;
    sized.shape = std::move(shape);
    sized.constant = std::move(constant);
    SetSizes(v.dtype, &sized);
    plan_->values.push_back(v);
    shapes_.values.push_back(std::move(sized));
    return int32_t(plan_->values.size()) - 1;
  }

  int32_t AddHeld(uint32_t dtype, const Shape& shape) {
    PlanValue v;
    v.dtype = dtype;
    return AddValue(v, shape);
  }

  int32_t ValueOf(const WorkEdge& e) {
    int32_t& v = value_of_[size_t(e.node)][size_t(e.port)];
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (v < 0 && n.constant) {
      const Tensor& t = n.values[size_t(e.port)];
      PlanValue c;
      c.kind = PlanValue::kConst;
      c.dtype = t.dtype();
      v = AddValue(c, t.shape(), t);
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
      value_of_[size_t(work)][0] = AddValue(v, x.shapes[0]);
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
    const int32_t self = Connect(x, &n, &f);
    for (size_t o = 0; o < x.shapes.size(); ++o) n.out.push_back(MakeOutput(x, {work, int32_t(o)}));
    node_of_[size_t(work)] = self;
    Add(std::move(n), std::move(f));
    return Status();
  }

  int32_t MakeOutput(const WorkNode& x, const WorkEdge& e) {
    if (x.constant) return ValueOf(e);
    return value_of_[size_t(e.node)][size_t(e.port)] = AddHeld(x.out_types[size_t(e.port)], x.shapes[size_t(e.port)]);
  }

  // Kernel, state, scratch, and what of the shapes only running tells.
  Status SetKernel(const WorkNode& x, PlanNode* n) {
    if (!x.device->host_memory()) {
      return Unimplemented(x.node->title(), ": it is placed on ", x.device->kind(), ":", x.device->index(),
                           ", but graphs with Switch, Merge and frames run on devices with host memory only; place it on CPU, or build ",
                           "branches and loops with If and While");
    }
    n->run = RunOf(w_, x);
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
    // A node that is not reached may have any sizes: what is wrong with them is told when it runs.
    auto scratch = known ? PrepareScratch(n->run, shapes) : StatusOr<uint64_t>(uint64_t{0});
    n->dynamic = !known || !scratch.ok();
    scratch_ = n->dynamic ? 0 : *scratch;
    n->given = !x.kernel->gives.empty() || std::any_of(x.kernel->view.begin(), x.kernel->view.end(), [](int32_t a) { return a >= 0; });
    n->simple = !n->dynamic && !n->run.opens() && !n->given && !x.kernel->spec.async && !x.kernel->spec.may_block && scratch_ == 0;
    return Status();
  }

  // The node, which is about to be added, waits for its inputs and control inputs. Answers its number.
  int32_t Connect(const WorkNode& x, PlanNode* n, FramePlan::Node* f) {
    f->flow = x.flow;
    f->constant = x.constant;
    f->frame = x.frame;
    f->into = x.into;
    if (x.flow == Flow::kEnter) {
      f->invariant = x.node->FindAttr("is_constant")->bools()[0];
      ++frames_->frames[size_t(x.into)].enters;
    }
    f->next.resize(x.shapes.size());
    f->fetched.assign(x.shapes.size(), -1);
    if (x.constant) return AddControls(x);  // its values are known: it only waits
    const auto is_back = [&](size_t i) { return !x.back.empty() && x.back[i].node >= 0; };
    for (size_t i = 0; i < x.in.size(); ++i) {  // a merge tells inputs apart by which comes, so what is there must come, too
      const bool source = x.flow == Flow::kMerge && !is_back(i) && IsFixed(w_.nodes[size_t(x.in[i].node)]);
      sources_.push_back(source ? AddSource(x.in[i]) : -1);
    }
    const int32_t self = int32_t(plan_->nodes.size());
    for (size_t i = 0; i < x.in.size(); ++i) {
      const WorkEdge& e = x.in[i];
      const bool fixed = x.flow != Flow::kMerge && IsFixed(w_.nodes[size_t(e.node)]);
      n->in.push_back(ValueOf(e));
      f->fixed.push_back(fixed ? n->in.back() : -1);
      if (is_back(i) || fixed) continue;
      const int32_t from = sources_[i] >= 0 ? sources_[i] : node_of_[size_t(e.node)];
      At(from).next[sources_[i] >= 0 ? 0 : size_t(e.port)].push_back({self, int32_t(i)});
      plan_->nodes[size_t(from)].next.push_back(self);
    }
    sources_.clear();
    return AddControls(x);
  }

  // Of the node that is about to be added, whose number it answers.
  int32_t AddControls(const WorkNode& x) {
    const int32_t self = int32_t(plan_->nodes.size());
    for (int32_t c : x.controls) {
      const int32_t before = node_of_[size_t(c)];
      if (before < 0) continue;  // it is there before anything runs
      At(before).then.push_back({self, FramePlan::kControl});
      plan_->nodes[size_t(before)].next.push_back(self);
    }
    return self;
  }

  // Hands on what is there before anything runs. Answers the node.
  int32_t AddSource(const WorkEdge& e) {
    const WorkNode& x = w_.nodes[size_t(e.node)];
    PlanNode n;
    n.kind = PlanNode::kFlow;
    n.run.node = x.node ? x.node : w_.signature->feeds[size_t(x.feed)].node;
    n.run.device = plan_->host;
    n.run.types = n.run.node->types().data();
    n.title = StrCat(n.run.node->title(), ":");
    n.out = {ValueOf(e)};
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

  void CloseLoop(int32_t work) {
    const WorkNode& x = w_.nodes[size_t(work)];
    const int32_t self = node_of_[size_t(work)];
    for (size_t i = 0; self >= 0 && i < x.back.size(); ++i) {
      const WorkEdge& e = x.back[i];
      if (e.node < 0) continue;
      plan_->nodes[size_t(self)].in[i] = ValueOf(e);
      At(node_of_[size_t(e.node)]).next[size_t(e.port)].push_back({self, int32_t(i)});
    }
  }

  void Fetch(const WorkEdge& e) {
    const WorkNode& x = w_.nodes[size_t(e.node)];
    int32_t v = ValueOf(e);
    if (!IsFixed(x)) {
      int32_t& fetched = At(node_of_[size_t(e.node)]).fetched[size_t(e.port)];
      if (fetched < 0) fetched = x.constant ? AddHeld(x.out_types[size_t(e.port)], x.shapes[size_t(e.port)]) : v;  // it may be dead
      v = fetched;
    }
    plan_->values[size_t(v)].fetched = true;
    plan_->fetches.push_back(v);
  }

  // Where in an iteration's arrays each node has its part, and what it waits for.
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
    shapes_.block_bytes = {0};
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
  std::vector<int32_t> node_of_;                // work node -> plan node, -1: none
  std::vector<std::vector<int32_t>> value_of_;  // work node, output -> value, -1: none yet
  std::vector<int32_t> sources_;                // per input of the node that is being connected
  uint64_t scratch_ = 0;                        // of the kernel that was set last
};

}  // namespace

StatusOr<std::unique_ptr<Plan>> EmitFrames(WorkGraph* w, StateCache* states) { return FrameEmitter(w, states).Run(); }

}  // namespace thalweg
