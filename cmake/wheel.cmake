# The wheel of BUILD, from a copy of the package, so that nothing is written into the source tree.
set(folder ${BUILD}/wheel)
if(NOT PYTHON)
  message(FATAL_ERROR "no Python interpreter with NumPy was found")
endif()
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder}/source/dispatcher)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --component portable --prefix ${folder}/bundle --strip
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(COPY ${SOURCE}/CMakeLists.txt DESTINATION ${folder}/source)
file(COPY ${SOURCE}/dispatcher/python DESTINATION ${folder}/source/dispatcher PATTERN __pycache__ EXCLUDE)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env FMHA_BUNDLE=${folder}/bundle ${PYTHON} -m pip wheel --quiet --no-build-isolation --no-deps --no-index
    --wheel-dir ${folder} ${folder}/source/dispatcher/python
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${folder}/source ${folder}/bundle)
