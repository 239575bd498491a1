# Writes OUTPUT, a C++ header whose kTemplates holds the files INPUTS, with their names relative to the folder ROOT and without `.in`,
# and some files of the folder EXAMPLES under other names:
#   cmake -DOUTPUT=templates.h -DROOT=plugins/templates "-DINPUTS=plugins/templates/op/op.c.in;..." -DEXAMPLES=plugins/examples -DLIBDIR=lib
#     -P embed_templates.cmake
set(entries "")

function(add_template name text)
  if(text MATCHES "[)]template_text\"")
    message(FATAL_ERROR "${name} holds the words that end a raw string; choose others in embed_templates.cmake")
  endif()
  set(entries "${entries}    {\"${name}\", R\"template_text(${text})template_text\"},\n" PARENT_SCOPE)
endfunction()

# Adds an example as a template. The arguments after its file are pairs: a word of the example, and what stands in its place.
function(add_example name example)
  file(READ ${EXAMPLES}/${example} text)
  set(words ${ARGN})
  while(words)
    list(POP_FRONT words from to)
    string(FIND "${text}" "${from}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${example} does not have '${from}'; correct the pairs of ${name} in embed_templates.cmake")
    endif()
    string(REPLACE "${from}" "${to}" text "${text}")
  endwhile()
  add_template(${name} "${text}")
  set(entries "${entries}" PARENT_SCOPE)
endfunction()

foreach(input IN LISTS INPUTS)
  file(READ ${input} text)
  cmake_path(RELATIVE_PATH input BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  string(REGEX REPLACE "[.]in$" "" name "${name}")
  add_template(${name} "${text}")
endforeach()
add_example(transport/transport.c socket_transport.c
  [[socket_transport]] [[{{name}}]]
  [[org.example.unix]] [[org.example.{{lower}}]]
  [[TW_S("unix")]] [[TW_S("{{name}}")]]
  [[unix transport:]] [[{{name}} transport:]])
add_example(membership/membership.c folder_membership.c
  [[folder_membership]] [[{{name}}]]
  [[`file` addresses]] [[`{{name}}` addresses]]
  [[org.example.file]] [[org.example.{{lower}}]]
  [[TW_S("file")]] [[TW_S("{{name}}")]]
  [[file membership:]] [[{{name}} membership:]])
add_example(importer/importer.c linear_importer.c
  [[org.example.linear_importer]] [[org.example.{{lower}}]]
  [[TW_S("linear")]] [[TW_S("{{name}}")]]
  [[TW_S(".linear")]] [[TW_S(".{{name}}")]]
  [[linear 1]] [[{{name}} 1]]
  [[Build it like twice.c.]] [[README.md says how to build, test and extend it.]])
add_example(profiler/profiler.c trace_profiler.c
  [[org.example.trace_profiler]] [[org.example.{{lower}}]]
  [[TW_S("trace")]] [[TW_S("{{name}}")]]
  [[profiler=trace:FILE]] [[profiler={{name}}:FILE]]
  [[Build it like twice.c.]] [[README.md says how to build, test and extend it.]])
add_example(file_system/file_system.cc mem.cc
  [[org.example.mem]] [[org.example.{{lower}}]]
  [[TW_S("mem")]] [[TW_S("{{name}}")]]
  [[mem://]] [[{{name}}://]]
  [[mem.cc -o libmem.so]] [[{{name}}.cc -o lib{{name}}.so]])
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
