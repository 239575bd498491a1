// Plan: a signature (feeds, fetches, targets, shapes of feeds) compiled into flat arrays that the executor walks. Immutable.
// Threads: any number of steps run one plan.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/runtime/frame.h"

namespace thalweg {

// A value of the plan. Locations: 0 is host memory, d + 1 the memory of device d of the plan.
struct PlanValue {
  enum Kind : uint8_t {
    kBlock,     // at an offset of the location's block; shape known
    kHeld,      // a tensor of its own: fetched, stored, given by the kernel, or of a shape that only running tells
    kConst,     // the same in every step
    kFeed,      // lent by the caller; a feed that the step owns is kHeld
    kFeedView,  // the memory of a feed under other dims
    kPassed,    // at an offset where nothing else ever lies: a small value that is copied in or out, of a plan that takes its feeds
  };
  Kind kind = kHeld;
  uint32_t dtype = 0;
  int32_t location = 0;
  int32_t feed = -1;
  int32_t view_of = -1;  // the value whose memory it shows under other dims; never a view itself
  int32_t readers = 0;   // of kHeld: nodes that read it and count that, fetches not counted
  bool fetched = false;
};

// Of a value with more bytes, a tensor costs less than copies of it.
constexpr uint64_t kMostPassed = 1024;

class Part;  // part.h: what a graph compiler made of several nodes

struct PlanNode {
  // Copies from host memory to a device's, back, between two devices; what the engine for control flow does itself (see FramePlan).
  enum Kind : uint8_t { kKernel, kCopyIn, kCopyOut, kCopyPeer, kFlow };
  Kind kind = kKernel;
  NodeRun run;                   // copies: only device is set; kCopyPeer: where the value comes from
  std::vector<int32_t> in, out;  // values
  bool simple = false;           // nothing but the indirect call
  bool dynamic = false;          // shapes of outputs are inferred when it runs
  bool cheap = false;
  bool given = false;                // outputs come from the kernel (forwarded inputs): nothing is allocated before
  int32_t priority = 0;              // of nodes that are ready the larger goes first
  std::vector<int32_t> held_in;      // kHeld values whose readers it counts down, each once
  std::vector<int32_t> copied_in;    // values of `in` that copies make, whose ends its queue, or the host, waits for
  std::vector<int32_t> next;         // nodes that wait for it
  int32_t pending = 0;               // how many nodes it waits for
  std::shared_ptr<const Part> part;  // NULL: a node of the graph, or a copy
  std::string title;                 // for messages: op, name, device
};

// What nodes of imported graphs may do; those that the program added itself may do anything.
struct ImportedRules {
  uint32_t may_touch = ~0u;                      // Touches
  std::vector<std::string> allow_ops, deny_ops;  // allow_ops empty: all but deny_ops
};

// What of a plan follows from the shapes of its feeds.
struct PlanShapes {
  struct Value {
    Shape shape;                    // unknown where only running tells
    uint64_t count = 0, bytes = 0;  // of a known shape
    uint64_t offset = 0;            // of kBlock and kPassed
    int32_t in_place_of = -1;       // of kBlock: the value whose memory it takes over
    Tensor constant;                // of kConst
  };
  struct Scratch {
    uint64_t bytes = 0, offset = 0;
  };
  std::vector<Value> values;
  std::vector<Scratch> scratch;       // per node
  std::vector<uint8_t> heavy;         // per node: worth waking a sleeping thread for
  std::vector<uint64_t> block_bytes;  // per location
  uint64_t peak_bytes = 0;            // the most that live values take together
  uint64_t unplanned_bytes = 0;       // what the blocks would hold without reuse
  uint64_t total_bytes() const { return std::accumulate(block_bytes.begin(), block_bytes.end(), uint64_t{0}); }
};

// Where nodes are to run, by name: the uid of a device, or "CPU:0".
using Places = std::map<std::string, std::string, std::less<>>;
class CostModel;  // cost_model.h

struct PlanOptions {
  bool optimize = true;
  uint32_t threads = 1;
  std::string engine = "auto";             // auto, fixed, counted
  std::string order = "auto";              // auto, given, smallest_peak
  uint64_t memory_budget = 0;              // bytes of a step's blocks; 0: any
  std::string compilers = "on";            // on, off, require
  DeviceSpec device;                       // of nodes, as far as they do not say themselves
  bool may_leave_device = false;           // where it has no kernel for such nodes: of functions that are called from there
  std::string fallback = "fail";           // fail, warn, allow: whether a node whose device has no kernel for it may run elsewhere
  std::string placement = "simple";        // simple, cost, learned: see the session option
  std::shared_ptr<const CostModel> costs;  // of the last two; NULL: nothing is known
  std::shared_ptr<const Places> places;    // what was learned; NULL: nothing
  std::vector<std::string> disabled_passes;
  bool capture = true;  // record what queues of devices are given again and again
  ImportedRules imported;
  MemoryBudget* budget = nullptr;  // pays for what is computed while planning; NULL: nobody
};

// A set of nodes that a graph compiler took.
struct ClaimNote {
  std::string compiler, plugin;
  std::vector<const Node*> nodes;
  bool loaded = false;  // from the cache of what was compiled before
  std::string refused;  // why they run one by one all the same; "": they run as one
};
// A node that a graph compiler left.
struct LeftNote {
  std::string compiler, plugin;
  const Node* node = nullptr;
  std::string why;
};

// A node that runs elsewhere than was asked.
struct FallbackNote {
  const Node* node = nullptr;
  std::string asked, why;  // the device, and why it is another
  const Device* device = nullptr;
};

// Why a node runs where it does.
struct PlaceNote {
  enum Why : uint8_t {
    kAsked,      // its name, or the session's device, admits no other
    kShared,     // it must share a device with others, one of which leaves no choice
    kOnlyThere,  // no other device has kernels for it
    kFirst,      // the first device with kernels for it, host memory first
    kCost,       // by what kernels and copies take
    kLearned,    // as was measured to be the fastest
    kFallback    // see FallbackNote
  };
  const Node* node = nullptr;
  const Device* device = nullptr;
  Why why = kFirst;
  const Node* with = nullptr;  // of kShared: who left no choice
  int64_t cost_ns = -1;        // of kCost and kLearned: what it is thought to take there; -1: not known
  int64_t other_ns = -1;       // and on the best of the other devices
};

// Nodes that run in another order of axes than the graph says.
struct LayoutNote {
  std::string order;  // of the first of the nodes that want it, such as "NHWC"
  std::vector<const Node*> nodes;
  int64_t transposes = 0, bytes = 0;  // values that are transposed for them, and their bytes
};

// What the passes did to the nodes that a signature needs, for reports.
struct PlanNotes {
  std::vector<const Node*> folded;                          // computed in advance
  std::vector<std::pair<const Node*, const Node*>> merged;  // the second serves for the first
  std::vector<std::pair<const Node*, Edge>> removed;        // the value stands for its output
  std::vector<ClaimNote> claims;
  std::vector<LeftNote> left;
  std::vector<FallbackNote> fallbacks;
  std::vector<PlaceNote> places;
  std::vector<LayoutNote> layouts;
  std::vector<std::pair<std::string, const Node*>> sequences;  // frames, and the node that runs one iteration after the other
};

// Nodes [begin, end) of a plan, which one thread runs in order.
struct PlanBatch {
  int32_t begin = 0, end = 0;
  int32_t pending = 0;        // how many batches it waits for
  std::vector<int32_t> next;  // batches that wait for it
};

// Nodes [begin, end), which only fill one device's queue for kernels.
struct PlanRun {
  int32_t begin = 0, end = 0;
};

struct FramePlan;  // frame_plan.h
struct ShapeSource;

struct Plan {
  Plan();
  ~Plan();
  std::vector<PlanNode> nodes;  // in an order that respects all dependencies
  std::vector<PlanValue> values;
  std::vector<int32_t> feeds;         // value per feed; -1: nobody reads it
  std::vector<int32_t> fetches;       // value per fetch
  std::vector<int32_t> copied_feeds;  // which of the feeds a step copies before it reads them (read_once.h), ascending
  std::vector<Device*> devices;       // of locations 1...
  bool counted = false;               // engine
  std::vector<int32_t> pending;       // per node: how many it waits for; of the counted engine
  std::vector<int32_t> roots;         // nodes that wait for none
  std::unique_ptr<FramePlan> frames;  // of a graph with control flow, which has an engine of its own; else NULL
  std::vector<PlanBatch> batches;     // all nodes, where the fixed engine may run some beside others; else empty
  bool records = false;               // what nodes give to queues is worth recording; then the fixed engine runs them
  std::vector<PlanRun> runs;          // of a plan that records, ascending
  bool async = false;                 // some kernel ends elsewhere
  bool wants_counts = false;          // what the sizes ask for; the memory budget may forbid it
  bool in_turn = false;               // the counted engine too runs one node after the other
  bool smallest_peak = false;         // the order was chosen for its memory
  bool takes_feeds = false;           // as the signature
  bool prioritized = false;           // of what is ready the first goes first: some node has a priority, or goes to a queue
  Device* host = nullptr;             // whose pool serves location 0
  PlanNotes notes;
  std::shared_ptr<const PlanShapes> shapes;  // for the feeds that it was made for
  std::unique_ptr<ShapeSource> source;       // what other shapes are worked out from; NULL: the feeds have no others
  // Variables by reference that it takes to have the shapes they were declared with, and how many nodes of the graph were looked at for one
  // that may change them.
  std::vector<const Node*> fixed;
  mutable std::atomic<int32_t> seen{0};
  mutable std::atomic<uint64_t> resets{0};  // of containers, when its handles were last looked at: see ResourceStore
};

struct Signature {
  std::vector<Edge> feeds, fetches;
  std::vector<const Node*> targets;
  bool takes_feeds = false;  // the step owns what it is fed, and lets it go with its last reader
  bool stays = false;        // fetches stay in the memory where they are made
  // Where feeds come from and fetches go to: in the memory of these devices. NULL, and beyond the end: in host memory.
  std::vector<Device*> feed_devices, fetch_devices;
  // Ran in an earlier part of the run: nobody waits for them, and what is wanted of their values is fed. By id.
  std::vector<const Node*> over;
  Device* feed_device(size_t i) const { return i < feed_devices.size() ? feed_devices[i] : nullptr; }
  Device* fetch_device(size_t i) const { return i < fetch_devices.size() ? fetch_devices[i] : nullptr; }
};

// Makes and keeps kernel states: one per node, kernel and device of a session.
class StateCache {
 public:
  virtual ~StateCache() = default;
  virtual StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) = 0;
  // The results of a node that gives the same in every step of the session.
  virtual StatusOr<std::vector<Tensor>> Once(const NodeRun& run) = 0;
  // The host table that a kernel of the node gets.
  virtual const tw_host* HostFor(const Node& node, const KernelDef& kernel) {
    (void)node;
    return kernel.host;
  }
};

// feed_shapes: one per feed; unknown where the plan is to serve any shape.
// Errors: INVALID_ARGUMENT for a placeholder that is not fed or shapes that cannot be; what shape rules and placement say.
StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states);

// The same plan for other feeds: sizes, offsets and constants that follow from shapes, by running the shape rules alone. NULL: the plan
// does not fit these shapes, and whoever asks makes another. Threads: one at a time per plan; steps may run meanwhile.
std::shared_ptr<const PlanShapes> OtherShapes(const Plan& plan, const std::vector<Shape>& feed_shapes);

}  // namespace thalweg
