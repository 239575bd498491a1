// LoopRun: a frame that is being run, with those of its iterations that are under way. Loops keeps them, and uses their memory again.
// Threads: none of its own; the engine's lock guards all of it.
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
  int32_t waiting = 0;          // nodes, merges not counted, of which some inputs came and others did not yet
  std::vector<LoopRun*> inner;  // loops that began in it and are not over
  std::vector<FramePlan::Count> counts;
  std::vector<Tensor> tokens;  // per input of the frame's nodes
};

struct LoopRun {
  int32_t frame = 0;
  uint64_t serial = 0;  // of all that were begun, from 1
  LoopRun* parent = nullptr;
  Iteration* within = nullptr;                         // of the parent
  std::deque<Iteration*> iterations;                   // from number `first` on; NULL: over
  int64_t first = 0, last = 0;                         // the last one that has begun
  int32_t under_way = 0;                               // iterations
  int32_t enters_left = 0;                             // Enter nodes that are yet to come
  std::vector<std::pair<int32_t, Tensor>> deferred;    // what waits for the next iteration to be allowed, by NextIteration
  std::vector<std::pair<int32_t, Tensor>> invariants;  // what is there in all iterations, by Enter; empty: dead
  std::vector<int32_t> dead_exits;                     // of the last iteration
  std::vector<int32_t> left;                           // exits whose values have left
  // NULL: over.
  Iteration* At(int64_t number) const { return number < first ? nullptr : iterations[size_t(number - first)]; }
};

// The numbers of an iteration and of those around it, the outermost first: "1.4"; "" outside of loops.
std::string IterationNumbers(const LoopRun& loop, const Iteration& it);

class Loops {
 public:
  explicit Loops(const FramePlan& plan) : p_(plan), free_iterations_(plan.frames.size()) {}

  // The frame begins, with its first iteration.
  LoopRun* Begin(int32_t frame, LoopRun* parent, Iteration* within);
  void End(LoopRun* loop);
  Iteration* AddIteration(LoopRun* loop);
  void EndIteration(LoopRun* loop, Iteration* it);
  // With all that is under way inside.
  void Abandon(LoopRun* loop);

  // "iteration 3 of frame 'loop'", and of the frames around it; "" outside of loops.
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
