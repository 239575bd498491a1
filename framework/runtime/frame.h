// What stands behind the tw_frame that a kernel gets: slots that hold values during a step, the node's fixed facts, and the step.
// The executor owns all of it; the host table reaches it from the frame. Threads: a frame is used by one kernel call at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
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

class Carrier;
class Function;
class MemoryBudget;
struct QueueMark;
class Rendezvous;
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
  std::vector<uint8_t> anywhere_in;              // per flat input: it is taken wherever it lies; empty: none is
  std::vector<uint8_t> anywhere_out;             // per flat output: it is given wherever it lies; empty: none is
  std::vector<Device*> lands;                    // of such outputs: whose memory the plan has them in, NULL: the host's; empty: all there
  bool async = false;                            // execute may only start the work
  bool opens() const { return !open_read.empty() || !open_update.empty(); }
};

struct StepBase;
struct KernelFrame;
class StepTrace;

// A function that a caller found. Whoever found it keeps what it needs for calls of it behind this.
struct FoundFunction {
  std::shared_ptr<const Function> function;
};

// A call of a function by a kernel.
struct FunctionCall {
  const FoundFunction* found = nullptr;
  const Function& function() const { return *found->function; }
  std::string_view device;    // of the node that calls: where the function's nodes run that do not say it themselves; "": as the step's
  bool anywhere = false;      // results may stay where they are made; else they come to host memory
  Tensor* args = nullptr;     // as many as it has, taken over, so that nobody else holds them while it runs; wherever they lie
  Tensor* results = nullptr;  // likewise, empty before and after a failure
};

// A loop of a kernel: `body` for as long as `cond` says so, each time of the values that it gave before.
struct FunctionLoop {
  const FoundFunction *cond = nullptr, *body = nullptr;
  std::string_view device;  // as in FunctionCall, as is the next
  bool anywhere = false;
  Tensor* values = nullptr;        // as many as the body takes; taken over, then what it gave last; empty after a failure
  uint64_t* iterations = nullptr;  // counts how many times the body has run to its end
};

// The functions that nodes of a step may call.
class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  // Lives as long as the caller. NOT_FOUND, naming it.
  virtual StatusOr<const FoundFunction*> FindFunction(std::string_view name) = 0;
  // Runs it as a part of the step, on the calling thread and whoever helps the step. Errors: INVALID_ARGUMENT for arguments of other types
  // or shapes than it takes; RESOURCE_EXHAUSTED where calls lie too deep within each other; whatever its nodes fail with.
  virtual Status Call(StepBase& step, const FunctionCall& call) = 0;
  // The same without waiting: done is told, maybe before this returns. The step, args and results live until then.
  virtual void Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) = 0;
  // Calls of a loop's functions in turn, on the calling thread and whoever helps the step.
  virtual Status Loop(StepBase& step, FunctionLoop* loop) = 0;
};

// One step, or one call outside a step.
struct StepBase {
  virtual ~StepBase() = default;
  // An asynchronous call that began with this tag is over. Any thread.
  virtual void Complete(uint64_t tag, Status s) = 0;
  // A call that waited at a resource is to be run again, or ended (see WaitingCalls). Any thread, under a lock: it is only noted.
  virtual void Again(uint64_t tag) { (void)tag; }
  // Something of it has failed: what waits at resources ends.
  virtual bool Failed() const { return false; }
  // The slot's memory is the plan's: others have views of it, so it stays where it is.
  virtual bool IsPlanMemory(const Slot* slot) const {
    (void)slot;
    return false;
  }
  // Of a value that a running kernel reads: nobody else will read the slot in this step, and its tensor is the step's own.
  virtual bool IsLastReader(const Slot* slot) const {
    (void)slot;
    return false;
  }
  // Of a variable that a node is about to write: how many of its shares are the step's own, for kernels that the device runs before that.
  virtual int32_t OwnShares(const KernelFrame& writer, const Tensor& value) {
    (void)writer, (void)value;
    return 0;
  }
  // Moves values for kernels that take and give them wherever they lie; NULL: a call outside of a plan, which does it at once.
  virtual Carrier* carrier() { return nullptr; }
  // The value in the slot, an output of a running kernel, is there when the mark is reached.
  virtual Status ArrivesWith(const Slot* slot, const QueueMark& mark);
  Runtime* runtime = nullptr;
  const std::string* container = nullptr;  // the session's default
  const CancelToken* cancel = nullptr;
  const CancelToken* closing = nullptr;  // ends what waits at resources, and nothing else
  int64_t deadline = 0;                  // on the monotonic clock, ns; 0: none
  ThreadPool* pool = nullptr;            // NULL: loops run on the caller
  ThreadShare* share = nullptr;          // of the pool; NULL: all of it, as anybody
  MemoryBudget* budget = nullptr;        // what its memory counts towards; NULL: nothing
  FunctionCaller* functions = nullptr;   // NULL: there are none
  Rendezvous* rendezvous = nullptr;      // with the parts of the step in other processes; NULL: there are none
  uint32_t depth = 0;                    // calls of functions that it is inside of
  const std::string* place = nullptr;    // where nodes run that do not say it themselves; NULL: as the session has it
  StepTrace* trace = nullptr;            // of this run; NULL: nobody watches
  bool moves_state = false;              // a variable that lives on another device comes to the one whose kernel opens it
};

struct KernelFrame {
  tw_frame c;  // first: a const tw_frame* is the KernelFrame
  const NodeRun* run;
  StepBase* step;
  Slot** source;      // per flat input: the value as its producer left it; differs from c.in where a resource is opened
  bool waits;         // at a resource, or is run again after that
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
// What an opened resource, flat input `input` of the frame, looks like. REQUIRES: its lock.
Status ShowResource(KernelFrame* f, uint32_t input, bool update, Slot* slot);
// changed: whoever waits for an update of them is called.
void CloseResources(KernelFrame* f, bool changed = true);

// What is wrong with a call that left this output without a tensor: INTERNAL, but for a handle, whose memory no kernel is given.
Status NoValue(const NodeRun& run, uint32_t o);

// CANCELLED or DEADLINE_EXCEEDED if the step should stop.
Status StepInterrupted(const StepBase& step);
// The same of a call that waits at a resource: also where the session is closed.
Status WaitInterrupted(const StepBase& step);
int64_t MonotonicNs();

// A tensor in the memory where output o of the node lives, paid from the budget if there is one.
StatusOr<Tensor> MakeOutput(const NodeRun& run, uint32_t o, const int64_t* dims, int32_t rank, MemoryBudget* budget);

}  // namespace thalweg
