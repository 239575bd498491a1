// A disk cache of compiled programs: a compiler run costs half a second, a load from the cache a
// few milliseconds. There is one file per device, driver, build options and source, in setting
// `cache_dir`, else ${XDG_CACHE_HOME:-$HOME/.cache}/thalweg/opencl. Every error counts as a miss:
// it is logged, and the program is compiled. Programs of a driver with a cache of its own are kept
// here only if `cache_dir` is set.
#ifndef THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_
#define THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_

#include <string>

#include "common/setting.h"

namespace thalweg::opencl {

using common::Setting;

class ProgramCache {
 public:
  // identity: what the compiled program depends on besides the source. folder: the folder inside
  // the cache.
  ProgramCache(const tw_host* host, const std::string& identity, const std::string& source, const std::string& folder = "opencl");

  std::string Load() const;  // empty if absent or damaged
  void Store(const std::string& binary) const;

 private:
  void Log(uint32_t level, const std::string& text) const;

  const tw_host* host_;
  std::string key_;   // also in the file, because file names are hashes and may collide
  std::string path_;  // empty if there is no place for files
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_
