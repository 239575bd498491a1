#include "drivers.h"

#include <dlfcn.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace thalweg::opencl {
namespace {

// Returns true if some LLVM exports its symbols to every library. AddressSanitizer does not allow
// RTLD_DEEPBIND, so the answer is then false.
bool ProgramOffersLlvm() {
  if (dlsym(RTLD_DEFAULT, "__asan_init")) return false;
  return dlsym(RTLD_DEFAULT, "_ZN4llvm2cl6Option11addArgumentEv") || dlsym(RTLD_DEFAULT, "LLVMContextCreate");
}

// Returns the library in the first line of an .icd file.
std::string NamedIn(const std::filesystem::path& icd) {
  std::string library;
  std::getline(std::ifstream(icd) >> std::ws, library);
  while (!library.empty() && std::isspace(static_cast<unsigned char>(library.back()))) library.pop_back();
  return library;
}

// Searches as ocl-icd and Khronos's loader do: a folder of .icd files, one such file, or a library
// by name.
std::vector<std::string> InstalledDrivers() {
  const char* set = std::getenv("OCL_ICD_VENDORS");
  if (!set) set = std::getenv("OPENCL_VENDOR_PATH");
  const std::filesystem::path where = set && *set ? set : "/etc/OpenCL/vendors";
  std::vector<std::string> libraries;
  std::error_code error;
  if (where.extension() == ".icd") return {NamedIn(where)};
  if (!std::filesystem::is_directory(where, error)) return {where.string()};
  for (std::filesystem::directory_iterator entry(where, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".icd") libraries.push_back(NamedIn(entry->path()));
  }
  return libraries;
}

}  // namespace

void OpenDriversApart() {
  if (!ProgramOffersLlvm()) return;
  // Errors are left to the loader to report. A driver that is already open keeps its bindings. The
  // handles stay open, as in the loader.
  for (const std::string& library : InstalledDrivers()) dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

}  // namespace thalweg::opencl
