// Modules, and kernels as functions of the host.
#include <cstring>

#include "library.h"
#include "state.h"

using namespace stub;

thread_local HostLaunch launch_of_host;

namespace {

Functions& BuiltIn() {
  static Functions all;
  return all;
}
std::map<const HostFunction*, std::string>& Names() {
  static std::map<const HostFunction*, std::string> all;
  return all;
}
thread_local Functions* loading = nullptr;  // of a program that was compiled at run time

std::function<void()> KernelCall(const HostFunction* f, std::shared_ptr<std::vector<std::vector<char>>> values, HostLaunch launch) {
  return [f, values, launch] {
    std::vector<void*> arguments;
    for (auto& v : *values) arguments.push_back(v.data());
    launch_of_host = launch;
    for (unsigned z = 0; z < launch.grid[2]; ++z) {
      for (unsigned y = 0; y < launch.grid[1]; ++y) {
        for (unsigned x = 0; x < launch.grid[0]; ++x) {
          launch_of_host.at[0] = x, launch_of_host.at[1] = y, launch_of_host.at[2] = z;
          f->call(arguments.data());
        }
      }
    }
  };
}

// Returns the targets of a function's pointers, at their first elements. REQUIRES: copies of all
// arguments.
std::vector<Work::Touched> TouchesOf(const HostFunction& f, const std::vector<std::vector<char>>& values) {
  std::vector<Work::Touched> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const HostParameter& p = f.parameters[i];
    if (!p.pointer || i + 1 >= values.size()) continue;
    uintptr_t address;
    int64_t first;
    std::memcpy(&address, values[i].data(), sizeof address);
    std::memcpy(&first, values[i + 1].data(), sizeof first);
    address += uintptr_t(first) * p.element;
    all.push_back({address, address + 1, p.written, true});
  }
  return all;
}

}  // namespace

HostFunction::HostFunction(const char* name, void (*f)(void**), std::vector<HostParameter> p) : call(f), parameters(std::move(p)) {
  (loading ? *loading : BuiltIn())[name] = this;
  Names()[this] = name;
}

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuModuleLoadData")) return error;
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  Functions functions;
  if (magic == kHostImage) {
    loading = &functions;
    const bool loaded = LoadHostImage(static_cast<const char*>(image));
    loading = nullptr;
    if (!loaded) return CUDA_ERROR_INVALID_IMAGE;
  } else if (magic != 0xBA55ED50) {
    Wrong("a module is no fat binary of nvcc");
  }
  *module = new CUmod_st{std::move(functions)};
  Now().modules.insert(*module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  std::lock_guard lock(Now().mutex);
  Enter("cuModuleUnload");
  Now().modules.erase(module);
  delete module;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuModuleGetFunction")) return error;
  const Functions& all = module->functions.empty() ? BuiltIn() : module->functions;
  const auto found = all.find(name);
  if (found == all.end()) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(const_cast<HostFunction*>(found->second));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned,
                               CUstream stream, void** arguments, void**) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuLaunchKernel")) return error;
  if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024 || gy > 65535 || gz > 65535) Wrong("a kernel's grid is none");
  const auto* f = reinterpret_cast<const HostFunction*>(function);
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < f->parameters.size(); ++i) {
    const char* from = static_cast<const char*>(arguments[i]);
    values->emplace_back(from, from + f->parameters[i].bytes);
  }
  Work w;
  w.what = "kernel " + Names()[f];
  w.touches = TouchesOf(*f, *values);
  w.run = KernelCall(f, values, {{gx, gy, gz}, {bx, by, bz}, {}});
  Enqueue(Mutant("kernel_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
