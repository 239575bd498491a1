// The text of programs, put together from plugins/common/device/*.h and kernels/matmul.cuh, which are laid into the library. It is never
// compiled while running: its hash tells which of the built-in functions is meant. What comes before it is kernels/prelude.cuh.
#ifndef THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_
#define THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace thalweg::opencl {

struct Define {
  std::string name, value;
};

// The definitions and then the parts (file names, as "reduce.h").
std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_PROGRAM_TEXT_H_
