// Handles of resources that may exist already. An existing resource must agree with the node's
// options.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SAME_RESOURCE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SAME_RESOURCE_H_

#include <exception>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "thalweg/cpp/held_resource.hpp"

namespace thalweg::cpu {

inline tw_resource_key ResourceKey(std::string_view type, const std::string& container, const std::string& name) {
  return {TW_SIZED(tw_resource_key), type.data(), type.size(), container.data(), container.size(), name.data(), name.size()};
}

// Returns several types separated by commas, for messages.
inline std::string TypesText(const std::vector<uint32_t>& dtypes) {
  std::string s;
  for (uint32_t t : dtypes) tw::list(s, TypeText(t).c_str());
  return s;
}

// Sets output o to a handle of the resource. If no resource has this name, creates one from the
// options. check: throws if the existing resource does not match the node's request.
template <class Object, class Options, class Check>
void OpenSame(tw::Frame f, const tw_resource_key& key, uint32_t o, const Options& options, Check&& check) {
  const tw::HeldResource held(f, key, [&] { return new Object(options); });
  std::exception_ptr wrong;
  held.look([&](void* object) {
    try {
      if (object) check(*static_cast<const Object*>(object));
    } catch (...) {
      wrong = std::current_exception();
    }
  });
  if (wrong) std::rethrow_exception(wrong);
  const auto make = [](const tw_host* h, void* arg, void** out) {
    return tw::guard(h, [&] { *out = new Object(*static_cast<const Options*>(arg)); });
  };
  tw::check(f.f->host->resource->open(f.f, &key, make, const_cast<Options*>(&options), o));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SAME_RESOURCE_H_
