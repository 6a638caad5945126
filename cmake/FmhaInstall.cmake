# Component `library` is for users of the C interface: libfmha.so, libfmha_reference.so, their headers and find_package(fmha).
# Component `devices` has the plugins for GPUs, which are linked with the runtimes of their vendors. Component `portable` is the
# command and libfmha.so with the plugins and libraries that they need, for a machine that has none of them (a GPU machine, say),
# and the headers that kernels are compiled from:
#   cmake --install build/host --component portable --prefix DIR --strip
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(fmha_c PROPERTIES EXPORT_NAME c)
target_include_directories(fmha_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(fmha_c_reference PROPERTIES EXPORT_NAME reference)
target_include_directories(fmha_c_reference INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS fmha_c fmha_c_reference EXPORT fmha-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
# The header of libdispatcher_fmha_lib.so stays with that library, which is a part of builds only.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/dispatcher/include/fmha DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  PATTERN dispatcher.h EXCLUDE)
install(EXPORT fmha-targets NAMESPACE fmha:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fmha COMPONENT library)

# The same for those who build without CMake: pkg-config fmha, pkg-config fmha_reference.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
file(RELATIVE_PATH libdir_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH includedir_from_prefix ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(library fmha fmha_reference)
  if(library STREQUAL "fmha")
    set(description "C interface of fused multi-head attention kernels")
  else()
    set(description "Reference of fused multi-head attention in binary64")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()

# Component `development` is for C++ programs that declare, register, plan and run kernels themselves: find_package(fmha COMPONENTS cpp)
# gives them fmha::cpp, static libraries and the headers of both rooms under include/fmha/cpp.
add_library(fmha_cpp INTERFACE)
set_target_properties(fmha_cpp PROPERTIES EXPORT_NAME cpp)
set(cpp_libraries dispatcher catalog arch types system target_host target_launch target_numerics)
target_include_directories(fmha_cpp INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/fmha/cpp>)
target_compile_features(fmha_cpp INTERFACE cxx_std_20)
set(cpp_targets fmha_cpp fmha_flags)
foreach(name IN LISTS cpp_libraries)
  target_link_libraries(fmha_cpp INTERFACE fmha_${name})
  list(APPEND cpp_targets fmha_${name})
endforeach()
install(TARGETS ${cpp_targets} EXPORT fmha-cpp-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/fmha COMPONENT development EXCLUDE_FROM_ALL)
install(EXPORT fmha-cpp-targets NAMESPACE fmha:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fmha COMPONENT development EXCLUDE_FROM_ALL)
foreach(folder dispatcher kernels)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fmha/cpp COMPONENT development EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN "*.hpp" PATTERN examples EXCLUDE PATTERN c EXCLUDE PATTERN c_dispatcher EXCLUDE PATTERN python EXCLUDE PATTERN hip EXCLUDE PATTERN generator EXCLUDE
    PATTERN loader EXCLUDE PATTERN query EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/dispatcher/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fmha-development COMPONENT development EXCLUDE_FROM_ALL
  REGEX "examples/CMakeLists.txt$" EXCLUDE PATTERN __pycache__ EXCLUDE)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/fmha-config-version.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/fmha-config.cmake [[
include(${CMAKE_CURRENT_LIST_DIR}/fmha-targets.cmake)
foreach(component IN LISTS fmha_FIND_COMPONENTS)
  if(fmha_FIND_REQUIRED_${component} AND NOT component STREQUAL "cpp")
    set(fmha_FOUND FALSE)
    set(fmha_NOT_FOUND_MESSAGE "component ${component} is not known; allowed: cpp")
  endif()
endforeach()
if("cpp" IN_LIST fmha_FIND_COMPONENTS)
  include(CMakeFindDependencyMacro)
  foreach(package fmt nlohmann_json OpenSSL Threads)
    find_dependency(${package})
  endforeach()
  include(${CMAKE_CURRENT_LIST_DIR}/fmha-cpp-targets.cmake OPTIONAL RESULT_VARIABLE fmha_cpp_FOUND)
  if(NOT fmha_cpp_FOUND)
    set(fmha_FOUND FALSE)
    set(fmha_NOT_FOUND_MESSAGE "component cpp is not installed: cmake --install BUILD --component development")
  endif()
endif()
]])
install(FILES ${PROJECT_BINARY_DIR}/fmha-config.cmake ${PROJECT_BINARY_DIR}/fmha-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fmha COMPONENT library)

set_target_properties(fmha PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS fmha RUNTIME_DEPENDENCY_SET fmha_runtime
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT portable EXCLUDE_FROM_ALL)
# The C interface beside them, for programs there that hold device pointers (tests/bench/torch_sdpa.py).
set_target_properties(fmha_c fmha_c_reference PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS fmha_c fmha_c_reference RUNTIME_DEPENDENCY_SET fmha_runtime
  LIBRARY DESTINATION lib COMPONENT portable EXCLUDE_FROM_ALL)
# Every system has its own C and C++ runtime, at least as new as the one that this was linked with.
install(RUNTIME_DEPENDENCY_SET fmha_runtime
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|asan|ubsan|tsan)\\.so"
  LIBRARY DESTINATION lib COMPONENT portable EXCLUDE_FROM_ALL)
get_property(plugins GLOBAL PROPERTY FMHA_HIP_PLUGINS)
foreach(name IN LISTS plugins)
  install(TARGETS fmha_hip_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fmha COMPONENT devices)
  install(TARGETS fmha_hip_${name} LIBRARY DESTINATION lib COMPONENT portable EXCLUDE_FROM_ALL)
endforeach()
foreach(folder dispatcher/types kernels/programs kernels/targets/hip)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fmha/include/${folder}
    COMPONENT portable EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.hpp" PATTERN emulated EXCLUDE)
endforeach()
