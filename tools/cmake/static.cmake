# Libraries for programs that link everything statically. Each is one object in which all symbols but the public ones are local, so
# that it does not clash with other copies of Protocol Buffers or other plugins in the program.
#
#   thalweg_static_library(NAME OBJECTS ... DEPS ... KEEP names...)   lib/libNAME.a, installed
#     KEEP: the symbols that stay global; `old=new` renames a symbol

set(THALWEG_STATIC_LIBRARIES ON)
if(THALWEG_SANITIZE OR THALWEG_COVERAGE OR THALWEG_FUZZ OR THALWEG_SYSTEM_DEPS)
  set(THALWEG_STATIC_LIBRARIES OFF) # their run-time parts, and the distribution's libraries, are shared
endif()

function(thalweg_static_library name)
  cmake_parse_arguments(arg "" "" "OBJECTS;DEPS;KEEP" ${ARGN})
  if(NOT THALWEG_STATIC_LIBRARIES)
    return()
  endif()
  set(roots "")
  set(names "")
  set(renames "")
  foreach(keep IN LISTS arg_KEEP)
    string(REPLACE "=" ";" both "${keep}")
    list(GET both 0 old)
    list(GET both -1 new)
    string(APPEND roots "-Wl,-u,${old}\n")
    string(APPEND names "${new}\n")
    if(NOT old STREQUAL new)
      list(APPEND renames --redefine-sym ${keep})
    endif()
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(CONFIGURE OUTPUT ${folder}/roots CONTENT "${roots}")
  file(CONFIGURE OUTPUT ${folder}/names CONTENT "${names}")
  set(archive ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lib${name}.a)
  add_executable(${name} ${arg_OBJECTS})
  target_link_libraries(${name} PRIVATE thalweg::base ${arg_DEPS})
  target_link_options(${name} PRIVATE -r -nostdlib @${folder}/roots -Wl,--force-group-allocation)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX SUFFIX .o RUNTIME_OUTPUT_DIRECTORY ${folder} SKIP_BUILD_RPATH ON
    LINK_DEPENDS ${folder}/roots)
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM BYPRODUCTS ${archive}
    COMMAND ${CMAKE_OBJCOPY} ${renames} --keep-global-symbols=${folder}/names $<TARGET_FILE:${name}>
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qcs ${archive} $<TARGET_FILE:${name}>)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
