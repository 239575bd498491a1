# Finds the libraries that Thalweg is built on. Protocol Buffers, Abseil, LevelDB and RE2 come from the folder that tools/setup made
# (THALWEG_DEPS_PREFIX; if it is empty, tools/setup prints the folder) or, with THALWEG_SYSTEM_DEPS, from the distribution.
# Afterwards these targets exist: absl::*, protobuf::libprotobuf-lite, leveldb::leveldb, re2::re2, thalweg::crypto, thalweg::farmhash,
# Eigen3::Eigen, ZLIB::ZLIB, thalweg::httplib (for `thalweg serve`) and nlohmann_json::nlohmann_json, thalweg::zlib (the same, static, for the library) and, if their packages are installed, GTest::gtest, GTest::gmock, OpenCL::OpenCL.

if(THALWEG_SYSTEM_DEPS)
  find_package(absl CONFIG REQUIRED)
  find_package(Protobuf 3.21 REQUIRED)
  find_package(leveldb CONFIG REQUIRED)
  find_library(RE2_LIBRARY NAMES re2 REQUIRED)
  find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
  mark_as_advanced(RE2_LIBRARY RE2_INCLUDE_DIR)
  thalweg_feature("system libraries" ON "the distribution's shared protobuf, Abseil, LevelDB and RE2")
else()
  if(NOT THALWEG_DEPS_PREFIX)
    set(flavour plain)
    if(THALWEG_SANITIZE MATCHES "thread")
      set(flavour tsan)
    endif()
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/setup --print-prefix ${flavour}
      OUTPUT_VARIABLE THALWEG_DEPS_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(RE2_LIBRARY ${THALWEG_DEPS_PREFIX}/lib/libre2.a)
  set(RE2_INCLUDE_DIR ${THALWEG_DEPS_PREFIX}/include)
  if(NOT EXISTS ${THALWEG_DEPS_PREFIX}/SOURCES OR NOT EXISTS ${RE2_LIBRARY})
    message(FATAL_ERROR "no libraries in ${THALWEG_DEPS_PREFIX}; run tools/setup, or configure with "
      "-DTHALWEG_SYSTEM_DEPS=ON to link the distribution's")
  endif()
  find_package(absl CONFIG REQUIRED PATHS ${THALWEG_DEPS_PREFIX} NO_DEFAULT_PATH)
  add_library(protobuf::libprotobuf-lite STATIC IMPORTED)
  set_target_properties(protobuf::libprotobuf-lite PROPERTIES
    IMPORTED_LOCATION ${THALWEG_DEPS_PREFIX}/lib/libprotobuf-lite.a
    INTERFACE_INCLUDE_DIRECTORIES ${THALWEG_DEPS_PREFIX}/include
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  # LevelDB's own package file names Snappy by its linker flag alone, which would find another one.
  add_library(leveldb::leveldb STATIC IMPORTED)
  set_target_properties(leveldb::leveldb PROPERTIES
    IMPORTED_LOCATION ${THALWEG_DEPS_PREFIX}/lib/libleveldb.a
    INTERFACE_INCLUDE_DIRECTORIES ${THALWEG_DEPS_PREFIX}/include
    INTERFACE_LINK_LIBRARIES ${THALWEG_DEPS_PREFIX}/lib/libsnappy.a)
  thalweg_feature("system libraries" OFF "hidden static ones in ${THALWEG_DEPS_PREFIX}")
endif()

add_library(re2::re2 UNKNOWN IMPORTED)
set_target_properties(re2::re2 PROPERTIES IMPORTED_LOCATION ${RE2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RE2_INCLUDE_DIR}
  INTERFACE_LINK_LIBRARIES Threads::Threads)

find_program(PROTOC_PROGRAM protoc REQUIRED)
mark_as_advanced(PROTOC_PROGRAM)

find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)

