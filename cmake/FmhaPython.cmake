# Target `wheel`: build/…/wheel/fmha-*.whl with the libraries and the command in it, for machines that have none of them. Needs
# setuptools and wheel beside the interpreter, no network.
add_custom_target(wheel
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR} -DPYTHON=${FMHA_NUMPY_PYTHON}
    -P ${PROJECT_SOURCE_DIR}/cmake/wheel.cmake
  VERBATIM)
add_dependencies(wheel fmha fmha_c fmha_c_reference)
get_property(plugins GLOBAL PROPERTY FMHA_HIP_PLUGINS)
foreach(name IN LISTS plugins)
  add_dependencies(wheel fmha_hip_${name})
endforeach()
