// The forward kernels of a checkout on a call that `fmha compare` hands over. parity/side_by_side/checkout/build compiles this with the
// checkout's headers and links it with the kernels that the checkout has built.

#include "dispatcher/upstream/ck/forward.hpp"
#include "dispatcher/upstream/ck/cache.hpp"
#include "parity/side_by_side/checkout/program.hpp"

namespace {

using namespace fmha;
using namespace fmha::parity;

float launch(const CallText& call, const CallMemory& memory) {
    const auto config = once<ck_tile::stream_config>();
    switch (call.problem().api_family) {
    case ApiFamily::fwd: {
        auto theirs = theirs_of<FwdArgs>(call, memory);
        return ::fmha_fwd(theirs.traits, theirs.args, config);
    }
#ifdef FMHA_CK_SPLITKV
    case ApiFamily::fwd_splitkv: {
        auto theirs = theirs_of<SplitKvArgs>(call, memory);
        return ::fmha_fwd_splitkv(theirs.traits, theirs.args, config);
    }
#endif
#ifdef FMHA_CK_PAGEDKV
    case ApiFamily::fwd_pagedkv: {
        auto theirs = theirs_of<PagedKvArgs>(call, memory);
        return ::fmha_fwd_pagedkv(theirs.traits, theirs.args, config);
    }
#endif
#ifdef FMHA_CK_APPENDKV
    case ApiFamily::fwd_appendkv: {
        auto theirs = theirs_of<AppendKvArgs>(call, memory);
        return ::fmha_fwd_appendkv(theirs.traits, theirs.args, config);
    }
#endif
#ifdef FMHA_CK_BATCH_PREFILL
    case ApiFamily::batch_prefill: {
        auto theirs = theirs_of<BatchPrefillArgs>(call, memory);
        return ::fmha_batch_prefill(theirs.traits, theirs.args, config);
    }
#endif
    default:
        throw UnsupportedInvocation("the checkout was built without " +
                                    std::string(to_string(call.problem().api_family)) +
                                    ": FMHA_FWD_ENABLE_APIS of its configuration names its families");
    }
}

} // namespace

int main(int count, char** words) {
    return make_call(count, words, launch);
}
