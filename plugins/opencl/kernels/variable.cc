// Variables that live on the device: making handles, reading, assigning, adding in place, asking, destroying.
#include "kernels/elementwise.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class VarHandle {
 public:
  explicit VarHandle(const tw::Node& n) : container_(n.s("container")), name_(n.s("shared_name")) {
    if (name_.empty()) name_ = n.name();
  }
  void operator()(tw::Frame f, tw::Out<tw::Any> resource) const {
    const tw_resource_key key{TW_SIZED(tw_resource_key), TW_S(TW_VARIABLE_TYPE), container_.data(),
                              container_.size(),         name_.data(),           name_.size()};
    tw::check(f.f->host->resource->open(f.f, &key, nullptr, nullptr, resource.o));
  }

 private:
  std::string container_, name_;
};

// The answer lives in host memory: nothing has to be waited for.
void VarIsInitialized(tw::Handle resource, tw::Out<bool> is_initialized) {
  is_initialized[0] = resource.f->host->resource->exists(resource.f, resource.i) != 0;
}

void CheckType(const tw_view* variable, uint32_t wanted) {
  if (variable->dtype != wanted)
    Invalid("the variable is " + tw::dtype_text(variable->dtype) + ", not " + tw::dtype_text(wanted) + " as 'dtype' says");
}

void ReadVariable(tw::Frame f, tw::Var<tw::Any> resource, tw::Out<tw::Any> value) {
  CheckType(resource.v, value.v()->dtype);
  tw::check(f.f->host->tensor->forward(f.f, 0, value.o, nullptr, 0));
}

class AssignVariable {
 public:
  explicit AssignVariable(const tw::Node& n) : validate_shape_(n.b("validate_shape")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> value) const {
    if (resource.rank() >= 0) {
      CheckType(resource.v, value.v->dtype);
      if (validate_shape_ && DimsOf(resource.v) != DimsOf(value.v))
        Invalid("the variable is " + tw::text(resource.dims(), resource.rank()) + " and the value " + tw::text(value.dims(), value.rank()) +
                "; validate_shape asks for one shape");
    }
    const tw_host* h = f.f->host;
    tw_tensor* kept = nullptr;
    tw::check(h->tensor->keep(f.f, 1, &kept));
    tw_status* s = h->resource->assign(f.f, 0, kept);
    h->tensor->release(kept);
    tw::check(s);
  }

 private:
  bool validate_shape_;
};

class Accumulate {
 public:
  explicit Accumulate(const tw::Node& n)
      : elementwise_(n, {n.type_in(1), n.type_in(1)}, {n.type_in(1)}, "",
                     std::string_view(n.node->op, n.node->op_len) == "AssignAddVariableOp" ? "y0 = x0 + x1;" : "y0 = x0 - x1;") {}

  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> value) const {
    if (resource.rank() < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; assign one first"};
    CheckType(resource.v, value.v->dtype);
    const Dims dims = DimsOf(value.v);
    if (DimsOf(resource.v) != dims)
      Invalid("the variable is " + tw::text(resource.dims(), resource.rank()) + " and the value " + tw::text(value.dims(), value.rank()) +
              "; both must have one shape");
    elementwise_.Run(f.f, dims, {Broadcast(resource.v, dims), Broadcast(value.v, dims)}, {At(resource.v)});
  }

 private:
  Elementwise elementwise_;
};

class DestroyResource {
 public:
  explicit DestroyResource(const tw::Node& n) : ignore_missing_(n.b("ignore_lookup_error")) {}
  void operator()(tw::Handle resource) const {
    const tw_host* h = resource.f->host;
    tw_status* s = h->resource->drop(resource.f, resource.i);
    if (!s || !ignore_missing_ || h->status->code(s) != TW_NOT_FOUND) return tw::check(s);
    h->status->release(s);
  }

 private:
  bool ignore_missing_;
};

}  // namespace

void register_variable(tw::Plugin& p) {
  p.kernel<VarHandle>("VarHandleOp @OPENCL; cheap");
  p.kernel<VarIsInitialized>("VarIsInitializedOp @OPENCL; cheap; host is_initialized");
  p.kernel<ReadVariable>("ReadVariableOp @OPENCL; cheap; read resource; view value=resource");
  p.kernel<AssignVariable>("AssignVariableOp @OPENCL; replace resource; keep value");
  p.kernel<DestroyResource>("DestroyResourceOp @OPENCL; cheap");
  for (const std::string type : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string op : {"AssignAddVariableOp", "AssignSubVariableOp"})
      p.kernel<Accumulate>(op + "(resource, " + type + ") @OPENCL; update resource");
}

}  // namespace thalweg::opencl
