// PyFunc, PyFuncStateless and EagerPyFunc call a function of the program.
#include <string>
#include <vector>

#include "ops/register.h"
#include "thalweg/host_function.h"

namespace thalweg::ops {
namespace {

bool HasGradient(uint32_t type) {
  switch (type) {
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_COMPLEX64:
    case TW_COMPLEX128: return true;
    default: return false;
  }
}

// The gradient is a function of the program, too, whose token follows from that of the op. It gets
// the inputs, the outputs and the incoming gradients.
void CallGradient(const tw::Grad& g) {
  std::vector<uint32_t> wanted, types;
  for (uint32_t i = 0; i < g.inputs(); ++i) {
    if (!HasGradient(g.type_in(i))) continue;
    wanted.push_back(i);
    types.push_back(g.type_in(i));
  }
  if (wanted.empty()) return;
  std::vector<tw_edge> in;
  for (uint32_t i = 0; i < g.inputs(); ++i) in.push_back(g.x(i));
  for (uint32_t o = 0; o < g.c->n_out; ++o) in.push_back(g.y(o));
  for (uint32_t o = 0; o < g.c->n_out; ++o) {
    if (HasGradient(g.type_out(o))) in.push_back(g.dy(o));
  }
  const std::string token = std::string(g.s("token")) + TW_HOST_GRADIENT;
  tw::Attr outputs("Tout", 0);
  outputs.kind = TW_ATTR_TYPE;
  outputs.list = types.data();
  outputs.count = uint32_t(types.size());
  const tw_edge call = g.op("PyFunc", in, {{"token", token}, outputs});
  for (size_t k = 0; k < wanted.size(); ++k) {
    // A function of the program has no shape rule: the shape of the input is that of its gradient.
    g.dx(wanted[k], g.op("EnsureShape", {g.out(call, uint32_t(k))}, {{"shape", g.shape_in(wanted[k])}}));
  }
}

}  // namespace

void register_py_func(tw::Plugin& p) {
  p.op(R"(
      PyFunc(input: Tin) -> (output: Tout); token: string; Tin: list(type) >= 0; Tout: list(type) >= 0; stateful;
      no_gradient "the gradient of a function of the program is only known if EagerPyFunc calls it";
      doc "what the function of the program with that token gives")");
  p.op(R"(
      PyFuncStateless(input: Tin) -> (output: Tout); token: string; Tin: list(type) >= 0; Tout: list(type) >= 0;
      no_gradient "the gradient of a function of the program is only known if EagerPyFunc calls it";
      doc "PyFunc, of a function that gives the same for the same inputs and has no effects")");
  p.op<CallGradient>(R"(
      EagerPyFunc(input: Tin) -> (output: Tout); token: string; is_async: bool = false; Tin: list(type) >= 0; Tout: list(type) >= 0; stateful;
      doc "PyFunc, with a function of the program as its gradient")");
}

}  // namespace thalweg::ops