# Debian's cpp-httplib is a shared library with a header of its own. The definitions are those that it was built with, and change the
# layout of its types.
find_library(HTTPLIB_LIBRARY NAMES cpp-httplib REQUIRED)
find_path(HTTPLIB_INCLUDE_DIR httplib.h REQUIRED)
mark_as_advanced(HTTPLIB_LIBRARY HTTPLIB_INCLUDE_DIR)
add_library(thalweg::httplib UNKNOWN IMPORTED)
set_target_properties(thalweg::httplib PROPERTIES
  IMPORTED_LOCATION ${HTTPLIB_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HTTPLIB_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES Threads::Threads
  INTERFACE_COMPILE_DEFINITIONS "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT")

# Only SHA-256 is used of this library. It is linked statically, which adds 20 KB, so that no process loads OpenSSL for it.
find_library(CRYPTO_LIBRARY NAMES libcrypto.a REQUIRED)
find_path(CRYPTO_INCLUDE_DIR openssl/sha.h REQUIRED)
mark_as_advanced(CRYPTO_LIBRARY CRYPTO_INCLUDE_DIR)
add_library(thalweg::crypto STATIC IMPORTED)
set_target_properties(thalweg::crypto PROPERTIES
  IMPORTED_LOCATION ${CRYPTO_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CRYPTO_INCLUDE_DIR})

# Pictures in summaries are compressed. Linked statically, zlib adds 60 KB, and no process loads another library for it.
find_library(ZLIB_STATIC_LIBRARY NAMES libz.a REQUIRED)
mark_as_advanced(ZLIB_STATIC_LIBRARY)
add_library(thalweg::zlib STATIC IMPORTED)
set_target_properties(thalweg::zlib PROPERTIES
  IMPORTED_LOCATION ${ZLIB_STATIC_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES "${ZLIB_INCLUDE_DIRS}")

# The static library of FarmHash is one object that depends on nothing.
find_library(FARMHASH_LIBRARY NAMES libfarmhash.a REQUIRED)
find_path(FARMHASH_INCLUDE_DIR farmhash.h REQUIRED)
mark_as_advanced(FARMHASH_LIBRARY FARMHASH_INCLUDE_DIR)
add_library(thalweg::farmhash STATIC IMPORTED)
set_target_properties(thalweg::farmhash PROPERTIES
  IMPORTED_LOCATION ${FARMHASH_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${FARMHASH_INCLUDE_DIR})

# THALWEG_BUILD_TESTS: AUTO builds the tests if GoogleTest is found, ON requires it, OFF builds none.
set(THALWEG_HAVE_TESTS OFF)
if(NOT THALWEG_BUILD_TESTS)
  thalweg_feature("tests" OFF "THALWEG_BUILD_TESTS=${THALWEG_BUILD_TESTS}")
else()
  find_package(GTest CONFIG QUIET)
  if(GTest_FOUND)
    set(THALWEG_HAVE_TESTS ON)
    thalweg_feature("tests" ON "ctest in ${PROJECT_BINARY_DIR}, or tools/test")
  elseif(THALWEG_BUILD_TESTS STREQUAL "AUTO")
    thalweg_feature("tests" OFF "no GoogleTest found (libgmock-dev, libgtest-dev); tools/test installs it")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_TESTS=ON, but no GoogleTest was found; install libgmock-dev and libgtest-dev, or run tools/setup")
  endif()
endif()

# THALWEG_BUILD_OPENCL: AUTO builds the plugin if loader and headers are found, ON requires them, OFF skips it.
set(THALWEG_HAVE_OPENCL OFF)
if(THALWEG_BUILD_OPENCL STREQUAL "OFF")
  thalweg_feature("opencl plugin" OFF "THALWEG_BUILD_OPENCL=OFF")
else()
  find_package(OpenCL QUIET)
  if(OpenCL_FOUND)
    set(THALWEG_HAVE_OPENCL ON)
    thalweg_feature("opencl plugin" ON "${OpenCL_LIBRARIES}")
  elseif(THALWEG_BUILD_OPENCL STREQUAL "AUTO")
    thalweg_feature("opencl plugin" OFF "no ICD loader or headers found (ocl-icd-opencl-dev, opencl-headers)")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_OPENCL=ON, but no OpenCL ICD loader or headers were found; install "
      "ocl-icd-opencl-dev and opencl-headers, or run tools/setup")
  endif()
endif()

# THALWEG_BUILD_CUDA: AUTO builds the plugin if nvcc and the toolkit's headers are found, ON requires them, OFF skips it.
set(THALWEG_HAVE_CUDA OFF)
if(THALWEG_BUILD_CUDA STREQUAL "OFF")
  thalweg_feature("cuda plugin" OFF "THALWEG_BUILD_CUDA=OFF")
else()
  set(private_toolkit $ENV{XDG_CACHE_HOME})  # see tools/setup --cuda
  if(NOT private_toolkit)
    set(private_toolkit $ENV{HOME}/.cache)
  endif()
  find_program(THALWEG_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${private_toolkit}/thalweg/cuda/bin)
  get_filename_component(toolkit "${THALWEG_NVCC}" DIRECTORY)
  find_path(THALWEG_CUDA_INCLUDE_DIR cuda.h HINTS ${toolkit}/../include)
  mark_as_advanced(THALWEG_NVCC THALWEG_CUDA_INCLUDE_DIR)
  set(version 0)
  if(THALWEG_CUDA_INCLUDE_DIR)
    file(STRINGS ${THALWEG_CUDA_INCLUDE_DIR}/cuda.h version REGEX "#define CUDA_VERSION ")
    string(REGEX REPLACE "[^0-9]" "" version "${version}")
  endif()
  if(THALWEG_NVCC AND version GREATER_EQUAL 12000 AND EXISTS ${THALWEG_CUDA_INCLUDE_DIR}/cublasLt.h AND EXISTS ${THALWEG_CUDA_INCLUDE_DIR}/nvrtc.h)
    set(THALWEG_HAVE_CUDA ON)
    if(THALWEG_CUDA_ARCHITECTURES STREQUAL "AUTO")
      # Each further architecture doubles the compile time of the kernels. The driver of a newer GPU compiles the PTX of the last one.
      set(THALWEG_CUDA_ARCHITECTURES "")
      find_program(THALWEG_NVIDIA_SMI nvidia-smi)
      mark_as_advanced(THALWEG_NVIDIA_SMI)
      if(THALWEG_NVIDIA_SMI)
        execute_process(COMMAND ${THALWEG_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
          OUTPUT_VARIABLE capabilities ERROR_QUIET TIMEOUT 20)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]" THALWEG_CUDA_ARCHITECTURES "${capabilities}")
        list(TRANSFORM THALWEG_CUDA_ARCHITECTURES REPLACE "\\." "")
        list(REMOVE_DUPLICATES THALWEG_CUDA_ARCHITECTURES)
        list(SORT THALWEG_CUDA_ARCHITECTURES COMPARE NATURAL)
      endif()
      if(NOT THALWEG_CUDA_ARCHITECTURES)
        set(THALWEG_CUDA_ARCHITECTURES 80)
        set(THALWEG_CUDA_PTX ON)  # no GPU here runs the machine code
      endif()
    endif()
    set(form "machine code")
    if(THALWEG_CUDA_PTX)
      set(form "PTX, because no GPU was found,")
    endif()
    thalweg_feature("cuda plugin" ON "${THALWEG_NVCC}, ${form} for ${THALWEG_CUDA_ARCHITECTURES}; libcuda.so.1 is opened while running")
  elseif(THALWEG_BUILD_CUDA STREQUAL "AUTO")
    thalweg_feature("cuda plugin" OFF "no CUDA toolkit of version 12 or newer found (nvcc, cuda.h, cublasLt.h, nvrtc.h); tools/setup --cuda gets one")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_CUDA=ON, but no CUDA toolkit of version 12 or newer was found; install one, set CUDA_HOME to it, or run tools/setup --cuda")
  endif()
endif()

# THALWEG_BUILD_ONEDNN: AUTO builds the kernel pack if the headers are found, ON requires them, OFF skips it.
set(THALWEG_HAVE_ONEDNN OFF)
if(THALWEG_BUILD_ONEDNN STREQUAL "OFF")
  thalweg_feature("onednn kernel pack" OFF "THALWEG_BUILD_ONEDNN=OFF")
else()
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  mark_as_advanced(DNNL_INCLUDE_DIR)
  set(version "")
  if(DNNL_INCLUDE_DIR)
    file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h version REGEX "DNNL_VERSION_MAJOR +2$")
  endif()
  if(version)
    set(THALWEG_HAVE_ONEDNN ON)
    thalweg_feature("onednn kernel pack" ON "headers in ${DNNL_INCLUDE_DIR}; libdnnl.so.2 is opened while running")
  elseif(THALWEG_BUILD_ONEDNN STREQUAL "AUTO")
    thalweg_feature("onednn kernel pack" OFF "no headers of oneDNN 2 found (libdnnl-dev)")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_ONEDNN=ON, but no headers of oneDNN 2 were found; install libdnnl-dev, or run tools/setup")
  endif()
endif()

# THALWEG_BUILD_INPUT: AUTO builds the decoders of images and sound if all their libraries are found, ON requires them, OFF skips them.
set(THALWEG_HAVE_INPUT OFF)
if(THALWEG_BUILD_INPUT STREQUAL "OFF")
  thalweg_feature("input plugin" OFF "THALWEG_BUILD_INPUT=OFF")
else()
  set(packages "libpng-dev, libjpeg-dev, libgif-dev, libwebp-dev, libflac-dev")
  find_package(PNG 1.6 QUIET)
  find_package(JPEG QUIET)
  find_package(GIF 5.2 QUIET)
  find_library(WEBP_LIBRARY NAMES webp)
  find_library(WEBPDEMUX_LIBRARY NAMES webpdemux)
  find_path(WEBP_INCLUDE_DIR webp/demux.h)
  find_library(FLAC_LIBRARY NAMES FLAC)
  find_path(FLAC_INCLUDE_DIR FLAC/stream_decoder.h)
  mark_as_advanced(WEBP_LIBRARY WEBPDEMUX_LIBRARY WEBP_INCLUDE_DIR FLAC_LIBRARY FLAC_INCLUDE_DIR)
  if(PNG_FOUND AND JPEG_FOUND AND GIF_FOUND AND WEBP_LIBRARY AND WEBPDEMUX_LIBRARY AND WEBP_INCLUDE_DIR AND FLAC_LIBRARY AND FLAC_INCLUDE_DIR)
    set(THALWEG_HAVE_INPUT ON)
    add_library(thalweg_webp INTERFACE)
    target_include_directories(thalweg_webp SYSTEM INTERFACE ${WEBP_INCLUDE_DIR})
    target_link_libraries(thalweg_webp INTERFACE ${WEBPDEMUX_LIBRARY} ${WEBP_LIBRARY})
    add_library(thalweg_flac INTERFACE)
    target_include_directories(thalweg_flac SYSTEM INTERFACE ${FLAC_INCLUDE_DIR})
    target_link_libraries(thalweg_flac INTERFACE ${FLAC_LIBRARY})
    thalweg_feature("input plugin" ON "${PNG_LIBRARIES}, ${JPEG_LIBRARIES}, ${GIF_LIBRARIES}, ${WEBP_LIBRARY}, ${FLAC_LIBRARY}")
  elseif(THALWEG_BUILD_INPUT STREQUAL "AUTO")
    thalweg_feature("input plugin" OFF "no libpng, libjpeg, giflib, libwebp or libFLAC found (${packages})")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_INPUT=ON, but libpng, libjpeg, giflib, libwebp or libFLAC was not found; install ${packages}, "
      "or run tools/setup")
  endif()
