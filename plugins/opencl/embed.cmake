# Writes OUTPUT, a C++ header whose array kParts (or NAME) holds the names and texts of the files INPUTS:
#   cmake -DOUTPUT=embedded.h "-DINPUTS=prelude.cl;matmul.cl" -P embed.cmake
set(parts "")
if(NOT NAME)
  set(NAME kParts)
endif()
foreach(input IN LISTS INPUTS)
  file(READ ${input} text)
  if(text MATCHES "[)]program_text\"")
    message(FATAL_ERROR "${input} holds the words that end a raw string; choose others in embed.cmake")
  endif()
  get_filename_component(name ${input} NAME)
  string(APPEND parts "    {\"${name}\", R\"program_text(${text})program_text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by embed.cmake.
#pragma once

#include <string_view>

namespace thalweg::opencl {

struct Part {
  std::string_view name, text;
};
inline constexpr Part ${NAME}[] = {
${parts}};

}  // namespace thalweg::opencl
")
