// NVIDIA's libraries beside the driver, each opened when it is first used, and what the plugin's settings say of them. One per runtime.
// Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_VENDORS_H_
#define THALWEG_PLUGINS_CUDA_VENDORS_H_

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

// What products of floats may be computed in.
enum class Precision { kFloat, kTf32, kBfloat16, kHalf };

// `name` with the versions that there may be of it, that of the toolkit first: an older driver may not take a newer one.
std::vector<std::string> VersionsOf(const std::string& name);

// A library whose functions are looked up by name.
class Library {
 public:
  // name: for messages and of the setting that names the file; files: tried in turn where the setting is empty. `none` as the setting, or
  // no such file: there is none.
  Library(std::string name, std::vector<std::string> files) : name_(std::move(name)), files_(std::move(files)) {}
  // Whether it is there, with all that find(symbol) was asked for by `load`; tried once. Logs why not.
  template <class Load>
  bool Open(const tw_host* host, Load&& load) {
    std::lock_guard lock(mutex_);
    if (!tried_) {
      tried_ = true;
      there_ = Map(host) && load(*this);
      if (handle_ && !there_) Log(host, "'" + file_ + "' lacks " + missing_ + "; install a newer one");
    }
    return there_;
  }
  // NULL: it has none; for use by `load`.
  void* Find(const char* symbol);

 private:
  bool Map(const tw_host* host);
  void Log(const tw_host* host, const std::string& why) const;

  const std::string name_;
  const std::vector<std::string> files_;
  std::mutex mutex_;
  bool tried_ = false, there_ = false;
  void* handle_ = nullptr;
  std::string file_, missing_;
};

struct Vendors {
  // Throws for a setting that is none.
  void ReadSettings(const tw_host* host);
  Precision precision = Precision::kFloat;
  // That a device keeps of each library (ways.h): by default several times what a large network asks; one of cuDNN's may be some hundred
  // kilobytes.
  size_t plans = 1024;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_VENDORS_H_