endif()

# THALWEG_BUILD_GRPC: AUTO builds the transport if gRPC and OpenSSL 3 are found, ON requires them, OFF skips it.
set(THALWEG_HAVE_GRPC OFF)
if(THALWEG_BUILD_GRPC STREQUAL "OFF")
  thalweg_feature("grpc transport" OFF "THALWEG_BUILD_GRPC=OFF")
else()
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(GRPC QUIET grpc>=22)
  endif()
  find_package(OpenSSL 3.0 QUIET)
  find_library(GRPC_LIBRARY NAMES grpc)
  find_library(GPR_LIBRARY NAMES gpr)
  find_library(GRPCXX_LIBRARY NAMES grpc++)
  find_path(GRPC_INCLUDE_DIR grpcpp/server_builder.h)
  mark_as_advanced(GRPC_LIBRARY GPR_LIBRARY GRPCXX_LIBRARY GRPC_INCLUDE_DIR)
  if(GRPC_FOUND AND OpenSSL_FOUND AND GRPC_LIBRARY AND GPR_LIBRARY AND GRPCXX_LIBRARY AND GRPC_INCLUDE_DIR)
    set(THALWEG_HAVE_GRPC ON)
    add_library(thalweg_grpc_core INTERFACE)
    target_include_directories(thalweg_grpc_core SYSTEM INTERFACE ${GRPC_INCLUDE_DIR})
    target_link_libraries(thalweg_grpc_core INTERFACE ${GRPCXX_LIBRARY} ${GRPC_LIBRARY} ${GPR_LIBRARY})
    thalweg_feature("grpc transport" ON "${GRPC_LIBRARY} (core ${GRPC_VERSION})")
  elseif(THALWEG_BUILD_GRPC STREQUAL "AUTO")
    thalweg_feature("grpc transport" OFF "no gRPC or OpenSSL 3 found (libgrpc++-dev, libssl-dev)")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_GRPC=ON, but no gRPC or OpenSSL 3 was found; install libgrpc++-dev and libssl-dev, or run tools/setup")
  endif()
