# Precompiled headers. Headers of the standard library took much of the time of a build, so they are parsed three times,
# for libraries, for those that fmha_optimizes and for test programs, instead of once a source. GCC instantiates again, in every source, the
# templates that inline functions of a precompiled header use: nlohmann's (0.9 s each), fmt/ostream.h (0.4 s) and Eigen
# cost sources without them more than they save the others. A source includes everything that it uses all the same: `tidy`
# reads them all without this. -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without it.
set(fmha_precompiled_headers
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <fstream>
  <functional> <iterator> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <stdexcept>
  <string> <string_view> <thread> <tuple> <type_traits> <unordered_map> <unordered_set> <utility> <variant> <vector>
  <fmt/format.h>)

# GCC takes a precompiled header only with the definitions that it was made with, and fmt has one. These are for its
# users as well, whether they link fmt or not.
set(fmha_precompiled_definitions $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)

# fmha_use_precompiled(<target> <the target that makes the header>): both must be compiled with the same options.
function(fmha_use_precompiled target from)
  target_compile_definitions(${target} PRIVATE ${fmha_precompiled_definitions})
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()

# fmha_precompile(<target> [headers…]): a library or program that makes the headers, and these.
function(fmha_precompile target)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_precompile_headers(${target} PRIVATE ${fmha_precompiled_headers} ${ARGN})
  target_link_libraries(${target} PRIVATE fmha_flags fmt::fmt)
  set_target_properties(${target} PROPERTIES FMHA_PRECOMPILES ON)
endfunction()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() {}\n")
add_library(fmha_precompiled STATIC)
fmha_precompile(fmha_precompiled)
add_library(fmha_precompiled_optimized STATIC)
fmha_precompile(fmha_precompiled_optimized)
target_compile_options(fmha_precompiled_optimized PRIVATE -O3)
