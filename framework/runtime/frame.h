// What stands behind the tw_frame that a kernel gets: slots that hold values during a step, the node's fixed facts, and the step.
// The executor owns all of it; the host table reaches it from the frame. Threads: a frame is used by one kernel call at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/registry/kernel_spec.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/device.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class MemoryBudget;
class Runtime;
class Resource;
class ThreadPool;
class ThreadShare;

// Where a value is during a step. view.tensor is a tensor that may be shared, or NULL: the memory is the plan's and will be used again.
struct Slot {
  tw_view view;
  Tensor held;  // the step's share of view.tensor; empty for plan memory and for what the caller lends

  void Hold(Tensor t) {
    view = t.view();
    held = std::move(t);
  }
  // An output that nobody has allocated.
  void Clear() {
    held.reset();
    view.data = nullptr;
    view.offset = 0;
    view.dims = nullptr;
    view.rank = -1;
    view.count = view.bytes = 0;
    view.tensor = nullptr;
  }
};

// One node of a plan: what does not change from step to step.
struct NodeRun {
  const Node* node = nullptr;
  const KernelDef* kernel = nullptr;
  const tw_host* host = nullptr;  // the kernel's, or one that confines it; NULL: the kernel's
  void* state = nullptr;          // what create made
  Device* device = nullptr;
  const uint32_t* types = nullptr;               // inputs, then outputs
  std::vector<uint8_t> host_in, host_out;        // flat: lives in host memory
  std::vector<uint32_t> open_read, open_update;  // flat inputs that the host opens
  std::vector<uint32_t> open_replace;            // of open_update: whose elements the kernel leaves alone
  std::vector<Shape> variables;                  // per flat input: what the graph says of the variable behind a handle; may be empty
  std::vector<std::string_view> resources;       // per flat input: the type of resource that the op's schema wants; may be empty
  bool opens() const { return !open_read.empty() || !open_update.empty(); }
};

// One step, or one call outside a step.
struct StepBase {
  virtual ~StepBase() = default;
  // An asynchronous call that began with this tag is over. Any thread.
  virtual void Complete(uint64_t tag, Status s) = 0;
  // The slot's memory is the plan's: others have views of it, so it stays where it is.
  virtual bool IsPlanMemory(const Slot* slot) const {
    (void)slot;
    return false;
  }
  Runtime* runtime = nullptr;
  const std::string* container = nullptr;  // the session's default
  const CancelToken* cancel = nullptr;
  int64_t deadline = 0;            // on the monotonic clock, ns; 0: none
  ThreadPool* pool = nullptr;      // NULL: loops run on the caller
  ThreadShare* share = nullptr;    // of the pool; NULL: all of it, as anybody
  MemoryBudget* budget = nullptr;  // what its memory counts towards; NULL: nothing
  bool moves_state = false;        // a variable that lives on another device comes to the one whose kernel opens it
};

struct KernelFrame {
  tw_frame c;  // first: a const tw_frame* is the KernelFrame
  const NodeRun* run;
  StepBase* step;
  Slot** source;      // per flat input: the value as its producer left it; differs from c.in where a resource is opened
  Resource** opened;  // per flat input; NULL where it is not opened; the array is NULL if nothing is

  static KernelFrame* Of(const tw_frame* f) { return reinterpret_cast<KernelFrame*>(const_cast<tw_frame*>(f)); }
  Slot* in(uint32_t i) const { return reinterpret_cast<Slot*>(const_cast<tw_view*>(c.in[i])); }
  Slot* out(uint32_t o) const { return reinterpret_cast<Slot*>(const_cast<tw_view*>(c.out[o])); }
};

// The resource that flat input i refers to: opened, or by handle. INVALID_ARGUMENT if it is none.
StatusOr<Resource*> ResourceOf(const KernelFrame& f, uint32_t i);

// Opens what the kernel declares, in the order of addresses so that two kernels never wait for each other; `slots` are the views shown
// in place of the handles, per flat input.
Status OpenResources(KernelFrame* f, Slot* slots);
void CloseResources(KernelFrame* f);

// CANCELLED or DEADLINE_EXCEEDED if the step should stop.
Status StepInterrupted(const StepBase& step);
int64_t MonotonicNs();

// A tensor in the memory where output o of the node lives, paid from the budget if there is one.
StatusOr<Tensor> MakeOutput(const NodeRun& run, uint32_t o, const int64_t* dims, int32_t rank, MemoryBudget* budget);

}  // namespace thalweg
