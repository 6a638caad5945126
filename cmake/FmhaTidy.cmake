# Target `tidy`: clang-tidy over every compiled source, as .clang-tidy says; warnings are errors.
find_program(FMHA_RUN_CLANG_TIDY NAMES run-clang-tidy-14 run-clang-tidy)
find_program(FMHA_CLANG_TIDY NAMES clang-tidy-14 clang-tidy)
if(FMHA_RUN_CLANG_TIDY AND FMHA_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${FMHA_RUN_CLANG_TIDY} -quiet -clang-tidy-binary ${FMHA_CLANG_TIDY} -p ${PROJECT_BINARY_DIR}
      "^${PROJECT_SOURCE_DIR}/(dispatcher|kernels|reference|harness|parity|reports|tests)/"
    USES_TERMINAL VERBATIM)
else()
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -E echo "tidy: clang-tidy and run-clang-tidy (Debian package clang-tidy) are not installed"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endif()
