#pragma once
#include "bias.hpp"
#include "dispatcher/upstream/ck/members.hpp"
#include "mask.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

using ck_tile::index_t;
using seed_and_offset =
    std::variant<std::pair<std::uint64_t, std::uint64_t>, std::pair<const void*, const void*>>;

#define PLAIN(type, name) type name;
struct FmhaMasks {};
struct fmha_bwd_args {
    FMHA_CK_BWD_ARGS(PLAIN)
};
struct fmha_bwd_traits {
    FMHA_CK_BWD_TRAITS(PLAIN)
};
#undef PLAIN

struct fmha_bwd_launcher {
    explicit fmha_bwd_launcher(const fmha_bwd_traits&);
    std::function<float(fmha_bwd_args, const ck_tile::stream_config&)> run;
    std::size_t workspace_size = 0;
#ifdef FAULT_AT_ONCE // as in releases before the asynchronous one
    std::function<void(void*)> prepare_workspace;
#else
    void prepare_workspace_async(void* workspace, const int* seqstart_q, const int* seqstart_k,
                                 const ck_tile::stream_config&,
                                 const std::function<std::shared_ptr<void>(std::size_t)>& pinned);
#endif
};
