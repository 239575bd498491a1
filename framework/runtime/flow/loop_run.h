// LoopRun: a running frame and its iterations in progress. Loops owns them and reuses their memory.
// Threads: none of its own; the engine's lock guards everything.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/plan/frame_plan.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct LoopRun;

struct Iteration {
  int64_t number = 0;
  int32_t ops = 0;              // nodes that are ready or running
  int32_t waiting = 0;          // nodes (without merges) that received some inputs but not all
  std::vector<LoopRun*> inner;  // loops that began in it and have not ended
  std::vector<FramePlan::Count> counts;
  std::vector<Tensor> tokens;  // per input of the frame's nodes
};

struct LoopRun {
  int32_t frame = 0;
  uint64_t serial = 0;  // number of the run, from 1
  LoopRun* parent = nullptr;
  Iteration* within = nullptr;                         // iteration of the parent
  std::deque<Iteration*> iterations;                   // iterations from number `first` on; NULL: ended
  int64_t first = 0, last = 0;                         // last: the newest that has begun
  int32_t under_way = 0;                               // iterations in progress
  int32_t enters_left = 0;                             // Enter nodes that have not arrived
  std::vector<std::pair<int32_t, Tensor>> deferred;    // values of NextIteration nodes for an iteration that may not begin yet
  std::vector<std::pair<int32_t, Tensor>> invariants;  // values of Enter nodes for all iterations; empty: dead
  std::vector<int32_t> dead_exits;                     // dead exits of the last iteration
  std::vector<int32_t> left;                           // exits that have passed a live value
  // Returns NULL if the iteration has ended.
  Iteration* At(int64_t number) const { return number < first ? nullptr : iterations[size_t(number - first)]; }
};

// Returns the numbers of an iteration and of those around it, outermost first: "1.4"; "" outside
// loops.
std::string IterationNumbers(const LoopRun& loop, const Iteration& it);

class Loops {
 public:
  explicit Loops(const FramePlan& plan) : p_(plan), free_iterations_(plan.frames.size()) {}

  // Begins a run of the frame, with its first iteration.
  LoopRun* Begin(int32_t frame, LoopRun* parent, Iteration* within);
  void End(LoopRun* loop);
  Iteration* AddIteration(LoopRun* loop);
  void EndIteration(LoopRun* loop, Iteration* it);
  // Ends a run with everything in progress inside it.
  void Abandon(LoopRun* loop);

  // Formats "iteration 3 of frame 'loop'" and the same for the frames around it; "" outside loops.
  std::string Where(const LoopRun& loop, const Iteration& it) const;

 private:
  const FramePlan& p_;
  uint64_t begun_ = 0;
  std::vector<std::unique_ptr<LoopRun>> loops_;
  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<LoopRun*> free_loops_;
  std::vector<std::vector<Iteration*>> free_iterations_;  // per frame
};

}  // namespace thalweg
