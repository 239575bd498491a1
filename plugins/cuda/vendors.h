// NVIDIA's libraries besides the driver, each opened at first use, and the plugin's settings for
// them. One per runtime. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_VENDORS_H_
#define THALWEG_PLUGINS_CUDA_VENDORS_H_

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

// The precision in which products of floats may be computed.
enum class Precision { kFloat, kTf32, kBfloat16, kHalf };

// Returns `name` with its possible versions. The toolkit's version comes first, because an older
// driver may not support a newer one.
std::vector<std::string> VersionsOf(const std::string& name);

// A library whose functions are looked up by name.
class Library {
 public:
  // name: for messages, and the name of the setting with the file. files: tried in order if the
  // setting is empty. If the setting is `none` or no file can be opened, the library is absent.
  Library(std::string name, std::vector<std::string> files) : name_(std::move(name)), files_(std::move(files)) {}
  // Returns true if the library is available with all symbols that `load` requires. Tries once and
  // logs why it failed.
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
  // Returns NULL if the symbol is missing; for use by `load`.
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
  // Throws if a setting has an invalid value.
  void ReadSettings(const tw_host* host);
  Precision precision = Precision::kFloat;
  // Maximum number of plans that a device keeps of each library (ways.h). The default is several
  // times what a large network needs. A plan of cuDNN may take some hundred kilobytes.
  size_t plans = 1024;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_VENDORS_H_
