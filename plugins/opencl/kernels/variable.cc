// Variables on the device: ops that create handles, read, assign, add in place, query and destroy.
#include "common/variable.h"

#include "kernels/elementwise.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class Accumulate {
 public:
  explicit Accumulate(const tw::Node& n)
      : elementwise_(n, {n.type_in(1), n.type_in(1)}, {n.type_in(1)}, "",
                     std::string_view(n.node->op, n.node->op_len) == "AssignAddVariableOp" ? "y0 = x0 + x1;" : "y0 = x0 - x1;") {}

  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> value) const {
    if (resource.rank() < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; assign one first"};
    common::CheckType(resource.v, value.v->dtype);
    const Dims dims = DimsOf(value.v);
    if (DimsOf(resource.v) != dims)
      Invalid("the variable is " + tw::text(resource.dims(), resource.rank()) + " and the value " + tw::text(value.dims(), value.rank()) +
              "; both must have one shape");
    elementwise_.Run(f.f, dims, {Broadcast(resource.v, dims), Broadcast(value.v, dims)}, {At(resource.v)});
  }

 private:
  Elementwise elementwise_;
};

}  // namespace

void register_variable(tw::Plugin& p) {
  p.kernel<common::VarHandle>("VarHandleOp @OPENCL; cheap");
  p.kernel<common::VarIsInitialized>("VarIsInitializedOp @OPENCL; cheap; host is_initialized");
  p.kernel<common::ReadVariable>("ReadVariableOp @OPENCL; cheap; read resource; view value=resource");
  p.kernel<common::AssignVariable>("AssignVariableOp @OPENCL; replace resource; keep value");
  p.kernel<common::DestroyResource>("DestroyResourceOp @OPENCL; cheap");
  for (const std::string type : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string op : {"AssignAddVariableOp", "AssignSubVariableOp"})
      p.kernel<Accumulate>(op + "(resource, " + type + ") @OPENCL; update resource");
}

}  // namespace thalweg::opencl
