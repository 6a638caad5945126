# Target `tidy`: clang-tidy over every compiled source, as .clang-tidy says; warnings are errors. It cannot read GCC's
# precompiled headers, so it gets a compile database without them, which also shows a source that lacks an include.
find_program(FMHA_RUN_CLANG_TIDY NAMES run-clang-tidy-14 run-clang-tidy)
find_program(FMHA_CLANG_TIDY NAMES clang-tidy-14 clang-tidy)
if(FMHA_UNITY)
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -E echo "tidy: this build compiles several sources as one; use the preset develop"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
elseif(FMHA_RUN_CLANG_TIDY AND FMHA_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_BINARY_DIR} -DTO=${PROJECT_BINARY_DIR}/tidy
      -P ${PROJECT_SOURCE_DIR}/cmake/PlainDatabase.cmake
    COMMAND ${FMHA_RUN_CLANG_TIDY} -quiet -clang-tidy-binary ${FMHA_CLANG_TIDY} -p ${PROJECT_BINARY_DIR}/tidy
      "^${PROJECT_SOURCE_DIR}/(dispatcher|kernels|reference|harness|parity|reports|tests)/"
    USES_TERMINAL VERBATIM)
else()
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -E echo "tidy: clang-tidy and run-clang-tidy (Debian package clang-tidy) are not installed"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endif()
