#include "helper_program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "thalweg/version.h"

namespace thalweg::cli {
namespace {

// Returns lib/thalweg beside the library that this process has loaded.
std::filesystem::path Folder() {
  Dl_info library;
  if (!dladdr(reinterpret_cast<const void*>(&tw_version_string), &library)) return {};
  return std::filesystem::path(library.dli_fname).parent_path() / "thalweg";
}

}  // namespace

std::string FindHelper(const std::string& name) {
  const std::filesystem::path path = Folder() / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

void ExecuteHelper(const std::string& name, const std::vector<std::string>& words, const std::string& remedy) {
  const std::string path = FindHelper(name);
  if (path.empty()) throw std::runtime_error("the helper program '" + (Folder() / name).string() + "' is not there; " + remedy);
  std::vector<char*> pointers = {const_cast<char*>(path.c_str())};
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::fflush(stdout);
  execv(path.c_str(), pointers.data());
  throw std::runtime_error("the helper program '" + path + "' cannot be started: " + std::strerror(errno));
}

}  // namespace thalweg::cli
