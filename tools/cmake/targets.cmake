# The four kinds of target in this tree. A folder's CMakeLists.txt calls one of these and lists its sources by name.
#
#   thalweg_library(NAME SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [OBJECT] [PCH] [SMALL])
#                                                                                     static library thalweg_NAME, thalweg::NAME
#   thalweg_program(NAME SOURCES ... [DEPS ...] [INSTALL])                           bin/NAME
#   thalweg_plugin(NAME SOURCES ... [DEPS ...] [INCLUDES ...] [NO_INSTALL] [KERNELS] [FOR_OPS])
#                                                                                     lib/thalweg/plugins/libNAME.so
#   thalweg_test(NAME ...), thalweg_fuzzer(NAME ...)                                 see tests.cmake

# Strips the prefix that the function will add, so that both `graph` and `thalweg_graph` name thalweg::graph.
macro(thalweg_short_name out name)
  string(REGEX REPLACE "^thalweg_" "" ${out} "${name}")
endmacro()

# thalweg_listed(FILE WORD OUT): the entries WORD(a, b) of FILE, an include file for C++, as a list of a/b; a change of FILE configures again.
function(thalweg_listed file word out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  file(STRINGS ${file} entries REGEX "^${word}[(]")
  list(TRANSFORM entries REPLACE "^${word}[(]([a-z0-9_]+)[)]$" "\\1")
  list(TRANSFORM entries REPLACE "^${word}[(]([a-z0-9_]+), ([a-z0-9_]+)[)]$" "\\1/\\2")
  set(${out} ${entries} PARENT_SCOPE)
endfunction()

# SMALL is for code that no step runs. A Release build compiles it for size, and a build with sanitizers without optimisation, in half the
# time.
function(thalweg_library name)
  cmake_parse_arguments(arg "OBJECT;PCH;SMALL" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  thalweg_refuse_unknown(thalweg_library "${arg_UNPARSED_ARGUMENTS}")
  thalweg_short_name(name ${name})
  set(kind STATIC)
  if(arg_OBJECT)
    set(kind OBJECT)
  endif()
  add_library(thalweg_${name} ${kind} ${arg_SOURCES})
  add_library(thalweg::${name} ALIAS thalweg_${name})
  target_include_directories(thalweg_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/c_api/include)
  target_compile_definitions(thalweg_${name} PUBLIC THALWEG_NEWEST) # a host knows the names of all minors (plugin/abi.h)
  target_link_libraries(thalweg_${name} PUBLIC thalweg::base ${arg_DEPS} PRIVATE thalweg::warnings ${arg_PRIVATE_DEPS})
  if(arg_SMALL)
    target_compile_options(thalweg_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
    if(THALWEG_SANITIZE)
      target_compile_options(thalweg_${name} PRIVATE -O0)
    endif()
  endif()
  if(arg_PCH)
    thalweg_precompile(thalweg_${name})
  endif()
endfunction()

function(thalweg_program name)
  cmake_parse_arguments(arg "INSTALL" "" "SOURCES;DEPS" ${ARGN})
  thalweg_refuse_unknown(thalweg_program "${arg_UNPARSED_ARGUMENTS}")
  # A program may share its name with a library target, as `thalweg` does.
  set(target ${name})
  if(TARGET ${name} OR name STREQUAL "thalweg")
    set(target ${name}_program)
  endif()
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/c_api/include)
  target_link_libraries(${target} PRIVATE thalweg::base thalweg::warnings ${arg_DEPS})
  if(arg_INSTALL)
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# A plugin sees the public headers and its own folder, nothing else of ours. Without sanitizers and coverage, the linker rejects
# undefined symbols. KERNELS: its sources are mostly kernels (see thalweg_kernels). FOR_OPS: standard ops need it, because only it has their
# kernels or engine, or it has them for another device; the target `hostile`, whose tests use every op, builds it.
function(thalweg_plugin name)
  cmake_parse_arguments(arg "NO_INSTALL;KERNELS;FOR_OPS" "" "SOURCES;DEPS;INCLUDES" ${ARGN})
  thalweg_refuse_unknown(thalweg_plugin "${arg_UNPARSED_ARGUMENTS}")
  set(target thalweg_plugin_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} PREFIX lib
    LIBRARY_OUTPUT_DIRECTORY ${THALWEG_PLUGIN_DIR} INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/cmake/plugin.map)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/c_api/include ${CMAKE_CURRENT_SOURCE_DIR} ${arg_INCLUDES})
  target_link_libraries(${target} PRIVATE thalweg::base thalweg::warnings ${arg_DEPS})
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/tools/cmake/plugin.map)
  if(NOT THALWEG_SANITIZE AND NOT THALWEG_COVERAGE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(arg_KERNELS)
    thalweg_kernels(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY THALWEG_PLUGINS ${target})
  if(arg_FOR_OPS)
    set_property(GLOBAL APPEND PROPERTY THALWEG_PLUGINS_FOR_OPS ${target})
  endif()
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/thalweg/plugins)
  endif()
endfunction()

# thalweg_precompile(TARGET [HEADERS ...]): precompiles the headers of the standard library that most sources include, and HEADERS.
function(thalweg_precompile target)
  if(THALWEG_PCH)
    set(headers algorithm functional memory mutex optional string string_view unordered_map vector ${ARGN})
    list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
    target_precompile_headers(${target} PRIVATE ${headers})
  endif()
endfunction()

# thalweg_kernels(TARGET [HEADERS ...]): how sources of kernels are compiled; HEADERS are precompiled, too. Each source is compiled by itself
# also with THALWEG_UNITY: in one unit, their local templates of one name would be overloads of each other, and a kernel could call
# another's without an error.
function(thalweg_kernels target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  thalweg_precompile(${target} cmath limits thalweg/cpp/plugin.hpp ${ARGN})
endfunction()

# thalweg_alone(SOURCES ...): with THALWEG_UNITY, eight neighbouring sources of a target are compiled as one, but for these. They are code
# that steps run, because compilers inline less in larger units, and sources whose local names clash with their neighbours'.
function(thalweg_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(thalweg_refuse_unknown function unknown)
  if(unknown)
    message(FATAL_ERROR "${function}: unknown arguments: ${unknown}")
  endif()
endfunction()
