#include "vendors.h"

#include <dlfcn.h>

#include <charconv>

#include "driver.h"

namespace thalweg::cuda {

std::vector<std::string> VersionsOf(const std::string& name) {
  return CUDA_VERSION >= 13000 ? std::vector<std::string>{name + ".13", name + ".12"}
                               : std::vector<std::string>{name + ".12", name + ".13"};
}

void Library::Log(const tw_host* host, const std::string& why) const {
  const std::string text = name_ + " is not used, the plugin's own kernels serve: " + why;
  host->run->log(host, 1, text.data(), text.size());
}

// Opened libraries stay mapped, because they keep threads and exit handlers of their own.
bool Library::Map(const tw_host* host) {
  const std::string set = Setting(host, name_.c_str());
  if (set == "none") return false;
  const std::vector<std::string> files = set.empty() ? files_ : std::vector<std::string>{set};
  std::string why;
  for (const std::string& file : files) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    file_ = file;
    if (handle_) return true;
    if (const char* error = dlerror(); error && why.empty()) why = error;
  }
  Log(host, set.empty() ? files_[0] + std::string(" was not found; install it, or name its file in the setting '") + name_ + "'"
                        : "setting '" + name_ + "' is '" + set + "', which cannot be opened: " + why);
  return false;
}

void* Library::Find(const char* symbol) {
  void* found = dlsym(handle_, symbol);
  if (!found && missing_.empty()) missing_ = symbol;
  return found;
}

void Vendors::ReadSettings(const tw_host* host) {
  if (const std::string most = Setting(host, "plans"); !most.empty()) {
    const auto [end, error] = std::from_chars(most.data(), most.data() + most.size(), plans);
    if (error != std::errc() || end != most.data() + most.size() || plans == 0)
      throw tw::Error{TW_INVALID_ARGUMENT, "setting 'plans' cannot be '" + most + "'; it takes a number from 1 on"};
  }
  const std::string set = Setting(host, "precision");
  if (set.empty() || set == "float") return;
  if (set == "tf32")
    precision = Precision::kTf32;
  else if (set == "bfloat16")
    precision = Precision::kBfloat16;
  else if (set == "half")
    precision = Precision::kHalf;
  else
    throw tw::Error{TW_INVALID_ARGUMENT, "setting 'precision' cannot be '" + set + "'; it takes float, tf32, bfloat16 or half"};
}

}  // namespace thalweg::cuda
