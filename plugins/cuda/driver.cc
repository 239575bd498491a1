#include "driver.h"

#include <dlfcn.h>

namespace thalweg::cuda {
namespace {

// The toolkit's major version. An older driver supports neither its machine code nor all function
// names of its headers.
constexpr int kOldest = CUDA_VERSION / 1000 * 1000;

std::string VersionText(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// cuda.h maps some functions to versioned names by macros. This is the expanded name.
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

void CheckVersion(void* handle, const std::string& library) {
  const auto version_of = reinterpret_cast<decltype(&::cuDriverGetVersion)>(dlsym(handle, "cuDriverGetVersion"));
  int version = 0;
  if (!version_of || version_of(&version) != CUDA_SUCCESS)
    throw tw::Error{TW_FAILED_PRECONDITION, "'" + library + "' does not say which version of CUDA it is for; install NVIDIA's driver anew"};
  if (version < kOldest)
    throw tw::Error{TW_FAILED_PRECONDITION, "the NVIDIA driver, '" + library + "', is for CUDA " + VersionText(version) +
                                                " at most; CUDA devices need a driver for " + VersionText(kOldest) + " or newer"};
}

}  // namespace

void Driver::Load(const tw_host* host) {
  std::string library = Setting(host, "library");
  const bool set = !library.empty();
  if (!set) library = "libcuda.so.1";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* why = dlerror();
    throw tw::Error{TW_NOT_FOUND, set ? "setting 'library' is '" + library + "', which cannot be opened: " + why
                                      : "no NVIDIA driver: " + library +
                                            " was not found; install the driver, or name its file in the setting "
                                            "'library'"};
  }
  CheckVersion(handle, library);
#define THALWEG_CUDA_FIND(name)                                          \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, NAME_OF(name))); \
  if (!name) throw tw::Error{TW_FAILED_PRECONDITION, "the NVIDIA driver, '" + library + "', has no " NAME_OF(name) "; install a newer one"};
  THALWEG_CUDA_FUNCTIONS(THALWEG_CUDA_FIND)
#undef THALWEG_CUDA_FIND
  dlclose(handle);  // drops the reference, not the mapping
}

tw::Error Failure(const Driver& driver, CUresult error, const std::string& what) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(error, &name) != CUDA_SUCCESS || !name) name = "an error without a name";
  const std::string text = what + " failed with " + name + " (" + std::to_string(int(error)) + ")";
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY: return {TW_RESOURCE_EXHAUSTED, text};
    case CUDA_ERROR_NOT_SUPPORTED: return {TW_UNIMPLEMENTED, text};
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE: return {TW_UNAVAILABLE, text};
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return {TW_INTERNAL, text + "; the device is lost to this process: start it anew"};
    default: return {TW_INTERNAL, text};
  }
}

}  // namespace thalweg::cuda
