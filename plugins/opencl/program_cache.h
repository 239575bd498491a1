// Compiled programs on disk, because a compiler run costs half a second and a start from the cache a few milliseconds. One file per
// device, driver, build options and source, in setting `cache_dir`, else ${XDG_CACHE_HOME:-$HOME/.cache}/thalweg/opencl.
// A cache may always miss: whatever goes wrong is a line in the log, and the program is compiled.
#ifndef THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_
#define THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_

#include <string>

#include "common/setting.h"

namespace thalweg::opencl {

using common::Setting;

class ProgramCache {
 public:
  // identity: everything beside the source that the compiled program depends on; folder: below the cache.
  ProgramCache(const tw_host* host, const std::string& identity, const std::string& source, const std::string& folder = "opencl");

  std::string Load() const;  // empty: not there, or damaged
  void Store(const std::string& binary) const;

 private:
  void Log(uint32_t level, const std::string& text) const;

  const tw_host* host_;
  std::string key_;   // stands in the file too: names are hashes and may clash
  std::string path_;  // empty: nowhere to keep files
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PROGRAM_CACHE_H_
