// Barriers assemble elements by key from components that arrive one by one. Their handles are
// references in graphs, and resources at run time.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void ScalarRule(const tw::Shape& s) { s.out(0, std::vector<int64_t>{}); }

void InsertRule(const tw::Shape& s) {
  s.want_rank(1, 1, "keys");
  const tw_shape& values = s.in(2);
  if (values.rank == 0) throw tw::Error{TW_INVALID_ARGUMENT, "values is a scalar, which has no rows; give one row for each key"};
}
void TakeRule(const tw::Shape& s) { s.want_rank(1, 0, "num_elements"); }

// Adds the op with a resource handle, and the op with a reference that runs as it. what: outputs
// and attributes. why: the `no_gradient` clause and the doc line.
template <auto kRule>
void AddBoth(tw::Plugin& p, const std::string& name, const std::string& inputs, const std::string& what, const std::string& why) {
  p.op<nullptr, kRule>("Resource" + name + "(handle: resource" + inputs + ") -> " + what +
                       "stateful; resource handle org.thalweg.barrier; " + why + " (by handle)\"");
  p.op<nullptr, kRule>(name + "(handle: ref(string)" + inputs + ") -> " + what + "stateful; runs_as Resource" + name + "; " + why + "\"");
}
void NoRule(const tw::Shape&) {}

}  // namespace

void register_barrier(tw::Plugin& p) {
  const std::string made =
      "component_types: list(type) >= 1; shapes: list(shape) = []; capacity: int = -1; container: string = \"\"; shared_name: string = "
      "\"\"; stateful; ";
  const std::string doc = "no_gradient \"it has no inputs\"; doc \"a barrier, where elements lie until all their components are there";
  p.op<nullptr, ScalarRule>("ResourceBarrier() -> (handle: resource[]); " + made + "once; resource handle org.thalweg.barrier; " + doc +
                            " (by handle)\"");
  p.op("Barrier() -> (handle: ref(string)); " + made + "runs_as ResourceBarrier; " + doc + "\"");
  AddBoth<InsertRule>(p, "BarrierInsertMany", ", keys: string, values: T", "(); T: type; component_index: int; ",
                      "no_gradient \"it has no outputs\"; doc \"gives one component to each of the elements of these keys");
  AddBoth<TakeRule>(p, "BarrierTakeMany", ", num_elements: int32",
                    "(indices: int64[n], keys: string[n], values: component_types); component_types: list(type) >= 1; allow_small_batch: "
                    "bool = false; wait_for_incomplete: bool = false; timeout_ms: int = -1; ",
                    "no_gradient \"what others put in is not an input\"; doc \"takes elements that are complete, and waits until there are "
                    "enough");
  AddBoth<NoRule>(p, "BarrierClose", "", "(); cancel_pending_enqueues: bool = false; ",
                  "no_gradient \"it has no outputs\"; doc \"from now on no new keys come in");
  AddBoth<NoRule>(p, "BarrierReadySize", "", "(size: int32[]); ",
                  "no_gradient \"a count has no derivative\"; doc \"how many elements are complete");
  AddBoth<NoRule>(p, "BarrierIncompleteSize", "", "(size: int32[]); ",
                  "no_gradient \"a count has no derivative\"; doc \"how many elements lack some of their components");
}

}  // namespace thalweg::ops
