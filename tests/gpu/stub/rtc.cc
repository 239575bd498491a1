// NVRTC without a GPU: compiles programs for the host, with the compiler that built this library;
// their functions are found by name, like the functions built into the plugin. The option rtc=0
// makes every compilation fail.
#include <dlfcn.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "library.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Program {
  std::string source, image, log;
  std::vector<std::pair<std::string, std::string>> headers;
};
Program& Of(nvrtcProgram p) { return *reinterpret_cast<Program*>(p); }

std::string Contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// A folder that the destructor removes.
struct Folder {
  Folder() {
    char name[] = "/tmp/thalweg_stub_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

std::string OwnFile() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&OwnFile), &info);
  return info.dli_fname;
}

bool Compile(Program* p) {
  const Folder folder;
  for (const auto& [name, text] : p->headers) std::ofstream(folder.path / name) << text;
  std::ofstream(folder.path / "program.cc") << p->source;
  const std::string so = folder.path / "program.so", log = folder.path / "log";
  const std::string command = STUB_COMPILER " -std=c++20 -O1 -w -fPIC -shared -I" + folder.path.string() + " -I" STUB_SOURCES " -o " + so +
                              " " + (folder.path / "program.cc").string() + " " + OwnFile() + " >" + log + " 2>&1";
  if (std::system(command.c_str()) != 0) {
    p->log = Contents(log);
    return false;
  }
  const std::string library = Contents(so);
  const uint64_t bytes = library.size();
  p->image.assign(reinterpret_cast<const char*>(&kHostImage), sizeof kHostImage);
  p->image.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  p->image += library;
  return true;
}

}  // namespace

bool LoadHostImage(const char* image) {
  uint64_t bytes;
  std::memcpy(&bytes, image + sizeof kHostImage, sizeof bytes);
  const Folder folder;
  const std::string file = folder.path / "program.so";
  std::ofstream(file, std::ios::binary).write(image + sizeof kHostImage + sizeof bytes, std::streamsize(bytes)).flush();
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr;
}

// Unique per build of this library, so that cached programs of another build are not used.
EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  const std::string file = OwnFile();
  const auto written = std::filesystem::last_write_time(file).time_since_epoch().count();
  *major = 0, *minor = int(std::hash<std::string>()(file + " " + std::to_string(written)) & 0x7fffffff);
  return NVRTC_SUCCESS;
}
EXPORT const char* nvrtcGetErrorString(nvrtcResult) { return "an error of the stub"; }
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* made, const char* source, const char*, int headers, const char* const* texts,
                                      const char* const* names) {
  auto* p = new Program{source, "", "", {}};
  for (int k = 0; k < headers; ++k) p->headers.emplace_back(names[k], texts[k]);
  *made = reinterpret_cast<nvrtcProgram>(p);
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete &Of(*program);
  *program = nullptr;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char* const* options) {
  bool architecture = false;
  for (int k = 0; k < n; ++k) architecture = architecture || std::strncmp(options[k], "--gpu-architecture=sm_", 22) == 0;
  if (!architecture) WrongInLibrary("a program is compiled for no architecture");
  if (EnterLibrary("nvrtcCompileProgram")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!LibraryOption("rtc", 1)) {
    Of(program).log = "it was told not to compile\n";
    return NVRTC_ERROR_COMPILATION;
  }
  return Compile(&Of(program)) ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  *bytes = Of(program).image.size();
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* to) {
  std::memcpy(to, Of(program).image.data(), Of(program).image.size());
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  *bytes = Of(program).log.size() + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* to) {
  std::memcpy(to, Of(program).log.c_str(), Of(program).log.size() + 1);
  return NVRTC_SUCCESS;
}