endif()

# THALWEG_BUILD_S3: AUTO builds the file system over object stores if libcurl's headers and Expat are found, ON requires them, OFF skips it.
set(THALWEG_HAVE_S3 OFF)
if(THALWEG_BUILD_S3 STREQUAL "OFF")
  thalweg_feature("s3 plugin" OFF "THALWEG_BUILD_S3=OFF")
else()
  find_path(CURL_INCLUDE_DIR curl/curl.h)
  find_library(EXPAT_STATIC_LIBRARY NAMES libexpat.a)
  find_path(EXPAT_INCLUDE_DIR expat.h)
  mark_as_advanced(CURL_INCLUDE_DIR EXPAT_STATIC_LIBRARY EXPAT_INCLUDE_DIR)
  if(CURL_INCLUDE_DIR AND EXPAT_STATIC_LIBRARY AND EXPAT_INCLUDE_DIR)
    set(THALWEG_HAVE_S3 ON)
    add_library(thalweg_curl_headers INTERFACE)
    target_include_directories(thalweg_curl_headers SYSTEM INTERFACE ${CURL_INCLUDE_DIR})
    # Linked statically, Expat adds 170 KB, and no process loads another library for it.
    add_library(thalweg::expat STATIC IMPORTED)
    set_target_properties(thalweg::expat PROPERTIES
      IMPORTED_LOCATION ${EXPAT_STATIC_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${EXPAT_INCLUDE_DIR})
    thalweg_feature("s3 plugin" ON "headers in ${CURL_INCLUDE_DIR}, ${EXPAT_STATIC_LIBRARY}; libcurl.so.4 is opened while running")
  elseif(THALWEG_BUILD_S3 STREQUAL "AUTO")
    thalweg_feature("s3 plugin" OFF "no headers of libcurl or no static Expat found (libcurl4-openssl-dev, libexpat1-dev)")
  else()
    message(FATAL_ERROR "THALWEG_BUILD_S3=ON, but no headers of libcurl or no static Expat were found; install libcurl4-openssl-dev and "
      "libexpat1-dev, or run tools/setup")
  endif()
endif()
