# Sets the install folders below the prefix (CMAKE_INSTALL_BINDIR, _LIBDIR, _INCLUDEDIR, _DATADIR) and the run path by which installed
# programs find the library, also after the tree is moved.

# The default is lib, also on distributions that use lib64 or lib/x86_64-linux-gnu. The type is STRING, because CMake makes a PATH
# of the command line absolute, relative to the current folder.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Library folder below the prefix")
include(GNUInstallDirs)

# Makes the folders relative to the prefix, also those that were given as absolute paths.
foreach(folder BINDIR LIBDIR INCLUDEDIR DATADIR)
  cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${CMAKE_INSTALL_FULL_${folder}}" below)
  if(NOT below)
    message(FATAL_ERROR "CMAKE_INSTALL_${folder} is '${CMAKE_INSTALL_${folder}}', which is not below CMAKE_INSTALL_PREFIX, "
      "'${CMAKE_INSTALL_PREFIX}': what is installed finds its parts from its own place; name a folder below the prefix")
  endif()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_${folder} BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE CMAKE_INSTALL_${folder})
endforeach()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE from_programs)
set(CMAKE_INSTALL_RPATH "$ORIGIN/${from_programs}")
