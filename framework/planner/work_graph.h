// WorkGraph: the part of a graph that a signature needs, while the passes transform it. Nodes are
// in topological order.
// Threads: one.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/flow.h"
#include "framework/graph/graph.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/registry/kernel_spec.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {

class Runtime;

// The deepest nesting of calls that is inlined; deeper calls stay calls.
constexpr int32_t kMostInlined = 16;

struct WorkEdge {
  int32_t node = -1;
  int32_t port = 0;
  bool operator==(const WorkEdge& o) const { return node == o.node && port == o.port; }
};

struct WorkNode {
  const Node* node = nullptr;  // NULL for a feed
  int32_t feed = -1;
  const Node* reader = nullptr;  // for a read that stands for no node of the graph: the node that it reads for; NULL for a fetch
  std::vector<WorkEdge> in;
  std::vector<int32_t> controls;
  std::vector<WorkEdge> back;  // for a merge that closes a loop, per input: the edge that comes round; node -1 if `in` holds it
  Flow flow = Flow::kNone;
  int32_t frame = 0, into = 0;  // the frame where the node runs, and the frame of its outputs; see FramePass
  std::vector<uint32_t> out_types;
  std::vector<Shape> shapes;
  std::vector<HandleInfo> handles;  // empty if nothing is known of any output
  std::vector<Tensor> values;       // per output; an empty tensor if it is not a constant
  bool dead = false;
  bool constant = false;  // every output has a value, so the node does not run
  bool ordered = false;   // its known values may be used only after some other node has run
  bool open = false;      // a variable whose shape may differ from the declared one: some node of the graph may change it
  bool varies = false;    // its shapes and known values may differ for other feeds
  Device* device = nullptr;
  const KernelDef* kernel = nullptr;
  std::shared_ptr<const Part> part;  // the part that this node stands for; NULL if it stands for itself
  std::string within;                // for a node of an inlined function: the calls that it came from, for messages
  const HandleInfo& handle(int32_t port) const { return handles.empty() ? kNoHandle : handles[size_t(port)]; }
};

// A frame of the graph's loops.
struct WorkFrame {
  std::string name;
  int32_t parent = -1;
  int32_t parallel = 1;         // iterations that may run at the same time
  const Node* enter = nullptr;  // one of the nodes that lead into the frame
  int32_t depth = 0;            // number of enclosing frames
};

struct WorkGraph {
  Graph* graph = nullptr;
  const Signature* signature = nullptr;
  const PlanOptions* options = nullptr;
  std::vector<Shape> feed_shapes;
  std::vector<WorkNode> nodes;
  std::vector<int32_t> feeds;  // node per feed; -1 if no node reads the feed
  std::vector<WorkEdge> fetches;
  std::vector<int32_t> targets;
  bool flow = false;                                        // some nodes decide which of the others run: see graph/flow.h
  std::vector<WorkFrame> frames;                            // for a graph with such nodes; the first frame is the graph itself
  std::vector<std::pair<WorkEdge, WorkEdge>> equal_shapes;  // equalities that passes relied on and that other feeds may break
  std::vector<const Node*> fixed;                           // see Plan
  int32_t seen = 0;
  PlanNotes notes;
  StateCache* states = nullptr;
  mutable std::map<std::string, bool> waits;  // the functions that CallsWhatWaits has examined
  MemoryNote memory;                          // see Plan
  bool accelerators_first = false;            // see Plan
  Runtime& runtime() const;
};

// A pass of the list that planning runs, in order.
struct Pass {
  std::string_view name, doc;
  Status (*run)(WorkGraph*);
  bool optional;  // an optimisation that may be switched off
};
const std::vector<Pass>& Passes();

Status BuildWorkGraph(Graph* graph, const Signature& signature, WorkGraph* out);
Status GuardPass(WorkGraph* w);      // checks that imported nodes do only what they are allowed to do
Status ReadsPass(WorkGraph* w);      // makes updates of variables wait for reads of them
Status FramePass(WorkGraph* w);      // finds the loop that every node is in
Status SequencePass(WorkGraph* w);   // turns loops whose iterations cannot overlap into calls
Status InlinePass(WorkGraph* w);     // replaces calls of functions by the functions' nodes
Status InferPass(WorkGraph* w);      // infers the shapes for these feeds, and the constants that follow from them
Status FoldPass(WorkGraph* w);       // evaluates nodes whose inputs are constants
Status SimplifyPass(WorkGraph* w);   // removes nodes that change nothing
Status CsePass(WorkGraph* w);        // merges equal stateless nodes
Status RewritePass(WorkGraph* w);    // lets graph rewriters replace nodes
Status PrunePass(WorkGraph* w);      // removes nodes that no fetch or target needs
Status PlacePass(WorkGraph* w);      // chooses a device and a kernel for every node
Status LayoutPass(WorkGraph* w);     // puts axes in the order that kernels prefer
Status OncePass(WorkGraph* w);       // runs nodes such as variable handles now, which makes their results constants
Status ClaimPass(WorkGraph* w);      // turns several nodes into one that a graph compiler runs
Status RecomputePass(WorkGraph* w);  // computes values again for gradients that ask for it

// Infers shapes, handles and small known values of a node that a pass added, from its inputs, which
// come before it. Errors: those of its op's shape rule.
Status InferAdded(WorkGraph* w, WorkNode* n);

// Describes how a placed node is run. The kernel state is not set.
NodeRun RunOf(const WorkGraph& w, const WorkNode& n);

}  // namespace thalweg
