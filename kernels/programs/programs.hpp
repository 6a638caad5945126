#pragma once

/// Every program.
#include "kernels/programs/fmha_batch_prefill.hpp"
#include "kernels/programs/fmha_bwd_convert_dq.hpp"
#include "kernels/programs/fmha_bwd_dot_do_o.hpp"
#include "kernels/programs/fmha_bwd_dq_dk_dv.hpp"
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/programs/fmha_fwd_appendkv.hpp"
#include "kernels/programs/fmha_fwd_pagedkv.hpp"
#include "kernels/programs/fmha_fwd_splitkv.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
