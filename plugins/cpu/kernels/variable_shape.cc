// VariableShape.
#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
void VariableShape(tw::Frame, tw::Var<tw::Any> input, tw::Out<T> output) {
  if (input.rank() < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; run its initializer first"};
  const int64_t rank = input.rank();
  Allocate(output, &rank, 1);
  for (int i = 0; i < input.rank(); ++i) {
    output[uint64_t(i)] = T(input.dim(i));
    if (int64_t(output[uint64_t(i)]) != input.dim(i))
      Invalid("the variable is " + DimsText(input.v) + ", too large for sizes of this type; ask for int64");
  }
}

}  // namespace

void register_variable_shape(tw::Plugin& p) {
  p.kernel<VariableShape<int32_t>, VariableShape<int64_t>>("VariableShape @CPU; cheap; read input");
}

}  // namespace thalweg::cpu
