#include "compiler.h"

#include <nvrtc.h>

#include <algorithm>
#include <vector>

#include "embedded_headers.h"
#include "modules.h"
#include "program_cache.h"  // of plugins/opencl

namespace thalweg::cuda {
namespace {

// clang-format off
#define THALWEG_NVRTC_FUNCTIONS(X) \
  X(nvrtcCompileProgram) X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcGetCUBIN) X(nvrtcGetCUBINSize) X(nvrtcGetErrorString) \
  X(nvrtcGetProgramLog) X(nvrtcGetProgramLogSize) X(nvrtcVersion)
// clang-format on

}  // namespace

struct Compiler::Functions {
#define THALWEG_NVRTC_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_NVRTC_FUNCTIONS(THALWEG_NVRTC_POINTER)
#undef THALWEG_NVRTC_POINTER
};

bool Compiler::there(const tw_host* host) {
  return library_.Open(host, [this](Library& l) {
    static Functions found;  // functions of the library, which stays mapped
    bool all = true;
#define THALWEG_NVRTC_FIND(name)                                      \
  found.name = reinterpret_cast<decltype(found.name)>(l.Find(#name)); \
  all = all && found.name;
    THALWEG_NVRTC_FUNCTIONS(THALWEG_NVRTC_FIND)
#undef THALWEG_NVRTC_FIND
    functions_ = &found;
    return all;
  });
}

std::string Compiler::Run(const std::string& source, const std::string& architecture) const {
  const Functions& rtc = *functions_;
  std::vector<const char*> names, texts;
  for (const opencl::Part& p : opencl::kHeaders) names.push_back(p.name.data()), texts.push_back(p.text.data());
  struct Program {
    const Functions& rtc;
    nvrtcProgram it = nullptr;
    ~Program() {
      if (it) rtc.nvrtcDestroyProgram(&it);
    }
  } program{rtc};
  const auto check = [&](nvrtcResult error, const char* what) {
    if (error != NVRTC_SUCCESS) throw tw::Error{TW_INTERNAL, std::string(what) + " failed: " + rtc.nvrtcGetErrorString(error)};
  };
  check(rtc.nvrtcCreateProgram(&program.it, source.c_str(), "thalweg.cu", int(names.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
  const std::string wanted = "--gpu-architecture=" + architecture;
  const char* options[] = {wanted.c_str(), "--std=c++17"};
  if (nvrtcResult error = rtc.nvrtcCompileProgram(program.it, 2, options); error != NVRTC_SUCCESS) {
    size_t bytes = 0;
    std::string log;
    if (rtc.nvrtcGetProgramLogSize(program.it, &bytes) == NVRTC_SUCCESS && bytes > 1) {
      log.resize(bytes);
      rtc.nvrtcGetProgramLog(program.it, log.data());
      log = ": " + log.substr(0, std::min(log.find('\n'), log.size() - 1));
    }
    throw tw::Error{TW_INTERNAL,
                    std::string("compiling a kernel for ") + architecture + " failed: " + rtc.nvrtcGetErrorString(error) + log};
  }
  size_t bytes = 0;
  check(rtc.nvrtcGetCUBINSize(program.it, &bytes), "nvrtcGetCUBINSize");
  std::string image(bytes, '\0');
  check(rtc.nvrtcGetCUBIN(program.it, image.data()), "nvrtcGetCUBIN");
  return image;
}

std::string Compiler::Compile(const tw_host* host, const std::string& text, const char* name, const std::string& architecture) {
  int major = 0, minor = 0;
  functions_->nvrtcVersion(&major, &minor);
  std::string source = "#include \"prelude.cuh\"\n" + ProgramSource(text, {name}), headers;
  for (const opencl::Part& p : opencl::kHeaders) headers += p.text;
  const std::string identity = "nvrtc " + std::to_string(major) + "." + std::to_string(minor) + " " + architecture + " ";
  const opencl::ProgramCache cache(host, identity, headers + source, "cuda");
  std::string image = cache.Load();
  if (!image.empty()) return image;
  image = Run(source, architecture);
  cache.Store(image);
  return image;
}

}  // namespace thalweg::cuda
