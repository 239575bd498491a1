// The objects behind the tw_frame that a kernel receives: slots that hold values during a step, the
// fixed facts of the node, and the step. The executor owns them; the host table reaches them from
// the frame. Threads: a frame is used by one kernel call at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/monotonic.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/plan/node_run.h"
#include "framework/registry/kernel_spec.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/devices/device.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Carrier;
class Function;
class MemoryBudget;
struct QueueMark;
class Rendezvous;
class Runtime;
class Resource;
class ThreadPool;
class ThreadShare;

// The location of a value during a step. view.tensor is a tensor that may be shared; NULL means
// that the memory is the plan's and will be reused.
struct Slot {
  tw_view view;
  Tensor held;  // the step's reference to view.tensor; empty for plan memory and borrowed feeds

  void Hold(Tensor t) {
    view = t.view();
    held = std::move(t);
  }
  // Makes the slot an output that is not allocated.
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

struct StepBase;
struct KernelFrame;
class StepTrace;

// A function that FindFunction returned. The FunctionCaller keeps its own data for calls behind
// this struct.
struct FoundFunction {
  std::shared_ptr<const Function> function;
};

// A kernel's call of a function.
struct FunctionCall {
  const FoundFunction* found = nullptr;
  const Function& function() const { return *found->function; }
  std::string_view device;    // of the calling node: where the function's nodes that name no device run; "": as the step's
  bool anywhere = false;      // results may stay in any memory; else they are copied to host memory
  Tensor* args = nullptr;     // as many as the function has, in any memory; consumed, so that nobody else holds them during the call
  Tensor* results = nullptr;  // as many as the function has; empty before the call and after a failure
  bool frees = false;         // the call's memory is freed when it ends, not kept for the next call of the function
};

// A kernel's loop: runs `body` while `cond` is true, each time on the values that it returned
// before.
struct FunctionLoop {
  const FoundFunction *cond = nullptr, *body = nullptr;
  std::string_view device;  // as in FunctionCall, also `anywhere`
  bool anywhere = false;
  Tensor* values = nullptr;        // the body's arguments; consumed, then replaced by its last results; empty after a failure
  uint64_t* iterations = nullptr;  // receives the number of completed iterations
};

// The functions that nodes of a step may call.
class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  // The result lives as long as the caller. NOT_FOUND names the function.
  virtual StatusOr<const FoundFunction*> FindFunction(std::string_view name) = 0;
  // Runs the function as a part of the step, on the calling thread and the step's helpers.
  // INVALID_ARGUMENT for arguments of wrong types or shapes; RESOURCE_EXHAUSTED if calls are nested
  // too deeply; the errors of its nodes.
  virtual Status Call(StepBase& step, const FunctionCall& call) = 0;
  // Starts a call and does not wait. `done` is called once, possibly before this returns. The step,
  // args and results must live until then.
  virtual void Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) = 0;
  // Calls a loop's functions in turn, on the calling thread and the step's helpers.
  virtual Status Loop(StepBase& step, FunctionLoop* loop) = 0;
};

