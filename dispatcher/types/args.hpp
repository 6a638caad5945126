#pragma once

#include "dispatcher/types/args/parts.hpp"
#include "dispatcher/types/family_table.hpp"

/// The arguments of every API. Those of API `fwd` are in `args/fwd.hpp`, and so on: a composition of parts, of which a function takes those
/// that it reads.
// clang-format off
#define FMHA_ARGS_FILE(name, ...) FMHA_QUOTED(dispatcher/types/args/name.hpp),
// clang-format on
#define FMHA_FILES FMHA_API_FAMILIES(FMHA_ARGS_FILE)
#include "dispatcher/types/include_files.hpp"
#undef FMHA_FILES
#undef FMHA_ARGS_FILE
