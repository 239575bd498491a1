// Kernels of variables that only call the host, so that they are the same on every device.
#ifndef THALWEG_PLUGINS_COMMON_VARIABLE_H_
#define THALWEG_PLUGINS_COMMON_VARIABLE_H_

#include <algorithm>
#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

// Checks that the variable has the type that the op's attribute says.
inline void CheckType(const tw_view* variable, uint32_t wanted) {
  if (variable->dtype != wanted)
    throw tw::Error{TW_INVALID_ARGUMENT,
                    "the variable is " + tw::dtype_text(variable->dtype) + ", not " + tw::dtype_text(wanted) + " as 'dtype' says"};
}
inline bool SameDims(const tw_view* a, const tw_view* b) { return a->rank == b->rank && std::equal(a->dims, a->dims + a->rank, b->dims); }

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

inline void ReadVariable(tw::Frame f, tw::Var<tw::Any> resource, tw::Out<tw::Any> value) {
  CheckType(resource.v, value.v()->dtype);
  tw::check(f.f->host->tensor->forward(f.f, 0, value.o, nullptr, 0));
}

// Stores the value's own memory in the variable, or a copy if others may still write to it.
class AssignVariable {
 public:
  explicit AssignVariable(const tw::Node& n) : validate_shape_(n.b("validate_shape")) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> resource, tw::In<tw::Any> value) const {
    if (resource.rank() >= 0) {
      CheckType(resource.v, value.v->dtype);
      if (validate_shape_ && !SameDims(resource.v, value.v))
        throw tw::Error{TW_INVALID_ARGUMENT, "the variable is " + tw::text(resource.dims(), resource.rank()) + " and the value " +
                                                 tw::text(value.dims(), value.rank()) + "; validate_shape asks for one shape"};
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

// The output is in host memory, so nothing has to be waited for.
inline void VarIsInitialized(tw::Handle resource, tw::Out<bool> is_initialized) {
  is_initialized[0] = resource.f->host->resource->exists(resource.f, resource.i) != 0;
}

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

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_VARIABLE_H_
