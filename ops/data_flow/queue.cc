// Queues: elements of several tensors each, put in by some steps and taken out by others, which wait for each other.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_QUEUE "resource handle org.thalweg.queue; "

void AddQueue(tw::Plugin& p, const std::string& name, const std::string& attributes, const std::string& doc) {
  p.op(name + "() -> (handle: resource[]); " + attributes +
       R"(container: string = ""; shared_name: string = ""; stateful; once; )" OPS_QUEUE R"(no_gradient "it has no inputs"; doc ")" + doc +
       "\"");
}

// What takes n elements gives tensors with n in front.
void ManyRule(const tw::Shape& s) {
  s.want_rank(1, 0, "n");
  std::vector<int64_t> n;
  if (s.value(1, &n) && !n.empty() && n[0] < 0) throw tw::Error{TW_INVALID_ARGUMENT, "n is " + tw::text(n[0]) + ", but must be at least 0"};
}

}  // namespace

void register_queue(tw::Plugin& p) {
  const std::string types = "component_types: list(type) >= 1; shapes: list(shape) = []; capacity: int = -1; ";
  AddQueue(p, "FIFOQueueV2", types, "a queue that gives its elements in the order in which they came");
  AddQueue(p, "RandomShuffleQueueV2", types + "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; ",
           "a queue that gives one of its elements at random");
  AddQueue(p, "PaddingFIFOQueueV2", types, "FIFOQueueV2 of elements of different sizes, which are padded where many are taken at once");
  AddQueue(p, "PriorityQueueV2", "component_types: list(type) = []; shapes: list(shape); capacity: int = -1; ",
           "a queue that gives the element with the smallest first component");

  const std::string put =
      "(handle: resource, components: Tcomponents) -> (); Tcomponents: list(type) >= 1; timeout_ms: int = -1; stateful; " OPS_QUEUE
      R"(no_gradient "it has no outputs"; doc ")";
  p.op("QueueEnqueueV2" + put + "puts one element into the queue, and waits until there is room for it\"");
  p.op("QueueEnqueueManyV2" + put + "puts in an element for each row of the components, and waits until there is room for them\"");

  const std::string out = "-> (components: component_types); component_types: list(type) >= 1; timeout_ms: int = -1; stateful; " OPS_QUEUE
                          R"(no_gradient "what others put in is not an input"; doc ")";
  p.op("QueueDequeueV2(handle: resource) " + out + "takes an element out, and waits until there is one\"");
  p.op<nullptr, ManyRule>("QueueDequeueManyV2(handle: resource, n: int32) " + out +
                          "takes n elements out, joined along a new first axis, and waits until there are so many\"");
  p.op<nullptr, ManyRule>("QueueDequeueUpToV2(handle: resource, n: int32) " + out +
                          "QueueDequeueManyV2, but of a queue that is closed it takes what is left\"");

  p.op("QueueCloseV2(handle: resource) -> (); cancel_pending_enqueues: bool = false; stateful; " OPS_QUEUE
       R"(no_gradient "it has no outputs"; doc "from now on nothing is put into the queue; what is in there can still be taken")");
  p.op("QueueIsClosedV2(handle: resource) -> (is_closed: bool[]); stateful; " OPS_QUEUE
       R"(no_gradient "a truth has no derivative"; doc "whether the queue was closed")");
  p.op("QueueSizeV2(handle: resource) -> (size: int32[]); stateful; " OPS_QUEUE
       R"(no_gradient "a count has no derivative"; doc "how many elements the queue holds")");
}

}  // namespace thalweg::ops
