option(FMHA_BUILD_TESTS "Build the unit tests, the CTest case matrix and the benchmarks" ON)
option(FMHA_NATIVE_ARCH "Compile for this machine's processor instead of x86-64-v3" OFF)
option(FMHA_UNITY "Compile the sources of a library as one, which halves the time of a first build" OFF)
option(FMHA_OPTIMIZE "Compile what goes over tensors with more optimisation than the rest" ON)
option(FMHA_FUZZ "Build the libFuzzer programs (needs clang)" OFF)
set(FMHA_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize takes them (address,undefined or thread)")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Rooms that compute ask for -O3 themselves; elsewhere -O2 costs a third more time to compile than -O1
# and gains nothing that a user notices.
string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  # Without these two, ccache hands every source that uses a precompiled header to the compiler; settings of the user
  # stay. The inode cache keeps it from reading the whole header again for every source.
  execute_process(COMMAND ${CCACHE_PROGRAM} --get-config sloppiness OUTPUT_VARIABLE sloppiness
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX MATCHALL "[a-z_]+" sloppiness "${sloppiness}")
  list(APPEND sloppiness pch_defines time_macros)
  list(REMOVE_DUPLICATES sloppiness)
  list(JOIN sloppiness "," sloppiness)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=${sloppiness} CCACHE_INODECACHE=1
    ${CCACHE_PROGRAM})
endif()
