#include "program_text.h"

#include <algorithm>
#include <iterator>

#include "embedded.h"

namespace thalweg::opencl {
namespace {

// This plugin has its own matrix product.
std::string_view PartText(std::string_view name) {
  if (name == "matmul.cl") name = "matmul.cuh";
  return std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.name == name; })->text;
}

}  // namespace

std::string ProgramText(std::initializer_list<Define> defines, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const Define& d : defines) text += "#define " + d.name + " " + d.value + "\n";
  for (std::string_view part : parts) text += PartText(part);
  return text;
}

}  // namespace thalweg::opencl
