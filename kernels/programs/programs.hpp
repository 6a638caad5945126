#pragma once

/// Every program.
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/programs/fmha_fwd_appendkv.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
