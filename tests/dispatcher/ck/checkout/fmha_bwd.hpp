#pragma once
#include "bias.hpp"
#include "dispatcher/upstream/ck/members.hpp"
#include "mask.hpp"

#include <cstdint>
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
