// Program texts, assembled from kernels/*.cl and plugins/common/device/*.h, which embed.cmake
// embeds in the library.
#ifndef THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_
#define THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace thalweg::opencl {

struct Define {
  std::string name, value;
};

// Returns the prelude, the definitions and the parts, in this order. A part is a file name such as
// "reduce.h".
std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts);
// Returns one part unchanged.
std::string_view ProgramPart(std::string_view name);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_
