// Enter, Exit, NextIteration and LoopCond form loops. The framework runs them itself; there are no
// kernels. RefEnter, RefExit and RefNextIteration do the same with references.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void PassRule(const tw::Shape& s) {
  s.out(0, s.in(0));
  if (s.type_in(0) != TW_RESOURCE) return;
  uint32_t type = 0;
  tw_shape shape{};
  s.handle(0, &type, &shape);
  s.set_handle(0, type, shape);
}

}  // namespace

void register_loop(tw::Plugin& p) {
  p.op<nullptr, PassRule>(R"(
      Enter(data: T) -> (output: T); T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10; role enter;
      no_gradient "what it hands on is in a loop; differentiate what leaves the loop";
      doc "its input, in the first iteration of a frame, or in all")");
  p.op<nullptr, PassRule>(R"(
      Exit(data: T) -> (output: T); T: type; role exit; no_gradient "it leaves no loop of a condition and variables";
      doc "its input, outside the frame")");
  p.op<nullptr, PassRule>(R"(
      NextIteration(data: T) -> (output: T); T: type; role next_iteration;
      no_gradient "it is in a loop; differentiate what leaves the loop";
      doc "its input, in the next iteration of its frame")");
  p.op(R"(
      LoopCond(input: bool[]) -> (output: bool[]); role loop_cond; no_gradient "truth values have no derivative";
      doc "its input: whether a loop goes on")");
#define REF "no_gradient \"a reference has no gradient; that of a variable is asked for by its handle\"; "
  p.op<nullptr, PassRule>(
      "RefEnter(data: ref(T)) -> (output: ref(T)); T: type; frame_name: string; is_constant: bool = false; "
      "parallel_iterations: int = 10; runs_as Enter; " REF "doc \"Enter of a reference\"");
  p.op<nullptr, PassRule>("RefExit(data: ref(T)) -> (output: ref(T)); T: type; runs_as Exit; " REF "doc \"Exit of a reference\"");
  p.op<nullptr, PassRule>("RefNextIteration(data: ref(T)) -> (output: ref(T)); T: type; runs_as NextIteration; " REF
                          "doc \"NextIteration of a reference\"");
#undef REF
}

}  // namespace thalweg::ops
