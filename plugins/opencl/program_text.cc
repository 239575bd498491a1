#include "program_text.h"

#include <algorithm>
#include <iterator>

#include "embedded.h"

namespace thalweg::opencl {

std::string_view ProgramPart(std::string_view name) {
  return std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.name == name; })->text;
}

std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts) {
  std::string text(ProgramPart("prelude.cl"));
  text += ProgramPart("walk.h");
  for (const Define& d : defines) text += "#define " + d.name + " " + d.value + "\n";
  for (std::string_view part : parts) text += ProgramPart(part);
  return text;
}

}  // namespace thalweg::opencl
