// WorkGraph: the part of a graph that a signature needs, while the passes work on it. Nodes are in topological order.
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
#include "framework/registry/kernel_spec.h"
#include "framework/runtime/device.h"
#include "framework/runtime/runtime.h"

namespace thalweg {

// Calls within each other that become nodes; more stay calls.
constexpr int32_t kMostInlined = 16;

struct WorkEdge {
  int32_t node = -1;
  int32_t port = 0;
  bool operator==(const WorkEdge& o) const { return node == o.node && port == o.port; }
};

struct WorkNode {
  const Node* node = nullptr;  // NULL: a feed
  int32_t feed = -1;
  const Node* reader = nullptr;  // of a read that stands for no node of the graph: for whom it reads; NULL: for a fetch
  std::vector<WorkEdge> in;
  std::vector<int32_t> controls;
  std::vector<WorkEdge> back;  // of a merge that closes a loop: per input, what comes round, if that is not `in`; node -1: it is
  Flow flow = Flow::kNone;
  int32_t frame = 0, into = 0;  // where it runs, and where its outputs are; see FramePass
  std::vector<uint32_t> out_types;
  std::vector<Shape> shapes;
  std::vector<HandleInfo> handles;  // empty: nothing is known of any output
  std::vector<Tensor> values;       // per output; empty: not a constant
  bool dead = false;
  bool constant = false;  // every output has a value and nothing runs
  bool ordered = false;   // something has to happen before its known values may be used
  bool open = false;      // a variable whose shape is not what it was declared with: some node of the graph may change it
  bool varies = false;    // its shapes and known values may be others for other feeds
  Device* device = nullptr;
  const KernelDef* kernel = nullptr;
  std::shared_ptr<const Part> part;  // what it stands for; NULL: for itself
  std::string within;                // of a node of a function that was inlined: the calls that it came with, for messages
  const HandleInfo& handle(int32_t port) const { return handles.empty() ? kNoHandle : handles[size_t(port)]; }
};

// A frame of the graph's loops.
struct WorkFrame {
  std::string name;
  int32_t parent = -1;
  int32_t parallel = 1;         // iterations that may be under way at once
  const Node* enter = nullptr;  // one that leads into it
  int32_t depth = 0;            // frames around it
};

struct WorkGraph {
  Graph* graph = nullptr;
  const Signature* signature = nullptr;
  const PlanOptions* options = nullptr;
  std::vector<Shape> feed_shapes;
  std::vector<WorkNode> nodes;
  std::vector<int32_t> feeds;  // node per feed; -1: nobody reads it
  std::vector<WorkEdge> fetches;
  std::vector<int32_t> targets;
  bool flow = false;                                        // some nodes decide what of the others runs: see graph/flow.h
  std::vector<WorkFrame> frames;                            // the first is the graph itself; of a graph with such nodes
  std::vector<std::pair<WorkEdge, WorkEdge>> equal_shapes;  // what passes made use of and other feeds may change
  std::vector<const Node*> fixed;                           // see Plan
  int32_t seen = 0;
  PlanNotes notes;
  StateCache* states = nullptr;
  mutable std::map<std::string, bool> waits;  // functions that CallsWhatWaits has looked at
  Runtime& runtime() const { return graph->runtime(); }
};

// A pass of the list that planning runs, in order.
struct Pass {
  std::string_view name, doc;
  Status (*run)(WorkGraph*);
  bool optional;  // an optimisation: may be switched off
};
const std::vector<Pass>& Passes();

Status BuildWorkGraph(Graph* graph, const Signature& signature, WorkGraph* out);
Status GuardPass(WorkGraph* w);     // imported nodes do what they may, and nothing else
Status FramePass(WorkGraph* w);     // which loop every node is in
Status SequencePass(WorkGraph* w);  // loops whose iterations cannot overlap become calls
Status InlinePass(WorkGraph* w);    // calls of functions become the functions' nodes
Status InferPass(WorkGraph* w);     // shapes for these feeds; constants that follow
Status FoldPass(WorkGraph* w);      // nodes whose inputs are constants
Status SimplifyPass(WorkGraph* w);  // nodes that change nothing
Status CsePass(WorkGraph* w);       // equal stateless nodes become one
Status PrunePass(WorkGraph* w);     // what no fetch or target needs
Status PlacePass(WorkGraph* w);     // a device and a kernel for every node
Status LayoutPass(WorkGraph* w);    // axes in the order that kernels want
Status OncePass(WorkGraph* w);      // handles and the like: run now, a constant from then on
Status ClaimPass(WorkGraph* w);     // several nodes become one that a graph compiler runs

// How a node that was placed is run; without its state.
NodeRun RunOf(const WorkGraph& w, const WorkNode& n);

}  // namespace thalweg
