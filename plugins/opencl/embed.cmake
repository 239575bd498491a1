# Writes OUTPUT, a C++ header whose kProgramText is the text of the files INPUTS in their order:
#   cmake -DOUTPUT=program_text.h "-DINPUTS=common.cl;matmul.cl" -P embed.cmake
set(text "")
foreach(input IN LISTS INPUTS)
  file(READ ${input} part)
  string(APPEND text "${part}\n")
endforeach()
if(text MATCHES "[)]program_text\"")
  message(FATAL_ERROR "the kernels hold the words that end a raw string; choose others in embed.cmake")
endif()
file(WRITE ${OUTPUT} "// Made by embed.cmake from kernels/*.cl.
#pragma once

namespace thalweg::opencl {

inline constexpr char kProgramText[] = R\"program_text(${text})program_text\";

}  // namespace thalweg::opencl
")
