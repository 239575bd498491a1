#include "library.h"

#include <dlfcn.h>
#include <signal.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include <ucs/debug/log_def.h>

namespace thalweg::ucx_transport {
namespace {

// Memory without a destructor, because threads of UCX may log while the process ends.
thread_local char last_error[256];

// UCX prints its log to standard output, which belongs to the program.
ucs_log_func_rc_t KeepError(const char*, unsigned, const char*, ucs_log_level_t level, const ucs_log_component_config_t*,
                            const char* message, va_list values) {
  if (level <= UCS_LOG_LEVEL_ERROR) std::vsnprintf(last_error, sizeof last_error, message, values);
  return UCS_LOG_FUNC_RC_STOP;
}

template <typename F>
bool Find(void* library, const char* name, F* out, std::string* why) {
  *out = reinterpret_cast<F>(dlsym(library, name));
  if (!*out) *why = std::string("libucp.so.0 has no function '") + name + "'; install UCX 1.13 or newer";
  return *out != nullptr;
}

bool Load(Library* out, std::string* why) {
  // The library handles fatal signals and SIGHUP from its initialization on, or others that variables of
  // the environment name. The handlers of the program are put back at once.
  struct sigaction before[NSIG];
  bool known[NSIG] = {};
  for (int i = 1; i < NSIG; ++i) known[i] = sigaction(i, nullptr, &before[i]) == 0;
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  for (int i = 1; i < NSIG; ++i) {
    struct sigaction now;
    if (known[i] && sigaction(i, nullptr, &now) == 0 && now.sa_handler != before[i].sa_handler) sigaction(i, &before[i], nullptr);
  }
  if (!library) {
    const char* text = dlerror();
    *why = std::string(text ? text : "libucp.so.0 cannot be loaded") + "; install UCX (Debian: libucx0)";
    return false;
  }
  decltype(&::ucs_log_push_handler) push = nullptr;
  if (!Find(library, "ucs_log_push_handler", &push, why)) return false;
#define THALWEG_UCX_FIND(name) \
  if (!Find(library, #name, &out->name, why)) return false;
  THALWEG_UCX_FUNCTIONS(THALWEG_UCX_FIND)
#undef THALWEG_UCX_FIND
  push(KeepError);
  return true;
}

}  // namespace

const Library* LoadUcx(std::string* why) {
  static std::mutex mu;  // guards library and loaded
  static Library library;
  static bool loaded = false;
  std::lock_guard lock(mu);
  if (!loaded) loaded = Load(&library, why);
  return loaded ? &library : nullptr;
}

std::string TakeLastError() {
  std::string text(last_error);
  last_error[0] = 0;
  return text;
}

}  // namespace thalweg::ucx_transport
