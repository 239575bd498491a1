// The file that contains this code: libthalweg.so, or the program that it is linked into. It never
// depends on argv[0]. Threads: any.
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace thalweg {

// Returns the path with links resolved; "" if it cannot be determined.
inline std::string OwnFile() {
  static const char here = 0;
  Dl_info info;
  void* map = nullptr;
  if (!dladdr1(&here, &info, &map, RTLD_DL_LINKMAP) || !map) return "";
  const char* name = static_cast<link_map*>(map)->l_name;  // empty for the program itself
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(name && *name ? name : "/proc/self/exe", error);
  return error ? "" : file.string();
}

}  // namespace thalweg
