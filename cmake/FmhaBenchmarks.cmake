# The targets that upstream's tile engine has: kernels of a sweep configuration, timed. FMHA_BENCHMARK_ARCH is a name, never a truth value.
#   cmake -DFMHA_BENCHMARK_ARCH=… -P FmhaBenchmarks.cmake only checks the name.
if(NOT DEFINED FMHA_BENCHMARK_ARCH)
  set(FMHA_BENCHMARK_ARCH gfx950 CACHE STRING "Architecture whose kernels the targets benchmark_fmha… time, by name")
endif()
if(NOT FMHA_BENCHMARK_ARCH MATCHES "^(gfx[0-9a-f]+|sm_[0-9]+)$")
  message(FATAL_ERROR "FMHA_BENCHMARK_ARCH is \"${FMHA_BENCHMARK_ARCH}\"; allowed: the name of an architecture, such as gfx950 or sm_90")
endif()
if(CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

set(FMHA_BENCHMARK_RULES "" CACHE STRING "List of kernels that the targets benchmark_fmha… time (default: claim on gfx9, else house)")
set(FMHA_BENCHMARK_PROBLEMS "2,8,1024,128" CACHE STRING "Problems of the targets benchmark_fmha…, as fmha bench --problems has them")
set(FMHA_BENCHMARK_OPTIONS "" CACHE STRING "Further options of fmha bench for these targets, a list")

# fmha_benchmark_command(<variable> <sweep configuration> <architecture> <problems> <file of results>): the command line that times it.
function(fmha_benchmark_command variable sweep arch problems results)
  set(rules ${FMHA_BENCHMARK_RULES})
  # Upstream's lists for RDNA have no valid kernel at head dimension 128, and there is none for Hopper.
  if(NOT rules AND arch MATCHES "^gfx9")
    set(rules claim)
  elseif(NOT rules)
    set(rules house)
  endif()
  set(${variable} fmha bench --config ${PROJECT_SOURCE_DIR}/cases/sweeps/${sweep}.json --arch ${arch} --rules ${rules}
    --problems "${problems}" --engine-json ${results} PARENT_SCOPE)
endfunction()

# fmha_timing_target(<target> <sweep configuration>…): each writes fmha_<configuration>_results.json into the build folder.
function(fmha_timing_target target)
  set(commands)
  foreach(sweep IN LISTS ARGN)
    fmha_benchmark_command(command ${sweep} ${FMHA_BENCHMARK_ARCH} "${FMHA_BENCHMARK_PROBLEMS}" ${PROJECT_BINARY_DIR}/fmha_${sweep}_results.json)
    list(APPEND commands COMMAND ${command} ${FMHA_BENCHMARK_OPTIONS})
  endforeach()
  add_custom_target(${target} ${commands} USES_TERMINAL VERBATIM
    COMMENT "Timing kernels of ${ARGN} for ${FMHA_BENCHMARK_ARCH}")
endfunction()

fmha_timing_target(benchmark_fmha fwd)
fmha_timing_target(benchmark_fmha_ci fwd_ci)
set(variants splitkv pagedkv appendkv batch_prefill bwd)
foreach(variant IN LISTS variants)
  fmha_timing_target(benchmark_fmha_${variant} ${variant})
endforeach()
fmha_timing_target(benchmark_fmha_all fwd ${variants})
