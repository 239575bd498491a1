// Plan: a signature (feeds, fetches, targets, shapes of feeds) compiled into flat arrays that the
// executor walks. A plan is immutable.
// Threads: any number of steps may run one plan at the same time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/plan/node_run.h"
#include "framework/tensor/value_check.h"

namespace thalweg {

// A value of the plan. Location 0 is host memory; location d + 1 is the memory of device d of the
// plan.
struct PlanValue {
  enum Kind : uint8_t {
    kBlock,     // at an offset of the location's block; the shape is known
    kHeld,      // a tensor of its own: fetched, stored, made by the kernel, or of a shape known only when the step runs
    kConst,     // the same in every step
    kFeed,      // memory that the caller lends; a feed that the step owns is kHeld
    kFeedView,  // the memory of a feed under other dims
    kPassed,    // at an offset that no other value shares: a small value copied in or out, in a plan that takes its feeds
  };
  Kind kind = kHeld;
  uint32_t dtype = 0;
  int32_t location = 0;
  int32_t feed = -1;
  int32_t view_of = -1;  // the value whose memory this one shows under other dims; never a view itself
  int32_t readers = 0;   // for kHeld: the number of nodes that count a read of it; fetches are not counted
  bool fetched = false;
};

// For a value with more bytes, a tensor costs less than copies.
constexpr uint64_t kMostPassed = 1024;

class Part;  // planner/compilers/part.h: several nodes that a graph compiler made into one

struct PlanNode {
  // kCopyIn copies from host memory to a device, kCopyOut copies back, kCopyPeer copies between two
  // devices. The control-flow engine itself executes kFlow (see FramePlan).
  enum Kind : uint8_t { kKernel, kCopyIn, kCopyOut, kCopyPeer, kFlow };
  Kind kind = kKernel;
  NodeRun run;                   // for copies only `device` is set; for kCopyPeer it is the source device
  std::vector<int32_t> in, out;  // values
  bool simple = false;           // running the node takes only the indirect call
  bool dynamic = false;          // the shapes of its outputs are inferred when it runs
  bool cheap = false;
  bool given = false;                // the kernel makes the outputs (forwarded inputs): nothing is allocated before the call
  int32_t priority = 0;              // among ready nodes, the one with the larger priority goes first
  std::vector<int32_t> held_in;      // kHeld values whose reader counts this node decrements, each once
  std::vector<int32_t> copied_in;    // values of `in` that copies produce; the node's queue, or the host, waits for these copies to end
  std::vector<int32_t> next;         // nodes that wait for this one
  int32_t pending = 0;               // number of nodes that this one waits for
  std::shared_ptr<const Part> part;  // NULL: a node of the graph, or a copy
  std::string title;                 // names the node in messages: op, name, device
};

// The parts of a plan that depend on the shapes of its feeds.
struct PlanShapes {
  struct Value {
    Shape shape;                    // unknown if only running the step tells
    uint64_t count = 0, bytes = 0;  // set if the shape is known
    uint64_t offset = 0;            // for kBlock and kPassed
    int32_t in_place_of = -1;       // for kBlock: the value whose memory this one takes over
    Tensor constant;                // for kConst
  };
  struct Scratch {
    uint64_t bytes = 0, offset = 0;
  };
  std::vector<Value> values;
  std::vector<Scratch> scratch;       // per node
  std::vector<uint8_t> heavy;         // per node: whether it is worth waking a sleeping thread for
  std::vector<uint64_t> block_bytes;  // per location
  uint64_t peak_bytes = 0;            // the largest total of bytes that are live at one time
  uint64_t unplanned_bytes = 0;       // bytes that the blocks would hold without reuse
  uint64_t total_bytes() const { return std::accumulate(block_bytes.begin(), block_bytes.end(), uint64_t{0}); }
};

// A set of nodes that a graph compiler took.
struct ClaimNote {
  std::string compiler, plugin;
  std::vector<const Node*> nodes;
  bool loaded = false;  // loaded from the cache of earlier compilations
  std::string refused;  // why the nodes run one by one after all; "" if they run as one
};
// A node that a graph compiler did not take.
struct LeftNote {
  std::string compiler, plugin;
  const Node* node = nullptr;
  std::string why;
};

// A substitution of a graph rewriter.
struct RewriteNote {
  std::string rewriter, plugin, rule;
  std::vector<const Node*> nodes;  // that went
  std::vector<std::string> added;  // the ops of the nodes that came
  std::string refused;             // why nothing changed; "" if it was applied
};
// A node that a graph rewriter left, with its reason.
struct KeptNote {
  std::string rewriter, plugin;
  const Node* node = nullptr;
  std::string why;
};

// A node that runs on a device other than the one that was asked for.
struct FallbackNote {
  const Node* node = nullptr;
  std::string asked, why;  // the requested device, and the reason for the other one
  const Device* device = nullptr;
};

// The reason why a node runs on its device.
struct PlaceNote {
  enum Why : uint8_t {
    kAsked,      // the device name of the node, or of the session, admits no other
    kShared,     // the node must share a device with others, and one of them has no choice
    kOnlyThere,  // no other device has kernels for the node
    kFirst,      // the first device with kernels for it, in the order that the option `prefer` asks for
    kCost,       // chosen by the costs of kernels and copies
    kLearned,    // measured to be the fastest place
    kFallback,   // see FallbackNote
    kFollows     // a node without inputs follows its reader, one that is about shapes its input
  };
  const Node* node = nullptr;
  const Device* device = nullptr;
  Why why = kFirst;
  const Node* with = nullptr;  // for kShared: the node that has no choice; for kFollows: the node that it follows
  int64_t cost_ns = -1;        // for kCost and kLearned: estimated cost on `device`; -1 if unknown
  int64_t other_ns = -1;       // estimated cost on the best of the other devices
};

// Nodes that run in another order of axes than the graph gives.
struct LayoutNote {
  std::string order;  // the order that the first of the nodes that prefer it asks for, such as "NHWC"
  std::vector<const Node*> nodes;
  int64_t transposes = 0, bytes = 0;  // the number of values that are transposed for these nodes, and their bytes
};

// Describes what planning changed so that the values of a step need less memory.
struct MemoryNote {
  struct Value {
    const Node* node = nullptr;  // its maker
    int32_t port = 0;
    uint64_t bytes = 0;
  };
  uint64_t budget = 0;                                 // in bytes; 0: none was asked for
  uint64_t before = 0, after = 0;                      // bytes of the blocks without and with the changes
  bool ordered = false;                                // another order was chosen
  std::vector<const Node*> recomputed;                 // nodes that run a second time
  std::vector<Value> swapped;                          // values of a device that wait in host memory
  int64_t recompute_ns = 0, swap_ns = 0, step_ns = 0;  // estimates: of the added work, and of the step without it
  bool any() const { return ordered || !recomputed.empty() || !swapped.empty(); }
};

// The changes that passes made to the nodes that a signature needs, for reports.
struct PlanNotes {
  std::vector<const Node*> folded;                          // computed at planning time
  std::vector<std::pair<const Node*, const Node*>> merged;  // the second node replaces the first
  std::vector<std::pair<const Node*, Edge>> removed;        // the edge replaces the node's output
  std::vector<RewriteNote> rewrites;
  std::vector<KeptNote> kept;
  std::vector<ClaimNote> claims;
  std::vector<LeftNote> left;
  std::vector<FallbackNote> fallbacks;
  std::vector<PlaceNote> places;
  std::vector<LayoutNote> layouts;
  std::vector<std::pair<std::string, const Node*>> sequences;  // frames, each with the node that runs its iterations one after the other
};

// Nodes [begin, end) of a plan, which one thread runs in order.
struct PlanBatch {
  int32_t begin = 0, end = 0;
  int32_t pending = 0;        // the number of batches that this one waits for
  std::vector<int32_t> next;  // batches that wait for this one
};

// Nodes [begin, end), all of which only enqueue work on the kernel queue of one device.
struct PlanRun {
  int32_t begin = 0, end = 0;
};

struct FramePlan;    // frame_plan.h
struct ShapeSource;  // planner/emit/shape_source.h

struct Plan {
  Plan();
  ~Plan();
  std::vector<PlanNode> nodes;  // in an order that respects all dependencies
  std::vector<PlanValue> values;
  std::vector<int32_t> feeds;         // value per feed; -1 if no node reads the feed
  std::vector<int32_t> fetches;       // value per fetch
  std::vector<int32_t> copied_feeds;  // the feeds that a step copies before it reads them (read_once.h), ascending
  std::vector<Device*> devices;       // the devices of locations 1...
  bool counted = false;               // whether the counted engine runs it
  std::vector<int32_t> pending;       // for the counted engine, per node: the number of nodes that it waits for
  std::vector<int32_t> roots;         // nodes that wait for no other
  std::unique_ptr<FramePlan> frames;  // for a graph with control flow, which has its own engine; else NULL
  std::vector<PlanBatch> batches;     // all nodes, if the fixed engine may run some of them side by side; else empty
  bool records = false;               // the work that nodes enqueue is worth recording; then the fixed engine runs the plan
  std::vector<PlanRun> runs;          // for a plan that records, ascending
  bool async = false;                 // some kernel completes asynchronously
  bool wants_counts = false;          // the engine that the sizes ask for; the memory budget may forbid it
  bool in_turn = false;               // the counted engine also runs one node after the other
  bool smallest_peak = false;         // the order was chosen to keep the memory peak small
  bool takes_feeds = false;           // as in the signature
  bool prioritized = false;           // the first ready node in plan order runs first: some node has a priority or goes to a queue
  Device* host = nullptr;             // the device whose pool serves location 0
  // The values that a result of a node may not hold. If it is not kOff, no result takes the memory of an
  // input, so that an error can describe the inputs.
  ValueCheck check = ValueCheck::kOff;
  PlanNotes notes;
  std::shared_ptr<const PlanShapes> shapes;  // for the feed shapes that the plan was compiled for
  std::shared_ptr<ShapeSource> source;       // input of OtherShapes; NULL if the feeds have no other shapes
  // Variables by reference that the plan assumes to keep their declared shapes, and the number of
  // graph nodes that were searched for one that may change such a shape.
  std::vector<const Node*> fixed;
  mutable std::atomic<int32_t> seen{0};
  mutable std::atomic<uint64_t> resets{0};  // count of container resets when the plan's handles were last checked: see ResourceStore
  MemoryNote memory;
  bool accelerators_first = false;  // placement preferred accelerators; a variable then moves to the device of whoever opens it
};

struct Signature {
  std::vector<Edge> feeds, fetches;
  std::vector<const Node*> targets;
  bool takes_feeds = false;  // the step owns its feeds and releases each after its last reader
  bool stays = false;        // fetches stay in the memory where they were made
  // The devices in whose memory feeds arrive and fetches are delivered. NULL, or an index beyond
  // the end, means host memory.
  std::vector<Device*> feed_devices, fetch_devices;
  // Nodes that ran in an earlier part of the run, sorted by id. No node waits for them, and their
  // needed values are fed.
  std::vector<const Node*> over;
  Device* feed_device(size_t i) const { return i < feed_devices.size() ? feed_devices[i] : nullptr; }
  Device* fetch_device(size_t i) const { return i < fetch_devices.size() ? fetch_devices[i] : nullptr; }
};

}  // namespace thalweg
