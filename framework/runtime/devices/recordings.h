// Recordings: replays of the work that the runs of a plan (planner/emit/runs.h) enqueue on their device. If
// a run was given the same memory in two steps, the third step records it; from then on the
// recording is enqueued as one whenever the memory is the same. Otherwise, and if recording fails,
// the nodes are enqueued one by one. Belongs to one step state. Threads: one at a time.
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

  // Runs all nodes of the plan, in order.
  Status RunAll();
  // Forgets addresses because the plan's memory has moved. REQUIRES: the queues are empty.
  void Forget();

  // Keeps the device tensor of a value that this step is done with, possibly before its queues are.
  // The next step reuses it, so that runs get the same memory. Returns false and leaves *t alone if
  // the value is not made on a device for this step alone.
  bool Spare(int32_t value, Tensor* t);
  // Returns an empty tensor if none fits or somebody else holds it.
  Tensor TakeSpare(int32_t value, const int64_t* dims, int32_t rank);
  // Called if memory is short: gives all spare tensors to the queues, which free them when they
  // have passed them. Returns false if there are none.
  bool GiveSpares();

 private:
  struct Address {
    const void* data;
    uint64_t offset;
    bool operator==(const Address&) const = default;
  };
  // One set of memory that a run was given, and its recording.
  struct Story {
    std::vector<Address> memory;
    std::vector<int64_t> dims;  // rank and dims of each value
    uint64_t last = 0;          // when it was last given
    uint32_t times = 0;         // how often it was given; 0: not since the plan's memory moved
    void* recording = nullptr;  // of other memory if times is 0
    std::vector<char> told;     // what the recorded kernels got in the slots of Run::told
  };
  struct Lock {
    uint32_t node, input;  // flat input of the node
    bool update;
  };
  // A run, and those of its nodes that need more than enqueueing.
  struct Run {
    PlanRun nodes;
    Device* device;
    std::vector<uint32_t> await, hold, release;  // nodes that read copies; that make tensors; that release tensors
    std::vector<Lock> locks;
    std::vector<std::pair<Resource*, const Lock*>> wants;  // filled while the locks are taken
    std::vector<KernelFrame*> opens;                       // frames of nodes with locks
    std::vector<const Slot*> moves;                        // slots whose memory is not the plan's
    std::vector<std::pair<uint32_t, const Slot*>> told;    // host arguments that may be others in every step, by node
    std::vector<Story> stories;
    uint32_t failures = 0;  // failed attempts to record
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
  tw_status* RecordAll(const Run& run, size_t* failed);
  Status Follow(Run* run, Story* story);
  Status UpdateNode(const Run& run, void* recording, uint32_t node);
  void Release(const Run& run, void* recording);

  StepState* const step_;
  std::vector<Tensor> spare_;        // per value
  std::vector<uint8_t> own_memory_;  // per value: 1 if on a device, in a tensor that the step makes and does not share
  std::vector<Run> runs_;
  std::vector<Address> now_;   // scratch for Find
  std::vector<int64_t> dims_;  // scratch for Find
  uint64_t clock_ = 0;
};

// Returns the device tensor of a value: the last step's, or a new one. recordings: NULL if the plan
// has none.
template <class Make>
StatusOr<Tensor> MakeHeld(Recordings* recordings, int32_t value, const int64_t* dims, int32_t rank, Make&& make) {
  if (!recordings) return make();
  if (Tensor t = recordings->TakeSpare(value, dims, rank)) return t;
  auto made = make();
  const bool short_of_memory = !made.ok() && made.status().code() == absl::StatusCode::kResourceExhausted;
  return short_of_memory && recordings->GiveSpares() ? make() : std::move(made);
}

}  // namespace thalweg
