// Kernels of variables that only speak with the host, so they are the same on every device.
#ifndef THALWEG_PLUGINS_COMMON_VARIABLE_H_
#define THALWEG_PLUGINS_COMMON_VARIABLE_H_

#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

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
