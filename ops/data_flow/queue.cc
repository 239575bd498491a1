// Queues of elements, each of several tensors. Some steps enqueue and others dequeue, and they wait
// for each other.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_QUEUE "resource handle org.thalweg.queue; "

// Adds the op with a resource handle, and the older op with a reference that runs as it.
void AddQueue(tw::Plugin& p, const std::string& name, const std::string& attributes, const std::string& doc) {
  const std::string named = attributes + "container: string = \"\"; shared_name: string = \"\"; stateful; ";
  const std::string end = "no_gradient \"it has no inputs\"; doc \"" + doc;
  p.op(name + "V2() -> (handle: resource[]); " + named + "once; " OPS_QUEUE + end + "\"");
  p.op(name + "() -> (handle: ref(string)); " + named + "runs_as " + name + "V2; " + end + " (by reference)\"");
}

// inputs: those after the handle. what: outputs and attributes. end: the `no_gradient` clause and
// the doc line.
template <auto kRule>
void AddBoth(tw::Plugin& p, const std::string& name, const std::string& inputs, const std::string& what, const std::string& end) {
  p.op<nullptr, kRule>(name + "V2(handle: resource" + inputs + ") -> " + what + "stateful; " OPS_QUEUE + end + "\"");
  p.op<nullptr, kRule>(name + "(handle: ref(string)" + inputs + ") -> " + what + "stateful; runs_as " + name + "V2; " + end +
                       " (by reference)\"");
}

// Checks n, the number of elements to take. Each output has n as its first size; no static shape is
// set.
void ManyRule(const tw::Shape& s) {
  s.want_rank(1, 0, "n");
  std::vector<int64_t> n;
  if (s.value(1, &n) && !n.empty() && n[0] < 0) throw tw::Error{TW_INVALID_ARGUMENT, "n is " + tw::text(n[0]) + ", but must be at least 0"};
}

}  // namespace

void register_queue(tw::Plugin& p) {
  const std::string types = "component_types: list(type) >= 1; shapes: list(shape) = []; capacity: int = -1; ";
  AddQueue(p, "FIFOQueue", types, "a queue that gives its elements in the order in which they came");
  AddQueue(p, "RandomShuffleQueue", types + "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; ",
           "a queue that gives one of its elements at random");
  AddQueue(p, "PaddingFIFOQueue", types, "FIFOQueue of elements of different sizes, which are padded where many are taken at once");
  AddQueue(p, "PriorityQueue", "component_types: list(type) = []; shapes: list(shape); capacity: int = -1; ",
           "a queue that gives the element with the smallest first component");

  const std::string put = "(); Tcomponents: list(type) >= 1; timeout_ms: int = -1; ?data components; ",
                    put_end = R"(no_gradient "it has no outputs"; doc ")";
  AddBoth<nullptr>(p, "QueueEnqueue", ", components: Tcomponents", put,
                   put_end + "puts one element into the queue, and waits until there is room for it");
  AddBoth<nullptr>(p, "QueueEnqueueMany", ", components: Tcomponents", put,
                   put_end + "puts in an element for each row of the components, and waits until there is room for them");

  const std::string out = "(components: component_types); component_types: list(type) >= 1; timeout_ms: int = -1; ",
                    out_end = R"(no_gradient "what others put in is not an input"; doc ")";
  AddBoth<nullptr>(p, "QueueDequeue", "", out, out_end + "takes an element out, and waits until there is one");
  AddBoth<ManyRule>(p, "QueueDequeueMany", ", n: int32", out,
                    out_end + "takes n elements out, joined along a new first axis, and waits until there are so many");
  AddBoth<ManyRule>(p, "QueueDequeueUpTo", ", n: int32", out,
                    out_end + "QueueDequeueMany, but of a queue that is closed it takes what is left");

  AddBoth<nullptr>(
      p, "QueueClose", "", "(); cancel_pending_enqueues: bool = false; ",
      R"(no_gradient "it has no outputs"; doc "from now on nothing is put into the queue; what is in there can still be taken)");
  AddBoth<nullptr>(p, "QueueIsClosed", "", "(is_closed: bool[]); ",
                   R"(no_gradient "a truth has no derivative"; doc "whether the queue was closed)");
  AddBoth<nullptr>(p, "QueueSize", "", "(size: int32[]); ",
                   R"(no_gradient "a count has no derivative"; doc "how many elements the queue holds)");
}

}  // namespace thalweg::ops
