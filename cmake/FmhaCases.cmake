# Case files in CTest: one test a file and tier, run by the command.

# fmha_case_file(<stem> TIERS smoke [full] [TIMEOUT seconds] [LABELS …] [ARGS …])
# registers `fmha verify <stem> --tier <tier>` as the test case/<stem>:<tier>. Labels: the family (first part of the
# stem), the tier, and the features given. A test of a higher tier runs what the lower one runs too. ARGS: further
# options of the command.
function(fmha_case_file stem)
  cmake_parse_arguments(ARG "" "TIMEOUT" "TIERS;LABELS;ARGS" ${ARGN})
  if(NOT ARG_TIERS)
    message(FATAL_ERROR "fmha_case_file(${stem}): TIERS is missing")
  endif()
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
      LABELS "case;${family};${tier};${ARG_LABELS}"
      TIMEOUT ${timeout})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY FMHA_CASE_FILES ${stem})
endfunction()

# Writes the registered stems, one a line, for the test that compares them with the folder.
function(fmha_write_case_list path)
  get_property(stems GLOBAL PROPERTY FMHA_CASE_FILES)
  list(JOIN stems "\n" text)
  file(GENERATE OUTPUT ${path} CONTENT "${text}\n")
endfunction()
