#pragma once

// Before the list of programs, because it comes of a list itself.
#include "dispatcher/types/args.hpp"

/// Every program. That of family `fwd` is in `fmha_fwd.hpp`, and so on.
// clang-format off
#define FMHA_PROGRAM_FILE(name, ...) FMHA_QUOTED(kernels/programs/fmha_##name.hpp),
// clang-format on
#define FMHA_FILES FMHA_KERNEL_FAMILIES(FMHA_PROGRAM_FILE)
#include "dispatcher/types/include_files.hpp"
#undef FMHA_FILES
#undef FMHA_PROGRAM_FILE
