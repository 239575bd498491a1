// Turns loops of Enter, Merge, Switch, NextIteration and Exit whose iterations cannot overlap into
// nodes that call functions, one iteration after the other. Each iteration runs as a plan of its
// own, in which values have planned memory and no tokens are counted. The form is the one that
// gradients use (autodiff/form_builder.h). It is made from a copy of the loop, so the program's
// graph and functions do not change.
// A loop stays if the difference could be observed: if its nodes have state other than their
// inputs, name a device, or may wait; if part of it, or a value that shapes depend on, is fed; or
// if some of the values that enter it may be dead while others are not. All loops stay if values
// may lie on devices with memory of their own: in frames, the queues of such devices continue past
// the end of an iteration, which a call does not allow.
#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "framework/autodiff/form_builder.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"
#include "framework/planner/emit/waits.h"
#include "framework/planner/passes/deadness.h"
#include "framework/planner/renumber.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr int64_t kLight = 16;  // elements of each value: a node that touches no more is not worth starting the next iteration early for

struct Loop {
  int32_t frame = 0;
  std::vector<int32_t> enters;  // work nodes, which run outside
  std::vector<int32_t> inside;  // the nodes of the frame and of frames in it, in order
  std::vector<int32_t> exits;   // the nodes among these that leave the frame
  std::shared_ptr<const LoopCall> call;
};

class Sequencer {
 public:
  explicit Sequencer(WorkGraph* w) : w_(*w) {}

  void Run() {
    if (!MayTry()) return;
    FindLoops();
    at_.assign(w_.nodes.size(), -1);
    std::erase_if(loops_, [&](Loop& loop) {
      if (loop.exits.empty() || !MayMove(loop) || !InSequence(loop)) return true;
      loop.call = CallOf(loop);
      return !loop.call || !loop.call->node;
    });
    if (loops_.empty()) return;
    Deadness dead(w_);
    for (const Loop& loop : loops_) dead.AddLoop(loop.enters, loop.exits);
    dead.Find();
    std::erase_if(loops_, [&](const Loop& loop) { return !dead.Together(loop.enters); });
    if (!loops_.empty()) Replace();
  }

 private:
  bool MayTry() const {
    if (!w_.signature->over.empty() || !w_.options->device.text().empty() || !w_.graph->functions()) return false;
    // The call's inputs have the shapes that the graph knows, some of which follow from values that
    // it knows.
    const auto& feeds = w_.signature->feeds;
    if (std::any_of(feeds.begin(), feeds.end(), [](const Edge& e) { return bool(e.node->value(e.port)); })) return false;
    for (const WorkNode& n : w_.nodes) {
      if (n.open) return false;
      if (!n.node || n.frame != 0) continue;
      if (n.node->op().role == "recv" || n.node->op().role == "send") return false;
    }
    return StaysOnHost();
  }

  // Returns true if neither nodes nor options ask for other memory.
  bool StaysOnHost() const {
    const auto devices = w_.runtime().ready_devices();
    if (std::all_of(devices.begin(), devices.end(), [](const Device* d) { return d->host_memory(); })) return true;
    const PlanOptions& o = *w_.options;
    if (o.placement != "simple" || o.places || !w_.signature->feed_devices.empty() || !w_.signature->fetch_devices.empty()) return false;
    return std::all_of(w_.nodes.begin(), w_.nodes.end(), [](const WorkNode& n) { return !n.node || n.node->device().empty(); });
  }

  // Finds the outermost loops.
  void FindLoops() {
    std::vector<int32_t> loop_of(w_.frames.size(), -1);  // by frame
    for (size_t f = 1; f < w_.frames.size(); ++f) {
      if (w_.frames[f].parent != 0) {
        loop_of[f] = loop_of[size_t(w_.frames[f].parent)];  // a frame comes after its parent
        continue;
      }
      loop_of[f] = int32_t(loops_.size());
      loops_.emplace_back().frame = int32_t(f);
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (!n.node || (n.frame == 0 && n.into == 0)) continue;
      Loop& loop = loops_[size_t(loop_of[size_t(n.frame ? n.frame : n.into)])];
      (n.frame ? loop.inside : loop.enters).push_back(int32_t(i));
      if (n.frame && n.into == 0) loop.exits.push_back(int32_t(i));
    }
  }

