# cmake -DGIT=… -DSOURCE=… -DOUT=… -P commit.cmake: a source with the commit that is checked out in SOURCE.
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE found RESULT_VARIABLE failed
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(commit ${found})
  endif()
endif()
file(WRITE ${OUT} "#include \"harness/cli/store_option.hpp\"\n\nstd::string_view fmha::cli::built_commit() {\n    return \"${commit}\";\n}\n")
