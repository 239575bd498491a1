# Writes OUTPUT, a C++ header whose kStandardManual holds the files INPUTS, with their names relative to the folder ROOT:
#   cmake -DOUTPUT=standard_manual.h -DROOT=ops "-DINPUTS=ops/array/pad.md;..." -P embed_manual.cmake
set(entries "")
foreach(input IN LISTS INPUTS)
  file(READ ${input} text)
  if(text MATCHES "[)]manual_text\"")
    message(FATAL_ERROR "${input} holds the words that end a raw string; choose others in embed_manual.cmake")
  endif()
  cmake_path(RELATIVE_PATH input BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  string(APPEND entries "    {\"${name}\", R\"manual_text(${text})manual_text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by embed_manual.cmake from ${ROOT}.
#pragma once

namespace thalweg::cli {

struct ManualFile {
  const char* path;  // array/pad.md
  const char* text;
};

inline constexpr ManualFile kStandardManual[] = {
${entries}};

}  // namespace thalweg::cli
")
