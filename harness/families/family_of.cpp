#include "dispatcher/types/error.hpp"
#include "harness/families/all_families.hpp"

#include <fmt/format.h>

namespace fmha::harness {

const Family& family_of(ApiFamily api) {
    switch (api) {
    case ApiFamily::fwd:
        return fwd_family();
    case ApiFamily::fwd_splitkv:
        return splitkv_family();
    case ApiFamily::fwd_appendkv:
        return appendkv_family();
    case ApiFamily::fwd_pagedkv:
        return pagedkv_family();
    case ApiFamily::bwd:
        return bwd_family();
    case ApiFamily::batch_prefill:
        return prefill_family();
    }
    throw InputError(fmt::format("{} is not an API family", static_cast<int>(api)));
}

} // namespace fmha::harness
