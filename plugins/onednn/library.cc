// Finds, opens and closes the library.
#include "library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "common/setting.h"
#include "kernels/slots.h"
#include "kernels/vector.h"

namespace thalweg::onednn {
namespace {

using common::Setting;

constexpr const char* kFile = "libdnnl.so.2";

bool Readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// Returns true if the file is in a folder that the loader searches by itself. A library known only
// to the loader's cache is found by opening it.
bool InSearchPath(const std::string& file) {
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size;
  bool found = false;
  if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    const std::unique_ptr<char[]> room(new char[size.dls_size]);
    auto* info = reinterpret_cast<Dl_serinfo*>(room.get());
    *info = size;
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0 && dlinfo(self, RTLD_DI_SERINFO, info) == 0)
      for (unsigned i = 0; i < info->dls_cnt && !found; ++i) found = Readable(std::string(info->dls_serpath[i].dls_name) + "/" + file);
  }
  if (self) dlclose(self);
  return found;
}

bool Exists(const std::string& name) {
  if (name.find('/') != name.npos) return Readable(name);
  if (InSearchPath(name)) return true;
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

decltype(Api::round_bfloat16) RoundBfloat16(const tw_host* host) {
  using namespace cpu;
  const Isa isa = DetectIsa(host);
  return TW_CPU_FOR_ISA(isa, Vectors).store_bfloat16;
}

double Number(const std::string& text) {
  char* end;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == 0 && value >= 0) return value;
  throw tw::Error{TW_INVALID_ARGUMENT, "setting 'least_work' is '" + text + "'; it is a number of multiply-adds, for instance 12e6"};
}

// Calls f(word) for each word of the setting `fuse`.
template <class F>
void ForWords(std::string_view text, F&& f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void CheckFuse(const std::string& text) {
  ForWords(text, [&](std::string_view word) {
    for (std::string_view known : {"all", "none", "bias", "activation", "filter"})
      if (word == known) return;
    throw tw::Error{TW_INVALID_ARGUMENT, "setting 'fuse' is '" + text + "'; it takes all, none, or some of bias,activation,filter"};
  });
}

}  // namespace

bool Library::fuses(std::string_view what) const {
  bool found = fuse_.empty();
  ForWords(fuse_, [&](std::string_view word) { found = found || word == what || word == "all"; });
  return found;
}

tw::Error Failure(dnnl_status_t status, const char* what) {
  const uint32_t code = status == dnnl_out_of_memory       ? TW_RESOURCE_EXHAUSTED
                        : status == dnnl_unimplemented     ? TW_UNIMPLEMENTED
                        : status == dnnl_invalid_arguments ? TW_INVALID_ARGUMENT
                                                           : TW_INTERNAL;
  return {code, std::string("oneDNN: ") + what + " failed with status " + tw::text(int64_t(status))};
}

Library::Library(const tw_host* host) : host_(host), name_(Setting(host, "library")), fuse_(Setting(host, "fuse")) {
  CheckFuse(fuse_);
  if (const std::string least = Setting(host, "least_work"); !least.empty()) least_work_ = Number(least);
  const bool set = !name_.empty();
  if (!set) name_ = kFile;
  if (Exists(name_)) return;
  throw tw::Error{TW_NOT_FOUND, set ? "setting 'library' is '" + name_ + "', which is not there; name the file of oneDNN 2"
                                    : "the library of oneDNN, " + name_ +
                                          ", was not found; install it (Debian: libdnnl2), or name its file in the setting 'library'"};
}

Library::~Library() {
  if (!open_) return;
  api_.dnnl_stream_destroy(api_.stream);
  api_.dnnl_engine_destroy(api_.engine);
}

const Api* Library::Open() const {
  if (open_.load(std::memory_order_acquire)) return &api_;
  std::call_once(once_, [this] { Load(); });
  return open_.load(std::memory_order_acquire) ? &api_ : nullptr;
}

// The library stays mapped, because OpenMP keeps data for each thread that has called it.
void Library::Load() const {
  std::string why;
  void* handle = dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    why = dlerror();
  } else {
#define THALWEG_ONEDNN_FIND(name)                                          \
  api_.name = reinterpret_cast<decltype(api_.name)>(dlsym(handle, #name)); \
  if (!api_.name) why = name_ + " has no " #name ", which oneDNN 2 has";
    THALWEG_ONEDNN_FUNCTIONS(THALWEG_ONEDNN_FIND)
#undef THALWEG_ONEDNN_FIND
    api_.omp_get_max_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
    api_.omp_set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
    if (!api_.omp_set_num_threads) api_.omp_get_max_threads = nullptr;
    dlclose(handle);  // releases the reference, not the mapping
  }
  if (why.empty() && api_.dnnl_engine_create(&api_.engine, dnnl_cpu, 0) != dnnl_success) why = "it has no engine for the processor";
  if (why.empty() && api_.dnnl_stream_create(&api_.stream, api_.engine, dnnl_stream_default_flags) != dnnl_success) {
    api_.dnnl_engine_destroy(api_.engine);
    why = "it makes no stream";
  }
  api_.round_bfloat16 = RoundBfloat16(host_);
  api_.slots = cpu::WorkerSlots();
  api_.processors = sysconf(_SC_NPROCESSORS_CONF);
  if (why.empty()) return open_.store(true, std::memory_order_release);
  why = "oneDNN cannot be used: " + why + "; its kernels compute by themselves";
  host_->run->log(host_, 2, why.data(), why.size());
}

}  // namespace thalweg::onednn
