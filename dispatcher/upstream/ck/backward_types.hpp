#pragma once

#include "dispatcher/upstream/ck/members.hpp"
#include "dispatcher/upstream/ck/shared_types.hpp"

/// Structures of backward (fmha_bwd.hpp of a checkout).

#if FMHA_CK_CHECKOUT
#ifdef FMHA_CK_FORWARD_OF_CHECKOUT
#error                                                                                                       \
    "fmha_fwd.hpp and fmha_bwd.hpp of a checkout cannot be in one source, since both define FmhaMasks: include forward.hpp and backward.hpp of the adapter in two sources"
#endif
#define FMHA_CK_BACKWARD_OF_CHECKOUT
#include <fmha_bwd.hpp>
#endif

namespace fmha::ck {

#if FMHA_CK_CHECKOUT
using ::fmha_bwd_args;
using ::fmha_bwd_traits;
#else
struct fmha_bwd_args {
    FMHA_CK_BWD_ARGS(FMHA_CK_DECLARE)
};
struct fmha_bwd_traits {
    FMHA_CK_BWD_TRAITS(FMHA_CK_DECLARE)
};
#endif

FMHA_CK_CHECK(fmha_bwd_args, FMHA_CK_BWD_ARGS, 0)
FMHA_CK_CHECK(fmha_bwd_traits, FMHA_CK_BWD_TRAITS, 0)

} // namespace fmha::ck
