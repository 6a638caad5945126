# What a user of the C interface gets: libfmha.so, fmha/fmha.h and find_package(fmha). The command runs from the build tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(fmha_c PROPERTIES EXPORT_NAME c)
target_include_directories(fmha_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS fmha_c EXPORT fmha-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/dispatcher/include/fmha/fmha.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fmha COMPONENT library)
install(EXPORT fmha-targets NAMESPACE fmha:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fmha COMPONENT library)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/fmha-config-version.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/fmha-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/fmha-targets.cmake)\n")
install(FILES ${PROJECT_BINARY_DIR}/fmha-config.cmake ${PROJECT_BINARY_DIR}/fmha-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fmha COMPONENT library)
