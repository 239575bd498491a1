// The process's default runtime, for programs that create no runtime. It is the only process-wide
// state of the library.
#include <cstdlib>
#include <mutex>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "thalweg/runtime.h"

namespace thalweg {
namespace {

struct DefaultRuntime {
  std::mutex mu;
  tw_runtime* runtime = nullptr;
};

// Never destroyed: at exit, threads and objects of the program may still use it.
DefaultRuntime& TheDefault() {
  static auto* it = new DefaultRuntime;
  return *it;
}

StatusOr<RuntimeOptions> OptionsFromEnvironment() {
  RuntimeOptions options;
  // NULL in a process with more rights than its starter.
  const char* text = secure_getenv("THALWEG_OPTIONS");
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const size_t end = rest.find(';');
    std::string option(rest.substr(0, end));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
    option.erase(option.find_last_not_of(' ') + 1).erase(0, option.find_first_not_of(' '));
    if (option.empty()) continue;
    std::string_view key, value;
    Status s = SplitOption(option.c_str(), &key, &value);
    if (s.ok()) s = SetRuntimeOption(&options, key, value);
    if (!s.ok()) return Prefix(s, "environment variable THALWEG_OPTIONS:");
  }
  return options;
}

StatusOr<tw_runtime*> Default() {
  DefaultRuntime& it = TheDefault();
  std::lock_guard lock(it.mu);
  if (!it.runtime) {
    ASSIGN_OR_RETURN(RuntimeOptions options, OptionsFromEnvironment());
    ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, MakeRuntime(options));
    auto handle = std::make_unique<tw_runtime>();
    handle->runtime = std::move(runtime);
    it.runtime = handle.release();
  }
  return it.runtime;
}

}  // namespace

StatusOr<std::shared_ptr<Runtime>> RuntimeOf(tw_runtime* runtime) {
  if (runtime) return runtime->runtime;
  ASSIGN_OR_RETURN(tw_runtime * made, Default());
  return made->runtime;
}

}  // namespace thalweg

tw_status* tw_runtime_default(tw_runtime** out_runtime) {
  NEED(out_runtime);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(tw_runtime * runtime, thalweg::Default());
    tw_runtime_retain(runtime);
    *out_runtime = runtime;
    return thalweg::Status();
  });
}
