// Recordings: what the runs of a plan (plan/runs.h) give to their device's queue. A run that was given the same memory in two steps is
// recorded in the third, and enqueued as one from then on, whenever its memory is that again. Else, and wherever recording fails, its nodes
// are enqueued one by one. Belongs to one step state. Threads: one at a time.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Resource;
class StepState;
struct KernelFrame;
struct Slot;

class Recordings {
 public:
  explicit Recordings(StepState* step);
  ~Recordings();  // REQUIRES: the queues are gone
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // All nodes of the plan, in order.
  Status RunAll();
  // The plan's memory has moved. REQUIRES: the queues are empty.
  void Forget();

  // The tensor of a value on a device that this step is done with, maybe before its queues are: the next step uses it again, so that runs
  // are given the same memory. False: it is no such value, and *t stays.
  bool Spare(int32_t value, Tensor* t);
  // Empty: there is none that fits, and that nobody else holds.
  Tensor TakeSpare(int32_t value, const int64_t* dims, int32_t rank);
  // Where memory is short: all of them, for the queues to keep until they are past them. False: there are none.
  bool GiveSpares();

 private:
  struct Address {
    const void* data;
    uint64_t offset;
    bool operator==(const Address&) const = default;
  };
  // Memory that a run was given, and what was recorded with it.
  struct Story {
    std::vector<Address> memory;
    std::vector<int64_t> dims;  // of what lies there, each after its rank
    uint64_t last = 0;          // when it was given
    uint32_t times = 0;         // how often; 0: never since the plan's memory moved
    void* recording = nullptr;  // of other memory where times is 0
  };
  struct Lock {
    uint32_t node, input;  // flat input of the node
    bool update;
  };
  // A run: what of it takes more than enqueuing.
  struct Run {
    PlanRun nodes;
    Device* device;
    std::vector<uint32_t> await, hold, release;  // nodes: that read copies, make tensors, are done with tensors
    std::vector<Lock> locks;
    std::vector<std::pair<Resource*, const Lock*>> wants;  // while they are taken
    std::vector<KernelFrame*> opens;                       // frames of nodes with locks
    std::vector<const Slot*> moves;                        // whose memory is not the plan's
    std::vector<Story> stories;
    uint32_t failures = 0;  // of recording
  };
  void AddNode(Run* run, size_t i);
  Status Guarded(Run* run);
  Status RunOne(Run* run);
  Status NodeByNode(const Run& run);
  Status Prepare(Run* run);
  bool LockAll(Run* run);
  bool IsAway(const Run& run) const;
  Status Enqueue(Run* run);
  Status EnqueueAll(Run* run);
  Story* Find(Run* run);
  void Record(Run* run, Story* story);
  tw_status* ExecuteAll(const Run& run, size_t* failed);
  void Release(const Run& run, void* recording);

  StepState* const step_;
  std::vector<Tensor> spare_;        // per value
  std::vector<uint8_t> own_memory_;  // per value: on a device, in a tensor that the step makes and keeps to itself
  std::vector<Run> runs_;
  std::vector<Address> now_;   // while a run is looked for
  std::vector<int64_t> dims_;  // likewise
  uint64_t clock_ = 0;
};

// The tensor of a value on a device: what the last step had, or a new one. recordings: NULL: the plan has none.
template <class Make>
StatusOr<Tensor> MakeHeld(Recordings* recordings, int32_t value, const int64_t* dims, int32_t rank, Make&& make) {
  if (!recordings) return make();
  if (Tensor t = recordings->TakeSpare(value, dims, rank)) return t;
  auto made = make();
  const bool short_of_memory = !made.ok() && made.status().code() == absl::StatusCode::kResourceExhausted;
  return short_of_memory && recordings->GiveSpares() ? make() : std::move(made);
}

}  // namespace thalweg
