# Writes OUTPUT, a C++ header whose kTemplates holds the files INPUTS, with their names relative to the folder ROOT and without `.in`,
# and the example TRANSPORT as transport/transport.c:
#   cmake -DOUTPUT=templates.h -DROOT=plugins/templates "-DINPUTS=plugins/templates/op/op.c.in;..." -DTRANSPORT=... -P embed_templates.cmake
set(entries "")
foreach(input IN LISTS INPUTS TRANSPORT)
  file(READ ${input} text)
  if(text MATCHES "[)]template_text\"")
    message(FATAL_ERROR "${input} holds the words that end a raw string; choose others in embed_templates.cmake")
  endif()
  cmake_path(RELATIVE_PATH input BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  string(REGEX REPLACE "[.]in$" "" name "${name}")
  if(input STREQUAL TRANSPORT)
    set(name transport/transport.c)
    string(REPLACE "socket_transport" "{{name}}" text "${text}")
    string(REPLACE "org.example.unix" "org.example.{{lower}}" text "${text}")
    string(REPLACE "TW_S(\"unix\")" "TW_S(\"{{name}}\")" text "${text}")
    string(REPLACE "unix transport:" "{{name}} transport:" text "${text}")
  endif()
  string(APPEND entries "    {\"${name}\", R\"template_text(${text})template_text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by embed_templates.cmake from ${ROOT}.
#pragma once

namespace thalweg::cli {

struct Template {
  const char* path;  // op/op.c
  const char* text;
};

inline constexpr const char kLibraryFolder[] = \"${LIBDIR}\";
inline constexpr Template kTemplates[] = {
${entries}};

}  // namespace thalweg::cli
")
