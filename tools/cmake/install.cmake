# An installed Thalweg, also after its tree is moved, offers other projects:
#   find_package(Thalweg CONFIG)   Thalweg::thalweg (the C API), Thalweg::plugin (headers for plugins, nothing to link)
#   pkg-config thalweg
#
# c_api/CMakeLists.txt calls thalweg_install_api() once its target `thalweg` exists; the function installs the headers in
# the target's file set HEADERS.
include(CMakePackageConfigHelpers)

function(thalweg_install_api)
  add_library(thalweg_plugin_headers INTERFACE)
  add_library(thalweg::plugin ALIAS thalweg_plugin_headers)
  set_target_properties(thalweg_plugin_headers PROPERTIES EXPORT_NAME plugin)
  target_include_directories(thalweg_plugin_headers INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/c_api/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(thalweg PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    INSTALL_RPATH "")
  install(TARGETS thalweg thalweg_plugin_headers EXPORT ThalwegTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)
  install(EXPORT ThalwegTargets NAMESPACE Thalweg:: FILE ThalwegTargets.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Thalweg)
endfunction()

function(thalweg_install_package)
  if(NOT TARGET thalweg)
    return()
  endif()
  set(generated ${PROJECT_BINARY_DIR}/package)
  # Both files compute all paths from their own location.
  string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}")
  set(prefix_from_pkgconfig "../${up}")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/ThalwegConfig.cmake.in ${generated}/ThalwegConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Thalweg NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${generated}/ThalwegConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/thalweg.pc.in ${generated}/thalweg.pc @ONLY)
  install(FILES ${generated}/ThalwegConfig.cmake ${generated}/ThalwegConfigVersion.cmake
      ${PROJECT_SOURCE_DIR}/tools/cmake/plugin.map
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Thalweg)
  # Plugins in C++ that are built without CMake link with this map.
  install(FILES ${PROJECT_SOURCE_DIR}/tools/cmake/plugin.map DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/thalweg COMPONENT headers)
  install(FILES ${generated}/thalweg.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  # Anyone who redistributes the binaries passes these files on.
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/thalweg)
  thalweg_install_guides()
endfunction()

# The pages, examples and templates are installed with the paths that they have in the tree, so that the links between them hold.
function(thalweg_install_guides)
  set(guides ${CMAKE_INSTALL_DATADIR}/doc/thalweg)
  set(pages
    README.md CHANGELOG.md SECURITY.md
    bindings/README.md bindings/python/README.md bindings/python/chores.md bindings/python/vmap.md bindings/go/README.md
    bindings/csharp/README.md bindings/java/README.md bindings/libtensorflow/README.md bindings/node/README.md
    bindings/onnxruntime/README.md bindings/r/README.md bindings/rust/README.md
    c_api/README.md c_api/CHANGELOG.md
    distributed/README.md
    framework/README.md framework/autodiff/README.md framework/eager/README.md framework/files/README.md
    framework/graph/README.md framework/io/README.md framework/model/README.md framework/plan/README.md
    framework/planner/README.md framework/planner/axes/README.md framework/planner/compilers/README.md
    framework/planner/emit/README.md framework/planner/memory/README.md framework/planner/passes/README.md
    framework/planner/placement/README.md framework/registry/README.md framework/runtime/README.md
    framework/runtime/devices/README.md framework/runtime/flow/README.md framework/runtime/host/README.md
    framework/runtime/state/README.md framework/runtime/step/README.md framework/runtime/trace/README.md
    framework/session/README.md
    ops/README.md ops/concurrent_steps.md
    plugins/README.md plugins/first_device.md plugins/first_op.md plugins/moving.md plugins/roles.md plugins/stability.md
    plugins/common/device/README.md plugins/cpu/README.md plugins/cuda/README.md plugins/data/README.md plugins/etcd/README.md
    plugins/fake/README.md plugins/grpc/README.md plugins/input/README.md plugins/null/README.md plugins/onednn/README.md
    plugins/onnx/README.md plugins/opencl/README.md plugins/ring/README.md plugins/s3/README.md plugins/savedmodel/README.md plugins/shm/README.md
    plugins/stablehlo/README.md plugins/summary/README.md
    plugins/text/README.md plugins/tflite/README.md plugins/ucx/README.md
    tools/README.md tools/abi/README.md tools/benchmarks/README.md tools/conformance/README.md tools/credentials/README.md
    tools/packages/README.md tools/probe/README.md tools/sandbox/README.md tools/thalweg/README.md
    tools/thalweg/serve/README.md)
  foreach(page IN LISTS pages)
    cmake_path(GET page PARENT_PATH folder)
    install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${guides}/${folder})
  endforeach()
  foreach(folder c_api/reference ops/reference c_api/examples plugins/examples plugins/templates bindings/python/examples bindings/go/examples
      bindings/csharp/examples bindings/java/examples bindings/node/examples bindings/r/examples bindings/rust/examples distributed/examples)
    cmake_path(GET folder PARENT_PATH above)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${guides}/${above}
      PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
  endforeach()
endfunction()
