// Variables on the device: create handles, read, assign, gradient descent.
#include "common/variable.h"

#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::fake {
namespace {

[[noreturn]] void Invalid(const std::string& text) { throw tw::Error{TW_INVALID_ARGUMENT, text}; }

void CheckLike(const tw_view* variable, const tw_view* value, const char* name) {
  if (variable->rank < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; assign one first"};
  if (variable->dtype != value->dtype) Invalid(std::string("the variable and ") + name + " have different element types");
  if (!common::SameDims(variable, value))
    Invalid("the variable is " + tw::text(variable->dims, variable->rank) + " and " + name + " " + tw::text(value->dims, value->rank) +
            "; both must have one shape");
}

template <class T>
class GradientDescent : Kernel {
 public:
  using Kernel::Kernel;
  void operator()(tw::Frame f, tw::Var<tw::Any> var, tw::In<T> alpha, tw::In<T> delta) const {
    CheckLike(var.v, delta.v, "delta");
    if (alpha.size() != 1) Invalid("alpha must be a scalar, but its shape is " + tw::text(alpha.dims(), alpha.rank()));
    Launch(f.f, {var.v, delta.v}, [rate = alpha[0]](std::vector<Array>& v) {
      for (uint64_t k = 0; k < v[0].count; ++k) v[0].as<T>()[k] -= rate * v[1].as<T>()[k];
    });
  }
};

template <class T, int kSign>
class Accumulate : Kernel {
 public:
  using Kernel::Kernel;
  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<T> value) const {
    CheckLike(resource.v, value.v, "the value");
    Launch(f.f, {resource.v, value.v}, [](std::vector<Array>& v) {
      for (uint64_t k = 0; k < v[0].count; ++k) v[0].as<T>()[k] += T(kSign) * v[1].as<T>()[k];
    });
  }
};

}  // namespace

void register_variable(tw::Plugin& p) {
  p.kernel<common::VarHandle>("VarHandleOp @FAKE; cheap");
  p.kernel<common::VarIsInitialized>("VarIsInitializedOp @FAKE; cheap; host is_initialized");
  p.kernel<common::ReadVariable>("ReadVariableOp @FAKE; cheap; read resource; view value=resource");
  p.kernel<common::AssignVariable>("AssignVariableOp @FAKE; replace resource; keep value");
  p.kernel<common::DestroyResource>("DestroyResourceOp @FAKE; cheap");
  p.kernel<Accumulate<float, 1>, Accumulate<double, 1>>("AssignAddVariableOp @FAKE; capture_safe; update resource");
  p.kernel<Accumulate<float, -1>, Accumulate<double, -1>>("AssignSubVariableOp @FAKE; capture_safe; update resource");
  p.kernel<GradientDescent<float>, GradientDescent<double>>("ResourceApplyGradientDescent @FAKE; capture_safe; host alpha; update var");
}

}  // namespace thalweg::fake