// One step, or one call outside a step.
struct StepBase {
  virtual ~StepBase() = default;
  // Called when the asynchronous call that began with this tag ends. Any thread.
  virtual void Complete(uint64_t tag, Status s) = 0;
  // Called when a call that waited at a resource must run again or end (see WaitingCalls). Any
  // thread, under a lock: the step only notes it.
  virtual void Again(uint64_t tag) { (void)tag; }
  // Returns true if a part of the step has failed; calls that wait at resources then end.
  virtual bool Failed() const { return false; }
  // Returns true if the slot's memory is the plan's: other values may be views of it, so the value
  // must stay there.
  virtual bool IsPlanMemory(const Slot* slot) const {
    (void)slot;
    return false;
  }
  // For a value that a running kernel reads: returns true if no other node will read the slot in
  // this step and the step owns its tensor.
  virtual bool IsLastReader(const Slot* slot) const {
    (void)slot;
    return false;
  }
  // For a variable that a node is about to write: returns how many references to its tensor are the
  // step's own, for kernels that the device runs before the write.
  virtual int32_t OwnShares(const KernelFrame& writer, const Tensor& value) {
    (void)writer, (void)value;
    return 0;
  }
  // Moves values for kernels that take and give them in any memory; NULL: a call outside a plan,
  // which copies at once.
  virtual Carrier* carrier() { return nullptr; }
  // Says that the value in the slot, an output of a running kernel, arrives when the mark is
  // reached.
  virtual Status ArrivesWith(const Slot* slot, const QueueMark& mark);
  Runtime* runtime = nullptr;
  const std::string* container = nullptr;  // the session's default
  const CancelToken* cancel = nullptr;
  const CancelToken* closing = nullptr;  // cancels calls that wait at resources, and nothing else
  int64_t deadline = 0;                  // ns on the monotonic clock; 0: none
  ThreadPool* pool = nullptr;            // NULL: loops run on the caller
  ThreadShare* share = nullptr;          // limits the step's use of the pool; NULL: no limit
  MemoryBudget* budget = nullptr;        // is charged for the step's memory; NULL: none
  FunctionCaller* functions = nullptr;   // NULL: no functions can be called
  Rendezvous* rendezvous = nullptr;      // exchanges values with the step's parts in other processes; NULL: none
  uint32_t depth = 0;                    // number of function calls around the step
  const std::string* place = nullptr;    // where nodes that name no device run; NULL: as the session's options say
  StepTrace* trace = nullptr;            // NULL: the run is not traced
  bool moves_state = false;              // a variable on another device moves to the device whose kernel opens it
};

struct KernelFrame {
  tw_frame c;  // must be first: a const tw_frame* is the KernelFrame
  const NodeRun* run;
  StepBase* step;
  Slot** source;      // per flat input: the slot as its producer left it; differs from c.in if a resource is opened
  bool waits;         // the call waits at a resource, or runs again after waiting
  Resource** opened;  // per flat input; NULL if not opened; the array is NULL if nothing is

  static KernelFrame* Of(const tw_frame* f) { return reinterpret_cast<KernelFrame*>(const_cast<tw_frame*>(f)); }
  Slot* in(uint32_t i) const { return reinterpret_cast<Slot*>(const_cast<tw_view*>(c.in[i])); }
  Slot* out(uint32_t o) const { return reinterpret_cast<Slot*>(const_cast<tw_view*>(c.out[o])); }
};

// Returns the resource that flat input i refers to, opened or by handle. INVALID_ARGUMENT if it
// refers to none.
StatusOr<Resource*> ResourceOf(const KernelFrame& f, uint32_t i);

// Locks the resources that the kernel declares, in address order so that two kernels never
// deadlock. slots: per flat input, the views that the kernel sees in place of the handles.
Status OpenResources(KernelFrame* f, Slot* slots);
// Fills the slot with the contents of the opened resource of flat input `input`. REQUIRES: its lock
// is held.
Status ShowResource(KernelFrame* f, uint32_t input, bool update, Slot* slot);
// Unlocks the resources. changed: wakes calls that wait for an update of them.
void CloseResources(KernelFrame* f, bool changed = true);

// Returns the error of a call that left output o without a tensor: INTERNAL, or INVALID_ARGUMENT
// for a handle, whose memory kernels cannot allocate.
Status NoValue(const NodeRun& run, uint32_t o);

// Returns CANCELLED or DEADLINE_EXCEEDED if the step should stop.
Status StepInterrupted(const StepBase& step);
// The check for a call that waits at a resource: fails also if the session is closed.
Status WaitInterrupted(const StepBase& step);

// Makes a tensor in the memory of output o of the node. budget: is charged; NULL: none.
StatusOr<Tensor> MakeOutput(const NodeRun& run, uint32_t o, const int64_t* dims, int32_t rank, MemoryBudget* budget);

}  // namespace thalweg
