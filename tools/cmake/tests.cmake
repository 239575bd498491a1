# Tests. One ctest entry per binary, because starting a process per case would cost more than the cases do.
#
#   thalweg_test(NAME SOURCES ... [DEPS ...] [LABELS ...] [ENVIRONMENT ...] [ARGS ...] [TIMEOUT s] [PROCESSORS n] [SERIAL] [MAIN] [NO_PCH])
#       a GoogleTest binary; MAIN: the sources define their own main (a test in C, with exit status 0 for passed and 77 for skipped)
#   thalweg_script_test(NAME COMMAND ... [LABELS ...] [ENVIRONMENT ...] [TIMEOUT s] [SERIAL] [LOADS_LIBRARY])
#       any command; Python runs a first word that ends in .py, with label `peer` the Python of tools/setup --peers.
#       LOADS_LIBRARY: the Python process loads libthalweg itself, from the path in THALWEG_LIBRARY
#   thalweg_nightly(NAME [ARGS ...] [ENVIRONMENT ...])
#       the same program at its heavy size, as NAME_nightly
#   thalweg_fuzzer(NAME SOURCES ... [DEPS ...] CORPUS folder)
#       a libFuzzer target in preset fuzz, where NAME_nightly fuzzes for THALWEG_FUZZ_SECONDS (600); in every other preset a test that
#       replays the corpus
#
# A test that prints a reason and exits with 77 counts as skipped. The environment of each test has THALWEG_PLUGIN_PATH (the build's
# plugins), THALWEG_SOURCE_DIR, THALWEG_BINARY_DIR, THALWEG_DATA_PATH (the data sets) and a cache folder inside the build folder.
# The label `nightly` is for heavy sizes, `peer` for comparisons with other frameworks, `languages` for the bindings other than
# Python's; they run only when named.

# ThreadSanitizer does not see the locks of the distribution's libraries (gRPC and its Abseil, NumPy), so it ignores their memory
# accesses. Forked children start threads, too; they continue unchecked.
set(THALWEG_TSAN_OPTIONS
  "die_after_fork=0:second_deadlock_stack=1:ignore_noninstrumented_modules=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/races.supp")
set(THALWEG_TEST_TIMEOUT 120)
if(THALWEG_SANITIZE)
  set(THALWEG_TEST_TIMEOUT 600)
endif()

if(THALWEG_HAVE_TESTS)
  # tools/setup is asked once, here, because tests run with another cache folder.
  foreach(what DATA PEERS RELEASE)
    string(TOLOWER ${what} option)
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/setup --print-${option}
      OUTPUT_VARIABLE THALWEG_${what}_PATH OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  find_program(SYMBOLIZER_PROGRAM NAMES llvm-symbolizer-19 llvm-symbolizer)
  mark_as_advanced(SYMBOLIZER_PROGRAM)
endif()

function(thalweg_test name)
  cmake_parse_arguments(arg "MAIN;SERIAL;NO_PCH" "TIMEOUT;PROCESSORS" "SOURCES;DEPS;LABELS;ENVIRONMENT;ARGS" ${ARGN})
  thalweg_refuse_unknown("thalweg_test(${name})" "${arg_UNPARSED_ARGUMENTS}")
  if(NOT THALWEG_HAVE_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/c_api/include)
  target_link_libraries(${name} PRIVATE thalweg::base thalweg::warnings ${arg_DEPS})
  if(NOT arg_MAIN)
    target_link_libraries(${name} PRIVATE thalweg::test_main)
    if(THALWEG_PCH AND NOT arg_NO_PCH)
      target_precompile_headers(${name} REUSE_FROM thalweg_test_main)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  thalweg_test_properties(${name})
endfunction()

