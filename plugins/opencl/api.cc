// Loads the function table; names the error codes of OpenCL and maps them to status codes.
#include "api.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace thalweg::opencl {
namespace {

struct ErrorEntry {
  cl_int error;
  const char* name;
  uint32_t code;
};
#define ENTRY(name, code) {name, #name, code}
constexpr ErrorEntry kErrors[] = {
    ENTRY(CL_DEVICE_NOT_FOUND, TW_NOT_FOUND),
    ENTRY(CL_DEVICE_NOT_AVAILABLE, TW_UNAVAILABLE),
    ENTRY(CL_COMPILER_NOT_AVAILABLE, TW_UNIMPLEMENTED),
    ENTRY(CL_MEM_OBJECT_ALLOCATION_FAILURE, TW_RESOURCE_EXHAUSTED),
    ENTRY(CL_OUT_OF_RESOURCES, TW_RESOURCE_EXHAUSTED),
    ENTRY(CL_OUT_OF_HOST_MEMORY, TW_RESOURCE_EXHAUSTED),
    ENTRY(CL_MEM_COPY_OVERLAP, TW_INVALID_ARGUMENT),
    ENTRY(CL_BUILD_PROGRAM_FAILURE, TW_INTERNAL),
    ENTRY(CL_MISALIGNED_SUB_BUFFER_OFFSET, TW_INTERNAL),
    ENTRY(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, TW_INTERNAL),
    ENTRY(CL_LINKER_NOT_AVAILABLE, TW_UNIMPLEMENTED),
    ENTRY(CL_INVALID_VALUE, TW_INTERNAL),
    ENTRY(CL_INVALID_DEVICE_TYPE, TW_INTERNAL),
    ENTRY(CL_INVALID_PLATFORM, TW_INTERNAL),
    ENTRY(CL_INVALID_DEVICE, TW_INTERNAL),
    ENTRY(CL_INVALID_CONTEXT, TW_INTERNAL),
    ENTRY(CL_INVALID_QUEUE_PROPERTIES, TW_INTERNAL),
    ENTRY(CL_INVALID_COMMAND_QUEUE, TW_INTERNAL),
    ENTRY(CL_INVALID_HOST_PTR, TW_INTERNAL),
    ENTRY(CL_INVALID_MEM_OBJECT, TW_INTERNAL),
    ENTRY(CL_INVALID_BINARY, TW_INTERNAL),
    ENTRY(CL_INVALID_BUILD_OPTIONS, TW_INTERNAL),
    ENTRY(CL_INVALID_PROGRAM, TW_INTERNAL),
    ENTRY(CL_INVALID_PROGRAM_EXECUTABLE, TW_INTERNAL),
    ENTRY(CL_INVALID_KERNEL_NAME, TW_INTERNAL),
    ENTRY(CL_INVALID_KERNEL_DEFINITION, TW_INTERNAL),
    ENTRY(CL_INVALID_KERNEL, TW_INTERNAL),
    ENTRY(CL_INVALID_ARG_INDEX, TW_INTERNAL),
    ENTRY(CL_INVALID_ARG_VALUE, TW_INTERNAL),
    ENTRY(CL_INVALID_ARG_SIZE, TW_INTERNAL),
    ENTRY(CL_INVALID_KERNEL_ARGS, TW_INTERNAL),
    ENTRY(CL_INVALID_WORK_DIMENSION, TW_INTERNAL),
    ENTRY(CL_INVALID_WORK_GROUP_SIZE, TW_INTERNAL),
    ENTRY(CL_INVALID_WORK_ITEM_SIZE, TW_INTERNAL),
    ENTRY(CL_INVALID_GLOBAL_OFFSET, TW_INTERNAL),
    ENTRY(CL_INVALID_EVENT_WAIT_LIST, TW_INTERNAL),
    ENTRY(CL_INVALID_EVENT, TW_INTERNAL),
    ENTRY(CL_INVALID_OPERATION, TW_INTERNAL),
    ENTRY(CL_INVALID_BUFFER_SIZE, TW_RESOURCE_EXHAUSTED),
    ENTRY(CL_INVALID_GLOBAL_WORK_SIZE, TW_INTERNAL),
};
#undef ENTRY

const ErrorEntry* Find(cl_int error) {
  const ErrorEntry* e = std::find_if(std::begin(kErrors), std::end(kErrors), [&](auto& x) { return x.error == error; });
  return e == std::end(kErrors) ? nullptr : e;
}

// Both kinds of text properties are read in two steps: first the length, then the text.
template <class Get>
std::string Text(Get get) {
  size_t size = 0;
  Check(get(0, nullptr, &size), "reading the length of a property");
  std::vector<char> text(size + 1);
  Check(get(size, text.data(), nullptr), "reading a property");
  return text.data();
}

}  // namespace

std::string Api::Load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) return dlerror();
  Api found;
  const char* missing = nullptr;
#define THALWEG_OPENCL_FIND(name)                                            \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name)); \
  if (!found.name) missing = #name;
  THALWEG_OPENCL_FUNCTIONS(THALWEG_OPENCL_FIND)
#undef THALWEG_OPENCL_FIND
  dlclose(handle);  // drops the reference, not the mapping
  if (missing) return library + " has no " + missing + ", which OpenCL 1.2 asks for";
  *this = found;
  return {};
}

std::string ErrorName(cl_int error) {
  const ErrorEntry* e = Find(error);
  return e ? e->name : "OpenCL error " + std::to_string(error);
}

tw::Error Failure(cl_int error, const std::string& what) {
  const ErrorEntry* e = Find(error);
  const char* more = error == CL_DEVICE_NOT_AVAILABLE ? "; the device is gone, or its driver; other devices can still be used" : "";
  return {e ? e->code : uint32_t(TW_UNKNOWN), what + " failed with " + ErrorName(error) + more};
}

std::string DeviceText(const Api& cl, cl_device_id device, cl_device_info what) {
  return Text([&](size_t n, void* to, size_t* out) { return cl.clGetDeviceInfo(device, what, n, to, out); });
}

std::string PlatformText(const Api& cl, cl_platform_id platform, cl_platform_info what) {
  return Text([&](size_t n, void* to, size_t* out) { return cl.clGetPlatformInfo(platform, what, n, to, out); });
}

}  // namespace thalweg::opencl