  const WorkNode& At(int32_t i) const { return w_.nodes[size_t(i)]; }

  // ---- Whether the loop may become a call ----

  bool MayMove(const Loop& loop) const {
    for (int32_t i : loop.enters) {
      if (!IsPlain(At(i))) return false;
    }
    for (int32_t i : loop.inside) {
      const WorkNode& n = At(i);
      if (!IsPlain(n) || !IsAsInGraph(n) || (DecidesIn(loop, n) && !n.controls.empty())) return false;
      if (MayWait(w_, *n.node) || CallsWhatWaits(w_, *n.node)) return false;  // perhaps for a node that the call would block
      if (std::find(w_.targets.begin(), w_.targets.end(), i) != w_.targets.end()) return false;
    }
    return true;
  }

  static bool IsPlain(const WorkNode& n) {
    const Node& node = *n.node;
    if (&node.origin() != &node || node.runs_as() || n.reader || !node.device().empty()) return false;
    const auto& types = node.types();
    if (std::any_of(types.begin(), types.end(), [](uint32_t t) { return IsRef(t); })) return false;
    const bool is_given_state = std::any_of(types.begin(), types.begin() + node.n_in(), [](uint32_t t) { return t == TW_RESOURCE; });
    return !node.op().once && (!node.op().stateful || is_given_state);
  }

