#pragma once

#include "dispatcher/upstream/ck/backward.hpp"
#include "dispatcher/upstream/ck/cache.hpp"
#include "dispatcher/upstream/ck/forward.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

/// `each_member(structure, visit)` for upstream's structures, from the lists that declare them.
namespace fmha::ck {

#define FMHA_VISIT(type, name) visit(std::string(#name), self.name);
#define FMHA_MEMBERS(structure, list)                                                                        \
    template <class Self, class Visit>                                                                       \
    requires std::same_as<std::remove_const_t<Self>, structure>                                              \
    void each_member(Self& self, const Visit& visit) {                                                       \
        list(FMHA_VISIT)                                                                                     \
    }
FMHA_MEMBERS(fmha_fwd_args, FMHA_CK_FWD_ARGS)
FMHA_MEMBERS(fmha_fwd_traits, FMHA_CK_FWD_TRAITS)
FMHA_MEMBERS(fmha_fwd_splitkv_args, FMHA_CK_FWD_SPLITKV_ARGS)
FMHA_MEMBERS(fmha_fwd_splitkv_traits, FMHA_CK_FWD_SPLITKV_TRAITS)
FMHA_MEMBERS(fmha_fwd_pagedkv_args, FMHA_CK_FWD_PAGEDKV_ARGS)
FMHA_MEMBERS(fmha_fwd_pagedkv_traits, FMHA_CK_FWD_PAGEDKV_TRAITS)
FMHA_MEMBERS(fmha_fwd_appendkv_args, FMHA_CK_FWD_APPENDKV_ARGS)
FMHA_MEMBERS(fmha_fwd_appendkv_traits, FMHA_CK_FWD_APPENDKV_TRAITS)
FMHA_MEMBERS(fmha_batch_prefill_args, FMHA_CK_BATCH_PREFILL_ARGS)
FMHA_MEMBERS(fmha_bwd_args, FMHA_CK_BWD_ARGS)
FMHA_MEMBERS(fmha_bwd_traits, FMHA_CK_BWD_TRAITS)
template <class Self, class Visit>
requires std::same_as<std::remove_const_t<Self>, fmha_batch_prefill_traits>
void each_member(Self& self, const Visit& visit) {
    FMHA_CK_FWD_TRAITS(FMHA_VISIT)
    FMHA_CK_BATCH_PREFILL_TRAITS(FMHA_VISIT)
}
#undef FMHA_MEMBERS
#undef FMHA_VISIT

/// Members of traits and arguments; those of the traits are called `traits.…`.
template <class Theirs, class Visit>
void each_member_of_call(Theirs& call, const Visit& visit) {
    each_member(call.traits, [&](const std::string& name, auto& member) { visit("traits." + name, member); });
    each_member(call.args, visit);
}

} // namespace fmha::ck
