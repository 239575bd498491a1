// Programs that the plugin was not built with, compiled by NVRTC while a graph is planned, and kept on disk. One per runtime.
// Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_COMPILER_H_
#define THALWEG_PLUGINS_CUDA_COMPILER_H_

#include <string>

#include "vendors.h"

namespace thalweg::cuda {

class Compiler {
 public:
  // Whether NVRTC is there.
  bool there(const tw_host* host);
  // The machine code of function `name` of a program's text (program_text.h) for devices like sm_90. Throws what the compiler says.
  std::string Compile(const tw_host* host, const std::string& text, const char* name, const std::string& architecture);

 private:
  std::string Run(const std::string& source, const std::string& architecture) const;

  struct Functions;
  Library library_{"nvrtc", VersionsOf("libnvrtc.so")};
  const Functions* functions_ = nullptr;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_COMPILER_H_
