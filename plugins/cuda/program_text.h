// Program texts, assembled from plugins/common/device/*.h and kernels/matmul.cuh, which are
// embedded in the library. At run time the hash of a text selects a built-in function; NVRTC
// compiles texts that are not built in. kernels/prelude.cuh precedes a text.
#ifndef THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_
#define THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace thalweg::opencl {

struct Define {
  std::string name, value;
};

// Returns the definitions, then the parts (file names such as "reduce.h").
std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_
