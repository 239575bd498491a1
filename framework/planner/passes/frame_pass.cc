// Finds the frame of every node and checks that the graph's control flow can work at all. Frames
// are static here: a loop inside a loop is one frame, however many times it runs.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "framework/base/shown.h"
#include "framework/graph/attr_value.h"
#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

class FrameFinder {
 public:
  explicit FrameFinder(WorkGraph* w) : w_(*w) {}

  Status Run() {
    w_.frames = {WorkFrame()};
    for (WorkNode& n : w_.nodes) {
      if (!n.node) continue;
      Status s = Place(&n);
      if (!s.ok()) return OfNode(*n.node, Prefix(s, n.node->title() + ":"));
    }
    for (const WorkNode& n : w_.nodes) RETURN_IF_ERROR(CheckBack(n));
    for (const WorkEdge& e : w_.fetches) RETURN_IF_ERROR(CheckFetch(e));
    return Status();
  }

 private:
  std::string Name(int32_t frame) const { return frame == 0 ? "no frame" : StrCat("frame '", Shown(w_.frames[size_t(frame)].name), "'"); }
  std::string NameOf(const WorkNode& n) const { return n.node ? n.node->name() : w_.signature->feeds[size_t(n.feed)].text(); }

  bool LiesIn(int32_t frame, int32_t other) const {
    while (frame > other) frame = w_.frames[size_t(frame)].parent;  // a frame comes after its parent
    return frame == other;
  }

  std::string Remedy(const WorkNode& a, const WorkNode& b) const {
    if (!LiesIn(a.into, b.into) && !LiesIn(b.into, a.into)) return "a value comes into a frame by an Enter and out of it by an Exit";
    const WorkNode& inner = LiesIn(a.into, b.into) ? a : b;
    const WorkNode& outer = &inner == &a ? b : a;
    return StrCat("'", Shown(NameOf(inner)), "' leaves ", Name(inner.into), " by an Exit, which is missing here, or '",
                  Shown(NameOf(outer)), "' comes into it by an Enter");
  }

  Status Place(WorkNode* n) {
    const WorkNode* first = nullptr;
    const auto agree = [&](const WorkNode& p) -> Status {
      if (!first) first = &p;
      if (first->into == p.into) return Status();
      return InvalidArgument("it takes '", Shown(NameOf(*first)), "' of ", Name(first->into), " and '", Shown(NameOf(p)), "' of ",
                             Name(p.into), "; ", Remedy(*first, p));
    };
    for (const WorkEdge& e : n->in) RETURN_IF_ERROR(agree(w_.nodes[size_t(e.node)]));
    for (int32_t c : n->controls) RETURN_IF_ERROR(agree(w_.nodes[size_t(c)]));
    n->frame = n->into = first ? first->into : 0;
    if (n->flow == Flow::kEnter) return AddEnter(n);
    if (n->flow != Flow::kExit && n->flow != Flow::kNextIteration) return Status();
    if (n->frame == 0) return InvalidArgument("its input '", Shown(NameOf(*first)), "' is in no frame; a value comes into one by an Enter");
    if (n->flow == Flow::kExit) n->into = w_.frames[size_t(n->frame)].parent;
    return Status();
  }

  Status AddEnter(WorkNode* n) {
    const std::string& name = n->node->FindAttr("frame_name")->strings()[0];
    const int64_t parallel = n->node->FindAttr("parallel_iterations")->ints()[0];
    if (parallel < 1) return InvalidArgument("parallel_iterations is ", parallel, "; it must be at least 1");
    const auto [known, is_new] = by_name_.emplace(name, int32_t(w_.frames.size()));
    n->into = known->second;
    if (!is_new) {
      const WorkFrame& frame = w_.frames[size_t(n->into)];
      if (frame.parent == n->frame) return Status();
      return InvalidArgument("it leads from ", Name(n->frame), " into ", Name(n->into), ", and '", Shown(frame.enter->name()),
                             "' does from ", Name(frame.parent), "; give one of the two frames another name");
    }
    constexpr int32_t kDeepest = 1000;
    const int32_t depth = w_.frames[size_t(n->frame)].depth + 1;
    if (depth > kDeepest) return InvalidArgument("more than ", kDeepest, " frames lie within each other");
    w_.frames.push_back({name, n->frame, int32_t(std::min<int64_t>(parallel, INT32_MAX)), n->node, depth});
    return Status();
  }

  Status CheckBack(const WorkNode& n) const {
    for (const WorkEdge& e : n.back) {
      if (e.node < 0) continue;
      const WorkNode& next = w_.nodes[size_t(e.node)];
      if (next.flow != Flow::kNextIteration) {
        return OfNode(*n.node, InvalidArgument(n.node->title(), ": '", Shown(NameOf(next)), "' closes its loop and cannot be fed"));
      }
      if (next.into == n.frame) continue;
      return OfNode(*n.node, InvalidArgument(n.node->title(), ": it is in ", Name(n.frame), ", but '", Shown(NameOf(next)),
                                             "', which closes its loop, is in ", Name(next.into)));
    }
    return Status();
  }

  Status CheckFetch(const WorkEdge& e) const {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (n.into == 0) return Status();
    return OfNode(*n.node, InvalidArgument(n.node->title(), ": output ", e.port, " is fetched, but is in ", Name(n.into),
                                           ", where it has a value for each iteration; fetch what leaves by an Exit"));
  }

  WorkGraph& w_;
  std::unordered_map<std::string_view, int32_t> by_name_;
};

}  // namespace

Status FramePass(WorkGraph* w) { return w->flow ? FrameFinder(w).Run() : Status(); }

}  // namespace thalweg