  // Returns true if the node has the same inputs and control inputs as in the graph: none of them
  // is fed or replaced.
  bool IsAsInGraph(const WorkNode& n) const {
    const Node& node = *n.node;
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (At(n.in[i].node).node != node.inputs()[i].node || n.in[i].port != node.inputs()[i].port) return false;
      const bool comes_round = i < n.back.size() && n.back[i].node >= 0;
      if (comes_round != (node.back(int32_t(i)) != nullptr)) return false;
      if (comes_round && At(n.back[i].node).node != node.back(int32_t(i))) return false;
    }
    const auto& controls = node.controls();
    return n.controls.size() == controls.size() && std::all_of(n.controls.begin(), n.controls.end(), [&](int32_t c) {
             return std::find(controls.begin(), controls.end(), At(c).node) != controls.end();
           });
  }

  // Returns true for a merge, switch or exit of the loop itself. The call form cannot make such a
  // node wait.
  static bool DecidesIn(const Loop& loop, const WorkNode& n) {
    if (n.frame != loop.frame) return false;
    return n.flow == Flow::kExit || (n.flow == Flow::kMerge && !n.back.empty()) ||
           (n.flow == Flow::kSwitch && FlowOf(n.node->inputs()[1].node->op()) == Flow::kLoopCond);
  }

  // ---- Whether one iteration has to follow the other ----

  // Returns true if all work of an iteration comes after all work of the one before, because of the
  // values it reads or because the loop asks for that; and if nodes that change state run as often
  // as in frames. In frames, nodes that no Switch of the loop leads to run once more than the
  // loop's body.
  bool InSequence(const Loop& loop) {
    for (size_t k = 0; k < loop.inside.size(); ++k) at_[size_t(loop.inside[k])] = int32_t(k);
    const bool all_die = StateIsInBodyOrCondition(loop);
    const bool follows = all_die && (w_.frames[size_t(loop.frame)].parallel == 1 || (HasShapes() && EachFollowsAll(loop)));
    for (int32_t i : loop.inside) at_[size_t(i)] = -1;
    return follows;
  }

  // Calls f with every node of the loop that node i reads or waits for in the same iteration of the
  // loop.
  template <class F>
  void ForEachBefore(const Loop& loop, int32_t i, F&& f) const {
    const WorkNode& n = At(i);
    const bool begins = n.frame == loop.frame && n.flow == Flow::kMerge && !n.back.empty();
    if (begins) return;
    const auto visit = [&](int32_t other) {
      if (other >= 0 && at_[size_t(other)] >= 0) f(size_t(at_[size_t(other)]), other);
    };
    for (const WorkEdge& e : n.in) visit(e.node);
    for (const WorkEdge& e : n.back) visit(e.node);
    for (int32_t c : n.controls) visit(c);
  }

  bool StateIsInBodyOrCondition(const Loop& loop) const {
    std::vector<uint8_t> dies(loop.inside.size(), 0), asked(loop.inside.size(), 0);  // in the last iteration; by the condition
    std::vector<int32_t> todo;
    for (size_t k = 0; k < loop.inside.size(); ++k) {
      const WorkNode& n = At(loop.inside[k]);
      if (n.frame == loop.frame && n.flow == Flow::kLoopCond) todo.push_back(loop.inside[k]);
      bool some = false, all = !n.in.empty();
      for (const WorkEdge& e : n.in) {
        const WorkNode& m = At(e.node);
        const int32_t at = at_[size_t(e.node)];
        const bool dead = at >= 0 && (dies[size_t(at)] || (DecidesIn(loop, m) && m.flow == Flow::kSwitch && e.port == 1));
        some = some || dead;
        all = all && dead;
      }
      for (int32_t c : n.controls) some = some || (at_[size_t(c)] >= 0 && dies[size_t(at_[size_t(c)])]);
      dies[k] = n.flow == Flow::kMerge ? all : some;
    }
    while (!todo.empty()) {
      const int32_t i = todo.back();
      todo.pop_back();
      if (std::exchange(asked[size_t(at_[size_t(i)])], uint8_t{1})) continue;
      ForEachBefore(loop, i, [&](size_t, int32_t other) { todo.push_back(other); });
    }
    for (size_t k = 0; k < loop.inside.size(); ++k) {
      if (At(loop.inside[k]).node->op().stateful && !dies[k] && !asked[k]) return false;
    }
    return true;
  }

  // Loop variables are bits. `after`: the variables that a node depends on. `before`: the variables
  // of the next iteration that depend on the node.
  bool EachFollowsAll(const Loop& loop) const {
    const size_t n = loop.inside.size();
    std::vector<uint64_t> after(n, 0), before(n, 0);
    int32_t variables = 0;
    for (size_t k = 0; k < n; ++k) {
      const WorkNode& x = At(loop.inside[k]);
      if (!DecidesIn(loop, x) || x.flow != Flow::kMerge) continue;
      if (variables == 64) return false;
      after[k] |= uint64_t{1} << variables;
      for (const WorkEdge& e : x.back) {
        if (e.node >= 0) before[size_t(at_[size_t(e.node)])] |= uint64_t{1} << variables;
      }
      ++variables;
    }
    for (bool changed = true; changed;) {  // once, and again for inner loops
      changed = false;
      for (size_t k = 0; k < n; ++k) {
        const uint64_t was = after[k];
        ForEachBefore(loop, loop.inside[k], [&](size_t other, int32_t) { after[k] |= after[other]; });
        changed = changed || after[k] != was;
      }
      for (size_t k = n; k-- > 0;) {
        ForEachBefore(loop, loop.inside[k], [&](size_t other, int32_t) {
          changed = changed || (before[k] & ~before[other]) != 0;
          before[other] |= before[k];
        });
      }
    }
    std::set<uint64_t> work_after, work_before;
    for (size_t k = 0; k < n; ++k) {
      if (IsLight(loop.inside[k])) continue;
      work_after.insert(after[k]);
      work_before.insert(before[k]);
    }
    return std::all_of(work_after.begin(), work_after.end(), [&](uint64_t a) {
      return std::all_of(work_before.begin(), work_before.end(), [&](uint64_t b) { return (a & b) != 0; });
    });
  }

  // REQUIRES: shapes_.
  bool IsLight(int32_t i) const {
    const WorkNode& x = shapes_->nodes[size_t(i)];
    if (x.flow != Flow::kNone || x.in.empty()) return true;
    if (x.node->op().stateful || CallsFunctions(x.node->op())) return false;
    return std::all_of(x.in.begin(), x.in.end(),
                       [&](const WorkEdge& e) { return IsSmall(shapes_->nodes[size_t(e.node)].shapes[size_t(e.port)]); }) &&
           std::all_of(x.shapes.begin(), x.shapes.end(), IsSmall);
  }

  static bool IsSmall(const Shape& s) {
    int64_t count = s.known() ? 1 : kLight + 1;
    for (int32_t k = 0; s.known() && k < s.rank() && count <= kLight; ++k) count *= s.dim(k);
    return count <= kLight;
  }

  // Infers the sizes of all values, as far as possible before the loops are replaced.
  bool HasShapes() {
    if (!shapes_) {
      shapes_ = std::make_unique<WorkGraph>(w_);
      has_shapes_ = InferPass(shapes_.get()).ok();
    }
    return has_shapes_;
  }

  // ---- The call ----

  std::shared_ptr<const LoopCall> CallOf(const Loop& loop) const {
    std::vector<const Node*> nodes;
    for (int32_t i : loop.enters) nodes.push_back(At(i).node);
    for (int32_t i : loop.inside) nodes.push_back(At(i).node);
    const auto library = w_.graph->functions();
    if (auto known = library->FindLoop(nodes)) return known;
    LoopCall call;
    if (Status s = MakeCall(loop, &call); !s.ok()) call = LoopCall();  // no function can be made of the loop
    return library->KeepLoop(std::move(nodes), std::move(call));
  }

  Status MakeCall(const Loop& loop, LoopCall* call) const {
    call->graph = Graph::Body(*w_.graph);
    Graph* g = call->graph.get();
    Copied copied;
    std::vector<const Node*> starts;
    for (int32_t i : loop.enters) {
      const Node& enter = *At(i).node;
      const Edge& from = enter.inputs()[0];
      if (!copied.Find(from)) {
        ASSIGN_OR_RETURN(const Edge start, g->AddArgument(from, g->UniqueName(from.node->name()), from.node->place()));
        copied.Put(from, start);
      }
      starts.push_back(copied.Find(from).node);
      RETURN_IF_ERROR(CopyNode(enter, g, &copied).status());
    }
    for (int32_t i : loop.inside) RETURN_IF_ERROR(CopyNode(*At(i).node, g, &copied).status());
    for (int32_t i : loop.inside) {
      const Node& n = *At(i).node;
      for (int32_t k = 0; k < n.n_in(); ++k) {
        if (n.back(k)) RETURN_IF_ERROR(g->CloseLoop(copied.Find(&n), k, copied.Find(n.back(k))));
      }
    }
    RETURN_IF_ERROR(FormLoop(FormBuilder(g, /*hidden=*/true), *copied.Find(At(loop.exits[0]).node)));
    for (int32_t i : loop.exits) {
      const Edge form = g->ReplacedBy({copied.Find(At(i).node), 0});
      if (!form || (call->node && form.node != call->node)) return Internal("an Exit has no form");
      call->node = form.node;
      call->outputs.push_back(form.port);
    }
    for (const Edge& e : call->node->inputs()) {
      const auto start = std::find(starts.begin(), starts.end(), e.node);
      if (start == starts.end()) return Internal("a loop takes what does not enter it");
      call->inputs.push_back(int32_t(start - starts.begin()));
    }
    return Status();
  }

  // ---- The graph without frames ----

  // Replaces the nodes of each loop by one node, in an order that respects dependencies. If there
  // is no such order, changes nothing.
  void Replace() {
    const size_t n = w_.nodes.size();
    std::vector<int32_t> loop_of(n, -1);
    for (size_t l = 0; l < loops_.size(); ++l) {
      for (const auto* some : {&loops_[l].enters, &loops_[l].inside}) {
        for (int32_t i : *some) loop_of[size_t(i)] = int32_t(l);
      }
    }
    // Items that remain: nodes by their number, then loops.
    const auto item = [&](int32_t i) { return loop_of[size_t(i)] < 0 ? size_t(i) : n + size_t(loop_of[size_t(i)]); };
    std::vector<std::vector<size_t>> next(n + loops_.size());
    std::vector<int32_t> waits(next.size(), 0);
    const auto wait = [&](size_t for_it, int32_t other) {
      next[item(other)].push_back(for_it);
      ++waits[for_it];
    };
    size_t left = loops_.size();
    for (size_t i = 0; i < n; ++i) {
      const bool enters = loop_of[i] >= 0 && w_.nodes[i].frame == 0;  // an Enter of a replaced loop
      if (loop_of[i] >= 0 && !enters) continue;
      left += !enters;
      for (const WorkEdge& e : w_.nodes[i].in) wait(item(int32_t(i)), e.node);
      for (int32_t c : w_.nodes[i].controls) wait(item(int32_t(i)), c);
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    const auto add = [&](size_t x) { ready.push(x); };
    for (size_t x = 0; x < next.size(); ++x) {
      if (waits[x] == 0 && (x >= n || loop_of[x] < 0)) add(x);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (size_t x : next[order.back()]) {
        if (--waits[x] == 0) add(x);
      }
    }
    if (order.size() != left) return;  // a value that enters a loop depends on one that leaves it
    Commit(order, loop_of);
  }

  void Commit(const std::vector<size_t>& order, const std::vector<int32_t>& loop_of) {
    std::vector<WorkNode> old;
    std::swap(old, w_.nodes);
    std::vector<int32_t> now(old.size(), -1), of_loop(loops_.size(), -1);
    const auto place = [&](int32_t i) { return loop_of[size_t(i)] < 0 ? now[size_t(i)] : of_loop[size_t(loop_of[size_t(i)])]; };
    const auto edge = [&](const WorkEdge& e) -> WorkEdge {
      if (loop_of[size_t(e.node)] < 0) return {now[size_t(e.node)], e.port};
      const Loop& loop = loops_[size_t(loop_of[size_t(e.node)])];
      const auto exit = std::find(loop.exits.begin(), loop.exits.end(), e.node) - loop.exits.begin();
      return {place(e.node), loop.call->outputs[size_t(exit)]};
    };
    for (size_t x : order) {
      const auto self = int32_t(w_.nodes.size());
      if (x < old.size()) {
        now[x] = self;
        WorkNode& n = w_.nodes.emplace_back(std::move(old[x]));
        for (WorkEdge& e : n.in) e = edge(e);
        for (int32_t& c : n.controls) c = place(c);
        continue;
      }
      const Loop& loop = loops_[x - old.size()];
      of_loop[x - old.size()] = self;
      const Node& node = *loop.call->node;
      WorkNode call;
      call.node = &node;
      for (int32_t k : loop.call->inputs) call.in.push_back(edge(old[size_t(loop.enters[size_t(k)])].in[0]));
      for (int32_t i : loop.enters) {
        for (int32_t c : old[size_t(i)].controls) call.controls.push_back(place(c));
      }
      call.out_types.assign(node.types().begin() + node.n_in(), node.types().end());
      call.values.resize(size_t(node.n_out()));
      call.within = StrCat("frame '", Shown(w_.frames[size_t(loop.frame)].name), "': ");
      w_.notes.sequences.emplace_back(w_.frames[size_t(loop.frame)].name, &node);
      w_.nodes.push_back(std::move(call));
    }
    Renumber(&w_, now, edge, place);
    for (WorkNode& n : w_.nodes) {
      for (WorkEdge& e : n.back) e.node = e.node < 0 ? e.node : now[size_t(e.node)];
    }
    RemoveFrames();
  }

  // Removes frames that no node is in any more; all frames if no control-flow node is left.
  void RemoveFrames() {
    w_.flow = std::any_of(w_.nodes.begin(), w_.nodes.end(), [](const WorkNode& n) { return n.flow != Flow::kNone; });
    std::vector<uint8_t> gone(w_.frames.size(), 0);
    for (const Loop& loop : loops_) gone[size_t(loop.frame)] = 1;
    std::vector<int32_t> now(w_.frames.size(), 0);
    std::vector<WorkFrame> left;
    for (size_t f = 0; w_.flow && f < w_.frames.size(); ++f) {
      WorkFrame& frame = w_.frames[f];
      if (frame.parent > 0) gone[f] = gone[size_t(frame.parent)];  // a frame comes after its parent
      if (gone[f]) continue;
      now[f] = int32_t(left.size());
      if (frame.parent >= 0) frame.parent = now[size_t(frame.parent)];
      left.push_back(std::move(frame));
    }
    for (WorkNode& n : w_.nodes) {
      n.frame = now[size_t(n.frame)];
      n.into = now[size_t(n.into)];
    }
    w_.frames = std::move(left);
  }

  WorkGraph& w_;
  std::vector<Loop> loops_;
  std::vector<int32_t> at_;            // work node -> its position in the loop under examination, -1 if none
  std::unique_ptr<WorkGraph> shapes_;  // a copy of the work graph with inferred shapes; NULL until it is needed
  bool has_shapes_ = false;
};

}  // namespace

Status SequencePass(WorkGraph* w) {
  if (w->flow && w->frames.size() > 1) Sequencer(w).Run();
  return Status();
}

}  // namespace thalweg
