# Flags that every target of the project shares. Third-party headers are SYSTEM and stay out of the warnings.
add_library(fmha_flags INTERFACE)
target_include_directories(fmha_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
foreach(warning -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
  target_compile_options(fmha_flags INTERFACE $<BUILD_INTERFACE:${warning}>)
endforeach()
# GCC collects its garbage so often that it costs an eighth of the time; memory of a compilation grows by a fifth, to 1.8 GB at most. Precompiled
# headers are made without this: one that was made with it crashed every compilation that read it.
target_compile_options(fmha_flags INTERFACE
  $<BUILD_INTERFACE:$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<NOT:$<BOOL:$<TARGET_PROPERTY:FMHA_PRECOMPILES>>>>:--param=ggc-min-heapsize=800000>>)
# In a source made of several, names of one shadow file-local names of another. Builds of single sources see what is meant.
target_compile_options(fmha_flags INTERFACE $<BUILD_INTERFACE:$<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  if(FMHA_NATIVE_ARCH)
    # The AVX-512 headers of GCC 12 read variables that are deliberately undefined.
    target_compile_options(fmha_flags INTERFACE -march=native $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  else()
    target_compile_options(fmha_flags INTERFACE -march=x86-64-v3)
  endif()
endif()
# The standard library of GCC 12 uses parts of itself that it calls deprecated, which Clang minds in templates.
target_compile_options(fmha_flags INTERFACE $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>>)
if(FMHA_SANITIZE)
  # Instrumented std::regex makes GCC 12 see uninitialised members that are not.
  target_compile_options(fmha_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(fmha_flags INTERFACE -fsanitize=${FMHA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fmha_flags INTERFACE -fsanitize=${FMHA_SANITIZE})
endif()

# fmha_optimizes(<target>): a library that is worth -O3 in every build that runs cases, because all of them go through it. GCC 12
# takes a precompiled header of another optimisation level and then crashes now and then, so these have their own.
function(fmha_optimizes target)
  if(NOT FMHA_OPTIMIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -O3)
  set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM fmha_precompiled_optimized)
  add_dependencies(${target} fmha_precompiled_optimized)
endfunction()

# fmha_computes(<target>): a room that goes over tensors is worth -O3, and with sanitizers, which make it slow anyway, -O1.
function(fmha_computes target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    fmha_optimizes(${target})
  elseif(FMHA_OPTIMIZE)
    target_compile_options(${target} PRIVATE -O1)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# fmha_group(<target> [sources apart]): with FMHA_UNITY the sources of the target are compiled as one, but those whose file-local names others
# have too.
function(fmha_group target)
  set_target_properties(${target} PROPERTIES FMHA_APART "${ARGN}")
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(FMHA_UNITY AND count GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    # GCC takes a source that another one includes for a header, and warns where its types have members of file-local types.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# fmha_library(<room> SOURCES … USES … APART … | ALONE): a static library fmha_<room> with the alias fmha::<room>, grouped (fmha_group) unless ALONE.
function(fmha_library room)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;USES;PRIVATE_USES;APART" ${ARGN})
  add_library(fmha_${room} STATIC ${ARG_SOURCES})
  add_library(fmha::${room} ALIAS fmha_${room})
  target_link_libraries(fmha_${room} PUBLIC fmha_flags ${ARG_USES} PRIVATE ${ARG_PRIVATE_USES})
  fmha_use_precompiled(fmha_${room} fmha_precompiled)
  # The linker keeps the first of several copies of an inline function: a test program's own ones are not optimised.
  target_link_options(fmha_${room} INTERFACE
    $<BUILD_INTERFACE:$<$<BOOL:$<TARGET_PROPERTY:FMHA_LINKS_LIBRARIES_FIRST>>:$<TARGET_OBJECTS:fmha_${room}>>>)
  if(NOT ARG_ALONE)
    fmha_group(fmha_${room} ${ARG_APART})
  endif()
endfunction()
