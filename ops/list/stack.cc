// The Stack ops: a stack of tensors that lives as long as a step holds its handle. Control inputs
// order the pushes and pops.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Push(const tw::Shape& s) { Set(s, 0, In(s, 1)); }

}  // namespace

void register_stack(tw::Plugin& p) {
#define STACK "stateful; no_gradient \"what a stack keeps between ops has no derivative\"; "
  p.op("StackV2(max_size: int32[]) -> (handle: resource[]); elem_type: type; stack_name: string = \"\"; " STACK "doc \"a new stack\"");
  p.op<nullptr, Push>(
      "StackPushV2(handle: resource[], elem: T) -> (output: T); T: type; swap_memory: bool = false; "
      "resource handle org.thalweg.stack; " STACK "doc \"puts a tensor on the stack, and passes it on\"");
  p.op("StackPopV2(handle: resource[]) -> (elem: elem_type); elem_type: type; resource handle org.thalweg.stack; " STACK
       "doc \"takes the last tensor off the stack\"");
  p.op("StackCloseV2(handle: resource[]) -> (); resource handle org.thalweg.stack; " STACK "doc \"lets all tensors of the stack go\"");
#undef STACK
}

}  // namespace thalweg::ops
