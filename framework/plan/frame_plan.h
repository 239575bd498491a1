// FramePlan: what the engine for control flow (runtime/frame_run.h) needs of a plan beside its nodes: which frame each is in, who is
// given its outputs, and what an iteration has to count. Immutable.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/flow.h"

namespace thalweg {

struct FramePlan {
  // Input `input` of a node; kControl: a control edge.
  struct Target {
    int32_t node = -1, input = 0;
  };
  static constexpr int32_t kControl = -1;

  // What a node has yet to wait for. Of a merge: twice its control inputs, and 1 until some input has come.
  struct Count {
    int32_t pending = 0;
    int32_t dead = 0;  // inputs that turned out dead
  };

  struct Node {
    Flow flow = Flow::kNone;                // kNone: a kernel, or values that are known
    bool constant = false;                  // its outputs are known; it only says when
    bool invariant = false;                 // an Enter whose value is there in all iterations
    bool watched = false;                   // a target: it has to have run, or be dead
    bool sends = false;                     // to another process, which hears of dead values, too
    int32_t frame = 0;                      // it runs in
    int32_t into = 0;                       // the frame that its outputs are in
    int32_t index = 0;                      // of its Count in an iteration
    int32_t first_token = 0;                // of its inputs in an iteration
    std::vector<int32_t> fixed;             // per input: the value that is there from the beginning, a feed or a constant; -1: it is given
    std::vector<std::vector<Target>> next;  // per output
    std::vector<Target> then;               // by control edges
    std::vector<int32_t> fetched;           // per output: the value where a fetch looks for it, -1: none does
  };

  struct Frame {
    std::string name;  // "": all that is in no loop
    int32_t parent = -1;
    int32_t parallel = 1;        // iterations that may be under way at once
    int32_t enters = 0;          // nodes that lead into it
    int32_t tokens = 0;          // inputs of all its nodes
    std::vector<Count> counts;   // at the beginning of an iteration
    std::vector<int32_t> nodes;  // by index
  };

  std::vector<Node> nodes;     // per node of the plan
  std::vector<Frame> frames;   // the first is the graph itself
  std::vector<int32_t> roots;  // nodes that wait for nothing
};

}  // namespace thalweg
