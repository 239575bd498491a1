#include "tools/conformance/library.h"

#include <dlfcn.h>

namespace thalweg::conformance {

StatusOr<std::unique_ptr<Library>> Library::Open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return FailedPrecondition(why ? why : "dlopen gives no reason");
  }
  auto query = reinterpret_cast<tw_query_fn>(dlsym(handle, "tw_plugin_query_v0"));
  if (!query) {
    dlclose(handle);
    return FailedPrecondition("it does not export tw_plugin_query_v0; see TW_PLUGIN");
  }
  return std::unique_ptr<Library>(new Library(path, handle, query));
}

Library::~Library() { dlclose(handle_); }

const tw_plugin* Library::Descriptor() const {
  const tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("Thalweg")};
  return query_(&info);
}

std::string_view TextOf(const char* text, uint64_t len) {
  constexpr uint64_t kLongest = 4096;
  return text && len <= kLongest ? std::string_view(text, len) : std::string_view();
}

}  // namespace thalweg::conformance