function(thalweg_script_test name)
  cmake_parse_arguments(arg "SERIAL;LOADS_LIBRARY" "TIMEOUT;PROCESSORS" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  thalweg_refuse_unknown("thalweg_script_test(${name})" "${arg_UNPARSED_ARGUMENTS}")
  if(NOT THALWEG_HAVE_TESTS)
    return()
  endif()
  if(arg_LOADS_LIBRARY)
    list(APPEND arg_ENVIRONMENT "THALWEG_LIBRARY=$<TARGET_FILE:thalweg>")
    if(THALWEG_SANITIZE MATCHES "thread")
      list(APPEND arg_ENVIRONMENT "LD_PRELOAD=${THALWEG_SANITIZER_RUNTIME}")
    elseif(THALWEG_SANITIZE)
      # The sanitizer's run-time library must be loaded first, and libstdc++ must be loaded when it looks up the functions that it
      # replaces. Python itself leaks. thalweg-probe, which examines new plugins, has a run-time library of its own and does not start
      # with this LD_PRELOAD.
      list(APPEND arg_ENVIRONMENT "LD_PRELOAD=${THALWEG_SANITIZER_RUNTIME} libstdc++.so.6" "ASAN_OPTIONS=detect_leaks=0")
      list(PREPEND arg_ENVIRONMENT THALWEG_OPTIONS=plugin_probe=in_process)
    endif()
  endif()
  list(GET arg_COMMAND 0 program)
  if(program MATCHES "\\.py$")
    set(python /usr/bin/python3)
    if("peer" IN_LIST arg_LABELS)
      set(python ${PROJECT_SOURCE_DIR}/tools/cmake/peer-python)
    endif()
    list(PREPEND arg_COMMAND ${python} -B)
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  thalweg_test_properties(${name})
endfunction()

# The folder's path is a label too, so that `ctest -L framework` runs all tests below it.
macro(thalweg_test_properties name)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "^tests/?" "" folder "${folder}")
  set(environment
    "THALWEG_PLUGIN_PATH=${THALWEG_PLUGIN_DIR}" "THALWEG_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "THALWEG_BINARY_DIR=${PROJECT_BINARY_DIR}" "THALWEG_DATA_PATH=${THALWEG_DATA_PATH}"
    "THALWEG_PEERS_PATH=${THALWEG_PEERS_PATH}" "THALWEG_RELEASE_PATH=${THALWEG_RELEASE_PATH}"
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
    "LSAN_OPTIONS=print_suppressions=0:suppressions=${PROJECT_SOURCE_DIR}/tests/support/leaks.supp"
    "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=${THALWEG_TSAN_OPTIONS}")
  if(SYMBOLIZER_PROGRAM)
    list(APPEND environment "ASAN_SYMBOLIZER_PATH=${SYMBOLIZER_PROGRAM}" "TSAN_SYMBOLIZER_PATH=${SYMBOLIZER_PROGRAM}")
  endif()
  if(THALWEG_COVERAGE)
    list(APPEND environment "LLVM_PROFILE_FILE=${PROJECT_BINARY_DIR}/coverage/%m-%p.profraw")
  endif()
  if(${name} IN_LIST THALWEG_HOSTILE_TESTS)
    list(APPEND arg_LABELS hostile)
  endif()
  if(${name} IN_LIST THALWEG_THREADS_TESTS OR folder STREQUAL "distributed")
    list(APPEND arg_LABELS threads)
  endif()
  if(NOT arg_TIMEOUT OR (THALWEG_SANITIZE AND arg_TIMEOUT LESS THALWEG_TEST_TIMEOUT))
    set(arg_TIMEOUT ${THALWEG_TEST_TIMEOUT})
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(NOT arg_SERIAL)
    set(arg_SERIAL OFF)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS};${folder}" TIMEOUT ${arg_TIMEOUT}
    PROCESSORS ${arg_PROCESSORS} RUN_SERIAL ${arg_SERIAL} SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment};${arg_ENVIRONMENT}")
endmacro()

function(thalweg_nightly name)
  cmake_parse_arguments(arg "" "" "ARGS;ENVIRONMENT" ${ARGN})
  thalweg_refuse_unknown("thalweg_nightly(${name})" "${arg_UNPARSED_ARGUMENTS}")
  set(arg_LABELS nightly)
  set(arg_TIMEOUT 7200)
  set(arg_SERIAL ON)
  add_test(NAME ${name}_nightly COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  thalweg_test_properties(${name}_nightly)
endfunction()

function(thalweg_fuzzer name)
  cmake_parse_arguments(arg "" "CORPUS;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  thalweg_refuse_unknown("thalweg_fuzzer(${name})" "${arg_UNPARSED_ARGUMENTS}")
  if(NOT THALWEG_HAVE_TESTS)
    return()
  endif()
  cmake_path(ABSOLUTE_PATH arg_CORPUS)
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests UNITY_BUILD OFF)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/c_api/include)
  target_link_libraries(${name} PRIVATE thalweg::base thalweg::warnings ${arg_DEPS})
  if(THALWEG_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${arg_CORPUS} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    # Inputs that fuzzing finds stay in the build tree, apart from the seeds.
    set(found ${PROJECT_BINARY_DIR}/tests/found/${name})
    file(MAKE_DIRECTORY ${found})
    set(seconds $ENV{THALWEG_FUZZ_SECONDS})
    if(NOT seconds)
      set(seconds 600)
    endif()
    thalweg_nightly(${name} ARGS -max_total_time=${seconds} -timeout=20 -rss_limit_mb=4096 -artifact_prefix=${found}/ ${found} ${arg_CORPUS})
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${arg_CORPUS} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endif()
  list(APPEND arg_LABELS fuzz)
  set(arg_SERIAL OFF)
  thalweg_test_properties(${name})
endfunction()
