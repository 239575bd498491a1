// Plan: a signature (feeds, fetches, targets, shapes of feeds) compiled into flat arrays that the executor walks. Immutable.
// Threads: any number of steps run one plan.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
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
    kFeed,      // lent by the caller
    kFeedView,  // the memory of a feed under other dims
  };
  Kind kind = kHeld;
  uint32_t dtype = 0;
  int32_t location = 0;
  Shape shape;
  uint64_t count = 0, bytes = 0, offset = 0;  // of kBlock, and of kHeld with a known shape
  Tensor constant;
  int32_t feed = -1;
  int32_t readers = 0;  // of kHeld: nodes that read it, fetches not counted
  bool fetched = false;
};

struct PlanNode {
  enum Kind : uint8_t { kKernel, kCopyIn, kCopyOut };  // copies between host memory and a device's
  Kind kind = kKernel;
  NodeRun run;                   // copies: only device is set
  std::vector<int32_t> in, out;  // values
  bool simple = false;           // nothing but the indirect call
  bool dynamic = false;          // shapes of outputs are inferred when it runs
  bool cheap = false;
  bool heavy = false;  // worth waking a sleeping thread for
  bool given = false;  // outputs come from the kernel (forwarded inputs): nothing is allocated before
  uint64_t scratch = 0, scratch_offset = 0;
  std::vector<int32_t> held_in;   // kHeld values that it reads, each once
  std::vector<int32_t> next;      // nodes that wait for it
  int32_t pending = 0;            // how many nodes it waits for
  std::unique_ptr<CAttrs> attrs;  // for dynamic shapes
  std::string title;              // for messages: op, name, device
};

struct PlanOptions {
  std::string container = "";
  bool optimize = true;
  uint32_t threads = 1;
  std::string engine = "auto";  // auto, fixed, counted
  bool soft_placement = false;  // a node whose device has no kernel for it may run elsewhere; reported in the log
  std::vector<std::string> disabled_passes;
};

struct Plan {
  std::vector<PlanNode> nodes;  // in an order that respects all dependencies
  std::vector<PlanValue> values;
  std::vector<int32_t> feeds;         // value per feed; -1: nobody reads it
  std::vector<int32_t> fetches;       // value per fetch
  std::vector<Device*> devices;       // of locations 1...
  std::vector<uint64_t> block_bytes;  // per location
  bool counted = false;               // engine
  std::vector<int32_t> pending;       // per node: how many it waits for; of the counted engine
  std::vector<int32_t> roots;         // nodes that wait for none
  uint64_t unplanned_bytes = 0;       // what the blocks would hold without reuse, for reports
  Device* host = nullptr;             // whose pool serves location 0
};

struct Signature {
  std::vector<Edge> feeds, fetches;
  std::vector<const Node*> targets;
};

// Makes and keeps kernel states: one per node, kernel and device of a session.
class StateCache {
 public:
  virtual ~StateCache() = default;
  virtual StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) = 0;
  // The results of a node that gives the same in every step of the session.
  virtual StatusOr<std::vector<Tensor>> Once(const NodeRun& run) = 0;
};

// feed_shapes: one per feed; unknown where the plan is to serve any shape.
// Errors: INVALID_ARGUMENT for a placeholder that is not fed or shapes that cannot be; what shape rules and placement say.
StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states);

}  // namespace thalweg
