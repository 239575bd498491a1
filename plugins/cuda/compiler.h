// NVRTC compiles programs that are not built into the plugin, while a graph is planned; the results
// are cached on disk. One per runtime. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_COMPILER_H_
#define THALWEG_PLUGINS_CUDA_COMPILER_H_

#include <string>

#include "vendors.h"

namespace thalweg::cuda {

class Compiler {
 public:
  // Returns true if NVRTC is available.
  bool there(const tw_host* host);
  // Returns the machine code of function `name` of a program text (program_text.h), for an
  // architecture such as sm_90. Throws the compiler's messages.
  std::string Compile(const tw_host* host, const std::string& text, const char* name, const std::string& architecture);

 private:
  std::string Run(const std::string& source, const std::string& architecture) const;

  struct Functions;
  Library library_{"nvrtc", VersionsOf("libnvrtc.so")};
  const Functions* functions_ = nullptr;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_COMPILER_H_
