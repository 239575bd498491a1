// The text of programs, put together from kernels/*.cl and plugins/common/device/*.h, which embed.cmake lays into the library.
#ifndef THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_
#define THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace thalweg::opencl {

struct Define {
  std::string name, value;
};

// The prelude, the definitions and then the parts (file names, as "reduce.h").
std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts);
// One part as it stands.
std::string_view ProgramPart(std::string_view name);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PROGRAM_TEXT_H_
