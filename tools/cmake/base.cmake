# Interface targets with the compile options of all our targets, and the output folders of the build.
#   thalweg::base      language level, visibility, sections, sanitizers, coverage: for all hand-written code
#   thalweg::plain     the same without sanitizers and coverage: for generated code
#   thalweg::warnings  warnings, as errors: for hand-written code only

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC) # compiles programs like libraries, so that both can share a precompiled header
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One layout for the build tree and the installed one, so that the library finds its plugins in both by the same rule.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/static)
set(THALWEG_PLUGIN_DIR ${PROJECT_BINARY_DIR}/lib/thalweg/plugins)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

add_library(thalweg_plain INTERFACE)
add_library(thalweg::plain ALIAS thalweg_plain)
target_compile_options(thalweg_plain INTERFACE
  -ffunction-sections -fdata-sections
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
target_link_options(thalweg_plain INTERFACE -Wl,--gc-sections)
find_package(Threads REQUIRED)
target_link_libraries(thalweg_plain INTERFACE Threads::Threads)

add_library(thalweg_base INTERFACE)
add_library(thalweg::base ALIAS thalweg_base)
target_link_libraries(thalweg_base INTERFACE thalweg::plain)

add_library(thalweg_warnings INTERFACE)
add_library(thalweg::warnings ALIAS thalweg_warnings)
target_compile_options(thalweg_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Werror;-Wshadow;-Wundef;-Wvla;-Wcast-align;-Wpointer-arith>"
  "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual;-Wextra-semi>"
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>"
  # The ABI grows by new fields of C structs; an initialiser that omits fields sets them to zero on purpose.
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-missing-field-initializers>"
  # GCC 12 reports these two in inlined standard-library code that is right.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-restrict>"
  # With THALWEG_UNITY, no source is the main file, so GCC takes a class with a field of an unnamed namespace's type for one of a header.
  # A local variable may have the name of a constant of another source; Clang reports more of these than GCC.
  "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<BOOL:${THALWEG_UNITY}>>:-Wno-subobject-linkage>"
  "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<BOOL:${THALWEG_UNITY}>>:-Wno-shadow>"
  # Clang reports a deprecated function that libstdc++ 12's own stable_sort calls.
  "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>")

# THALWEG_SANITIZE is what -fsanitize= takes: "address,undefined" or "thread"; THALWEG_FUZZ adds libFuzzer's hooks.
if(THALWEG_SANITIZE OR THALWEG_FUZZ)
  set(sanitizers ${THALWEG_SANITIZE})
  if(THALWEG_FUZZ)
    set(sanitizers "fuzzer-no-link,${THALWEG_SANITIZE}")
  endif()
  # vptr is left out, because programs in C lack its run-time part.
  target_compile_options(thalweg_base INTERFACE
    -fsanitize=${sanitizers} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(thalweg_base INTERFACE -fsanitize=${sanitizers} -fno-sanitize=vptr)
  # Tests preload this run-time library into Python, which was built without it.
  set(runtime asan)
  if(THALWEG_SANITIZE MATCHES "thread")
    set(runtime tsan)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.${runtime}-${CMAKE_SYSTEM_PROCESSOR}.so
    OUTPUT_VARIABLE THALWEG_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(THALWEG_SANITIZE MATCHES "thread")
    # All programs link the shared run-time library, so that a program started by Python does not get a second one.
    cmake_path(GET THALWEG_SANITIZER_RUNTIME PARENT_PATH folder)
    target_link_options(thalweg_base INTERFACE -shared-libsan -Wl,-rpath,${folder})
  endif()
  thalweg_feature("sanitizers" ON "${sanitizers}")
else()
  thalweg_feature("sanitizers" OFF "presets asan, tsan and fuzz have them")
endif()

if(THALWEG_COVERAGE)
  target_compile_options(thalweg_base INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(thalweg_base INTERFACE -fprofile-instr-generate)
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache makes paths below the source folder relative to the build folder, so that one tree finds what another tree has
  # compiled; messages still name absolute paths. Without this sloppiness ccache does not cache a compilation with a
  # precompiled header.
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_ABSSTDERR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE up)
  target_compile_options(thalweg_plain INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${up}/=>")
  thalweg_feature("ccache" ON "${CCACHE_PROGRAM}")
elseif(NOT CCACHE_PROGRAM)
  thalweg_feature("ccache" OFF "not found; builds from scratch take longer")
endif()
