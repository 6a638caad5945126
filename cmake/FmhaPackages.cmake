# What Debian packages hold, and the packages: `cmake --build BUILD --target packages` writes them to BUILD/packages.
#   fmha             the command, its man pages and completion, the documents, and the headers that kernels are compiled from
#   libfmha          both libraries, their headers and find_package(fmha) (component `library`)
#   libfmha-dev      static libraries and headers for C++ programs, find_package(fmha COMPONENTS cpp) (component `development`)
#   libfmha-devices  the plugins for GPUs (component `devices`), which alone need a vendor's runtime
#   python3-fmha     the Python package and fmha_utils
install(TARGETS fmha RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
foreach(folder dispatcher/types kernels/programs kernels/targets/hip)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fmha/include/${folder}
    COMPONENT command FILES_MATCHING PATTERN "*.hpp" PATTERN emulated EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/dispatcher/python/fmha DESTINATION lib/python3/dist-packages COMPONENT python
  PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/dispatcher/python/fmha_utils.py ${PROJECT_SOURCE_DIR}/dispatcher/python/fmha_dtype_contract.py
  DESTINATION lib/python3/dist-packages COMPONENT python)
foreach(component command devices development library python)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fmha-${component} COMPONENT ${component})
endforeach()

# The documents of this version, whose links among themselves hold there too.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fmha-command COMPONENT command)

# Man pages and completion say what --help says.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  set(pages ${PROJECT_BINARY_DIR}/help)
  add_custom_command(OUTPUT ${pages}/completions/fmha
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/help_pages.py $<TARGET_FILE:fmha> ${pages}
    DEPENDS fmha ${PROJECT_SOURCE_DIR}/cmake/help_pages.py
    VERBATIM)
  add_custom_target(help_pages ALL DEPENDS ${pages}/completions/fmha)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  install(FILES ${pages}/completions/fmha DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fmha)
set(CPACK_PACKAGE_CONTACT "The maintainers of fmha <fmha@localhost>")
# Each package has a summary of its own, the first line of its description.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
get_property(plugins GLOBAL PROPERTY FMHA_HIP_PLUGINS)
set(CPACK_COMPONENTS_ALL command development library python)
if(plugins)
  list(APPEND CPACK_COMPONENTS_ALL devices)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME fmha)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "libfmha-devices, python3-fmha")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libfmha)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libfmha-devices)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfmha-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmha (= ${PROJECT_VERSION}), libfmt-dev, nlohmann-json3-dev, libssl-dev")
set(CPACK_DEBIAN_DEVICES_PACKAGE_NAME libfmha-devices)
set(CPACK_DEBIAN_DEVICES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-fmha)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy, libfmha (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS fmha)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/postinst;${PROJECT_SOURCE_DIR}/cmake/debian/prerm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(package_about "\nPart of fmha: ${PROJECT_DESCRIPTION}.")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "Command that plans, runs, judges, builds and times attention kernels${package_about}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and static libraries of the dispatcher and the host kernels for C++${package_about}")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "C interface of the kernels and of their reference${package_about}")
set(CPACK_COMPONENT_DEVICES_DESCRIPTION "Plugins that run the kernels on GPUs${package_about}")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Attention on NumPy arrays and device tensors, and the dispatcher's Python layer${package_about}")
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
include(CPack)

add_custom_target(packages
  COMMAND ${CMAKE_CPACK_COMMAND} --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
  VERBATIM)
add_dependencies(packages fmha fmha_c fmha_c_reference ${cpp_targets})
if(TARGET help_pages)
  add_dependencies(packages help_pages)
endif()
foreach(name IN LISTS plugins)
  add_dependencies(packages fmha_hip_${name})
endforeach()
