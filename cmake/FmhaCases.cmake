# Case files in CTest: one test a file and tier, run by the command.

# Sets <out> to the labels that the case file <file> states. CMake runs again when the file changes.
function(fmha_labels_of file out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(labels)
  string(JSON count ERROR_VARIABLE none LENGTH "${text}" labels)
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(n RANGE ${last})
      string(JSON label GET "${text}" labels ${n})
      list(APPEND labels ${label})
    endforeach()
  endif()
  set(${out} ${labels} PARENT_SCOPE)
endfunction()

# fmha_case_file(<stem> TIERS smoke [full] [TIMEOUT seconds] [ARGS …])
# registers `fmha verify <stem> --tier <tier>` as the test case/<stem>:<tier>. Labels: the family (first part of the
# stem), the tier, and those of the file. A test of a higher tier runs what the lower one runs too. ARGS: further
# options of the command.
function(fmha_case_file stem)
  cmake_parse_arguments(ARG "" "TIMEOUT" "TIERS;ARGS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fmha_case_file(${stem}): unknown ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TIERS)
    message(FATAL_ERROR "fmha_case_file(${stem}): TIERS is missing")
  endif()
  fmha_labels_of(${CMAKE_CURRENT_SOURCE_DIR}/${stem}.json labels)
  string(REGEX REPLACE "/.*" "" family ${stem})
  string(REPLACE "/" "." flat ${stem})
  foreach(tier IN LISTS ARG_TIERS)
    set(timeout ${ARG_TIMEOUT})
    if(NOT timeout)
      if(tier STREQUAL "smoke")
        set(timeout 120)
      elseif(tier STREQUAL "full")
        set(timeout 600)
      elseif(tier STREQUAL "nightly")
        set(timeout 3600)
      else()
        message(FATAL_ERROR "fmha_case_file(${stem}): ${tier} is not a tier")
      endif()
    endif()
    set(name case/${stem}:${tier})
    add_test(NAME ${name}
      COMMAND fmha verify ${stem} --tier ${tier} ${ARG_ARGS} --junit ${PROJECT_BINARY_DIR}/junit/${flat}.${tier}.xml
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES
      LABELS "case;${family};${tier};${labels}"
      TIMEOUT ${timeout})
  endforeach()
  list(GET ARG_TIERS 0 tier)
  get_test_property(case/${stem}:${tier} LABELS registered)
  list(JOIN registered " " registered)
  set_property(GLOBAL APPEND PROPERTY FMHA_CASE_FILES "${stem} ${registered}")
endfunction()

# Writes the registered stems with the labels that CTest has, one a line, for the tests that compare them with the folder.
function(fmha_write_case_list path)
  get_property(lines GLOBAL PROPERTY FMHA_CASE_FILES)
  list(JOIN lines "\n" text)
  file(GENERATE OUTPUT ${path} CONTENT "${text}\n")
endfunction()
