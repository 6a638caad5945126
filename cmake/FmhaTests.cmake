include(GoogleTest)

# Test programs need their own precompiled header: they are compiled as executables, and without optimisation, because compiling takes longer than
# running them. Those that go over tensors by code of their own, such as a tile program that is instantiated with mistakes, have -O1.
set(fmha_test_options $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
set(fmha_computing_test_options $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
foreach(computing "" _computing)
  add_executable(fmha_precompiled${computing}_tests)
  fmha_precompile(fmha_precompiled${computing}_tests <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(fmha_precompiled${computing}_tests PRIVATE ${fmha${computing}_test_options})
  target_link_libraries(fmha_precompiled${computing}_tests PRIVATE GTest::gmock)
endforeach()

# fmha_test_program(<target> [COMPUTES]): an executable of tests is compiled as cheaply as they allow. The objects of the project's libraries
# are linked before its own, so that both use the libraries' copies of templates, those of the standard library among them.
function(fmha_test_program target)
  cmake_parse_arguments(ARG "COMPUTES" "" "" ${ARGN})
  if(ARG_COMPUTES)
    set(computing _computing)
  endif()
  target_compile_options(${target} PRIVATE ${fmha${computing}_test_options})
  # GoogleTest's options belong to the precompiled header, whether the target links GoogleTest or not.
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  fmha_use_precompiled(${target} fmha_precompiled${computing}_tests)
  set_target_properties(${target} PROPERTIES FMHA_LINKS_LIBRARIES_FIRST ON)
endfunction()

# fmha_test(<name> SOURCES … USES … [APART …] [LABELS …] [WHERE "regex label…"…] [TIMEOUT seconds] [COMPUTES]): a GoogleTest program
# whose tests appear in CTest. Its sources are grouped as those of a library are (fmha_group). LABELS are those of all its tests, WHERE adds labels to tests
# whose names match. Target tests_<label> builds the programs whose tests `ctest -L <label>` runs.
function(fmha_test name)
  cmake_parse_arguments(ARG "COMPUTES" "TIMEOUT" "SOURCES;USES;APART;LABELS;WHERE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fmha_flags ${ARG_USES} GTest::gmock_main)
  set(computes)
  if(ARG_COMPUTES)
    set(computes COMPUTES)
  endif()
  fmha_test_program(${name} ${computes})
  fmha_group(${name} ${ARG_APART})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  # Discovery would keep the first of several labels only, so CTest sets them when it has the list of tests.
  set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  list(JOIN ARG_LABELS " " of_all)
  set(by_name "")
  foreach(where IN LISTS ARG_WHERE)
    string(REPLACE " " ";" more ${where})
    list(POP_FRONT more regex)
    list(APPEND ARG_LABELS ${more})
    list(JOIN more " " added)
    string(APPEND by_name "  if(test MATCHES \"${regex}\")\n    list(APPEND labels ${added})\n  endif()\n")
  endforeach()
  file(WRITE ${labels}
    "foreach(test IN LISTS ${name}_TESTS)\n"
    "  set(labels unit ${of_all})\n"
    "${by_name}"
    "  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"\${labels}\")\n"
    "endforeach()\n")
  list(REMOVE_DUPLICATES ARG_LABELS)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()

# fmha_benchmark(<name> SOURCES … USES … [COMPUTES]): a Google Benchmark program under bin/, run by hand or by the bench preset. What it measures
# lies in libraries, unless it COMPUTES something of its own.
function(fmha_benchmark name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fmha_flags ${ARG_USES} benchmark::benchmark)
  if(ARG_COMPUTES)
    target_compile_options(${name} PRIVATE -O3)
  else()
    fmha_test_program(${name} COMPUTES)
  endif()
endfunction()
