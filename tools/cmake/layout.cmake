# Where things are installed below the prefix (CMAKE_INSTALL_BINDIR, _LIBDIR, _INCLUDEDIR, _DATADIR), and how programs find the library
# from there, wherever the tree is moved.

# lib, also where a distribution has another custom, unless it is said: lib64, lib/x86_64-linux-gnu. A string: what the command line says
# of a path is taken from the folder that one stands in.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Library folder below the prefix")
include(GNUInstallDirs)

# From the prefix, also where they were given as absolute paths.
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
