// The file that this code came from: libthalweg.so, or the program that it is linked into. Never what a caller says in argv[0].
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace thalweg {

// Without links; empty if it cannot be told.
inline std::string OwnFile() {
  static const char here = 0;
  Dl_info info;
  void* map = nullptr;
  if (!dladdr1(&here, &info, &map, RTLD_DL_LINKMAP) || !map) return "";
  const char* name = static_cast<link_map*>(map)->l_name;  // empty: the program itself
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(name && *name ? name : "/proc/self/exe", error);
  return error ? "" : file.string();
}

}  // namespace thalweg
