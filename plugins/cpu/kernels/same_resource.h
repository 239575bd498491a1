// Handles of resources that are there already: what the node asks for is to agree with what is there.
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

// For messages: several types, with commas.
inline std::string TypesText(const std::vector<uint32_t>& dtypes) {
  std::string s;
  for (uint32_t t : dtypes) tw::list(s, TypeText(t).c_str());
  return s;
}

// Output o leads to the resource, which is made of the options if there is none of that name. check: throws where the one that is there
// is not what the node asks for.
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
