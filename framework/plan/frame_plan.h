// FramePlan: the data of a plan, beside its nodes, that the engine for control flow
// (runtime/flow/frame_run.h) needs: the frame of each node, the receivers of its outputs, and the counts
// of an iteration. Immutable.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/flow.h"

namespace thalweg {

struct FramePlan {
  // Input `input` of a node; kControl means a control edge.
  struct Target {
    int32_t node = -1, input = 0;
  };
  static constexpr int32_t kControl = -1;

  // The inputs that a node still waits for. For a merge, `pending` is twice its control inputs,
  // plus 1 until some input has arrived.
  struct Count {
    int32_t pending = 0;
    int32_t dead = 0;  // number of inputs that turned out dead
  };

  struct Node {
    Flow flow = Flow::kNone;     // kNone: a kernel, or known values
    bool constant = false;       // its outputs are known; the node only tells when they are available
    bool invariant = false;      // an Enter whose value is available in all iterations
    bool watched = false;        // a target: it must have run, or be dead
    bool sends = false;          // it sends to another process, which is told of dead values too
    int32_t frame = 0;           // the frame where the node runs
    int32_t into = 0;            // the frame of its outputs
    int32_t index = 0;           // index of its Count in an iteration
    int32_t first_token = 0;     // index of its first input among the tokens of an iteration
    std::vector<int32_t> fixed;  // per input: the value available from the beginning, a feed or a constant; -1 if another node produces it
    std::vector<std::vector<Target>> next;  // per output
    std::vector<Target> then;               // targets of its control edges
    std::vector<int32_t> fetched;           // per output: the value that a fetch reads, -1 if none does
  };

  struct Frame {
    std::string name;  // "" for the nodes outside all loops
    int32_t parent = -1;
    int32_t parallel = 1;        // iterations that may run at the same time
    int32_t enters = 0;          // number of nodes that lead into it
    int32_t tokens = 0;          // number of inputs of all its nodes
    std::vector<Count> counts;   // counts at the beginning of an iteration
    std::vector<int32_t> nodes;  // by index
  };

  std::vector<Node> nodes;     // per node of the plan
  std::vector<Frame> frames;   // the first is the graph itself
  std::vector<int32_t> roots;  // nodes that wait for no other
};

}  // namespace thalweg
