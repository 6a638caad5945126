// The blocks of a launch, one after another as their comments say, and how many rows each has.

#include "kernels/programs/programs.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace fmha::test {
namespace {

using kernels::Program;

constexpr std::int64_t batch = 2, heads_k = 3;
/// Query heads: as many a KV head as half a tile of rows has, as a tile has, and more; fewer and more than a block of combine.
constexpr std::int64_t numbers_of_heads[] = {6, 12, 15};

KernelConfig config_of(KernelFamily family, Mode mode) {
    KernelConfig config;
    config.signature.family = family;
    config.signature.mode = mode;
    config.algorithm.tile = {.m0 = 4, .n0 = 3, .n1 = 5};
    config.algorithm.pad.s = true;
    return config;
}

template <class Args>
Args args_of(Mode mode, std::int64_t rows, std::int64_t keys, std::int64_t heads_q = 6) {
    Args args;
    args.shape = {mode, batch, heads_q, heads_k, rows, keys, 0, 0, 7, 11};
    // In a group the largest length says how many tiles an entry may have, and seqlen_q is none (N-2).
    if (mode == Mode::group) {
        args.shape.max_seqlen_q = rows;
        args.shape.seqlen_q = 1000;
    }
    return args;
}

std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
    std::int64_t count = 0;
    while (count * tile < extent) ++count;
    return count;
}

/// The items of a grid as tuples.
template <class Grid, class ToTuple>
auto items(const Grid& grid, ToTuple to_tuple) {
    std::vector<decltype(to_tuple(grid[0]))> all;
    for (std::int64_t n = 0; n < grid.size() && n < 10'000; ++n) all.push_back(to_tuple(grid[n]));
    return all;
}

/// One row an entry: the heads of a KV head share a block, where the family reads a cache.
constexpr bool packs_heads(KernelFamily family, std::int64_t rows) {
    return rows == 1 && (family == KernelFamily::fwd_pagedkv || family == KernelFamily::fwd_splitkv ||
                         family == KernelFamily::batch_prefill);
}

using Four = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

template <KernelFamily family>
bool forward_grid(Mode mode, std::int64_t rows, std::int64_t heads_q) {
    using P = Program<family>;
    const auto args = args_of<typename P::Args>(mode, rows, 8, heads_q);
    std::vector<Four> want;
    const bool packs = packs_heads(family, rows);
    const std::int64_t q_tiles = packs ? tiles(heads_q / heads_k, 4) : tiles(rows, 4);
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < (packs ? heads_k : heads_q); ++h)
            for (std::int64_t q = q_tiles - 1; q >= 0; --q)
                for (std::int64_t v = 0; v < tiles(11, 5); ++v) want.emplace_back(b, h, q, v);
    return items(typename P::Grid(config_of(family, mode), args),
                 [](const auto& item) { return Four(item.b, item.h, item.q_tile, item.v_tile); }) == want;
}

bool split_grid(Mode mode, std::int64_t rows, std::int64_t heads_q) {
    using P = Program<KernelFamily::fwd_splitkv>;
    auto args = args_of<SplitKvArgs>(mode, rows, 8, heads_q);
    args.partials.num_splits = 3;
    using Five = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    std::vector<Five> want;
    const bool packs = packs_heads(KernelFamily::fwd_splitkv, rows);
    const std::int64_t q_tiles = packs ? tiles(heads_q / heads_k, 4) : tiles(rows, 4);
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < (packs ? heads_k : heads_q); ++h)
            for (std::int64_t s = 0; s < 3; ++s)
                for (std::int64_t q = q_tiles - 1; q >= 0; --q)
                    for (std::int64_t v = 0; v < tiles(11, 5); ++v) want.emplace_back(b, h, s, q, v);
    return items(P::Grid(config_of(KernelFamily::fwd_splitkv, mode), args), [](const auto& item) {
               return Five(item.b, item.h, item.split, item.q_tile, item.v_tile);
           }) == want;
}

bool combine_grid(Mode mode, std::int64_t rows, std::int64_t heads_q) {
    using P = Program<KernelFamily::fwd_splitkv_combine>;
    const auto args = args_of<SplitKvArgs>(mode, rows, 8, heads_q);
    std::vector<Four> want;
    const std::int64_t heads = rows == 1 ? kernels::combine_rows : 1;
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads_q; h += heads)
            for (std::int64_t q = 0; q < tiles(rows, kernels::combine_rows); ++q)
                for (std::int64_t v = 0; v < tiles(11, 5); ++v) want.emplace_back(b, h, q, v);
    return items(P::Grid(config_of(KernelFamily::fwd_splitkv_combine, mode), args),
                 [](const auto& item) { return Four(item.b, item.h, item.q_tile, item.v_tile); }) == want;
}

template <KernelFamily family>
bool backward_grid(Mode mode, std::int64_t rows, bool sink) {
    using P = Program<family>;
    auto args = args_of<BwdArgs>(mode, rows, 8);
    constexpr std::int64_t heads_q = 6;
    float d_sink[heads_q] = {};
    args.d_sink = sink ? d_sink : nullptr;
    using Three = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    std::vector<Three> want;
    if (family == KernelFamily::bwd_dot_do_o && sink)
        for (std::int64_t h = 0; h < heads_q; ++h) want.emplace_back(0, h, -1);
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads_q; ++h)
            for (std::int64_t q = 0; q < tiles(rows, 4); ++q) want.emplace_back(b, h, q);
    return items(typename P::Grid(config_of(family, mode), args),
                 [](const auto& item) { return Three(item.b, item.h, item.q_tile); }) == want;
}

bool append_grid(std::int64_t rows, std::int64_t keys, bool rotates, bool queries) {
    using P = Program<KernelFamily::fwd_appendkv>;
    auto args = args_of<AppendKvArgs>(Mode::batch, rows, 100);
    const std::int64_t heads_q = args.shape.nhead_q;
    args.seqlen_knew = keys;
    float q = 0.0F;
    args.q.data = queries ? &q : nullptr;
    auto config = config_of(KernelFamily::fwd_appendkv, Mode::batch);
    config.signature.rope = rotates ? Rope::interleaved : Rope::none;
    std::vector<Four> want;
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads_q; ++h)
            for (std::int64_t t = 0; rotates && queries && t < tiles(rows, 4); ++t)
                want.emplace_back(b, h, t, 0);
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads_k; ++h)
            for (std::int64_t t = 0; t < tiles(keys, 3); ++t) want.emplace_back(b, h, t, 1);
    return items(P::Grid(config, args),
                 [](const auto& item) { return Four(item.b, item.h, item.tile, item.keys); }) == want;
}

/// Rows of every block of a launch: those of its tile that exist.
template <KernelFamily family>
bool rows_of_blocks(Mode mode, std::int64_t length, std::int64_t heads_q) {
    using P = Program<family>;
    auto args = args_of<typename P::Args>(mode, length, 8, heads_q);
    const std::int32_t starts[] = {0, static_cast<std::int32_t>(length),
                                   static_cast<std::int32_t>(length + 3)};
    const std::int32_t key_starts[] = {0, 8, 16};
    if (mode == Mode::group) args.lengths.seqstart_q = starts, args.lengths.seqstart_k = key_starts;
    const auto config = config_of(family, mode);
    const typename P::Grid grid(config, args);
    for (std::int64_t n = 0; n < grid.size(); ++n) {
        const auto item = grid[n];
        std::int64_t queries = mode == Mode::group && item.b == 1 ? 3 : length, m0 = 4,
                     first = item.q_tile * m0;
        if (family == KernelFamily::fwd_splitkv_combine) {
            m0 = kernels::combine_rows;
            first = item.q_tile * m0;
            if (length == 1) { // rows are heads
                queries *= std::min<std::int64_t>(kernels::combine_rows, heads_q - item.h);
                m0 = 1000;
            }
        } else if (packs_heads(family, length)) {
            queries *= heads_q / heads_k;
        } else if (first < 0) { // the sum of a head
            queries = 1000, first = 0;
        }
        if (P::rows(config, args, item) != std::min(queries - first, m0)) return false;
    }
    return true;
}

struct Schedule {
    Mode mode;
    bool deterministic, direct, masked, reduced;
    std::int64_t keys, share;
};

bool jobs_of(const Schedule& schedule) {
    auto config = config_of(KernelFamily::bwd_dq_dk_dv, schedule.mode);
    config.signature.is_deterministic = schedule.deterministic;
    config.algorithm.max_seq_len_q = schedule.direct ? 1 : 0;
    auto args = args_of<BwdArgs>(schedule.mode, 8, schedule.keys);
    args.reduce_dk_dv = schedule.reduced;
    const std::int64_t heads = schedule.reduced ? args.shape.nhead_k : args.shape.nhead_q;
    const std::int64_t queries = args.shape.nhead_q / heads; // of the heads that have dK and dV of their own
    args.mask.type = schedule.masked ? MaskType::top_left : MaskType::no_mask;
    std::int32_t workspace[4] = {1, static_cast<std::int32_t>(schedule.share), 0, 0};
    args.workspace = workspace;

    const bool group = schedule.mode == Mode::group;
    const bool own = schedule.deterministic && !group && !schedule.direct;
    const std::int64_t tiles_of_head = tiles(schedule.keys, 3);
    const std::int64_t places = schedule.direct || (group && tiles_of_head == 0) ? 1 : tiles_of_head;
    const auto jobs = kernels::KeyJobs::of(config, args);
    if (jobs.size() != batch * heads * places) return false;
    if (Program<KernelFamily::bwd_dq_dk_dv>::Grid(config, args).size() != jobs.size()) return false;
    const std::int64_t share = jobs.share(args);
    if (share != (own ? std::max<std::int64_t>(1, schedule.share) : 1)) return false;
    for (std::int64_t n = 0; n < jobs.size(); ++n) {
        const std::int64_t first = n / share * share, place = n % places, head = n / places;
        const kernels::KeyJob job = jobs(n, first, share);
        if (job.b != head / heads || job.h != head % heads * queries || job.heads != queries) return false;
        // One entry of a group may have more tiles than blocks; with direct dQ a block has all of its head.
        if (job.stride != (schedule.direct ? 1 : group ? places : 0)) return false;
        const std::int64_t turn =
            place % 2 == 0 ? place / 2 : places - 1 - place / 2; // 0, J − 1, 1, J − 2, …
        if (job.tile != (own && schedule.masked ? turn : place)) return false;
        // A worker's split of a head is ⌈(its first job there mod J) / q⌉.
        std::int64_t begins = std::max(first, head * places) - head * places, split = 0;
        while (own && split * share < begins) ++split;
        if (job.split != split) return false;
    }
    return true;
}

/// Programs without products take tiles of a tensor of queries or of one of outputs, which have different channels.
bool row_tiles_are_right() {
    KernelConfig config = config_of(KernelFamily::bwd_dot_do_o, Mode::batch);
    config.signature.hdim_q = 7;
    config.signature.hdim_v = 11;
    const auto has = [](const kernels::RowTile& tile, int channels) {
        return tile.rows == 4 && tile.columns == channels;
    };
    return has(Program<KernelFamily::bwd_dot_do_o>::row_tile(config), 11) &&
           has(Program<KernelFamily::bwd_convert_dq>::row_tile(config), 7);
}

} // namespace

bool grids_are_right() {
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const std::int64_t rows : {1, 2, 4, 8, 9, 13}) {
            for (const std::int64_t heads : numbers_of_heads) {
                if (!forward_grid<KernelFamily::fwd>(mode, rows, heads)) return false;
                if (!forward_grid<KernelFamily::fwd_pagedkv>(mode, rows, heads)) return false;
                if (!forward_grid<KernelFamily::batch_prefill>(mode, rows, heads)) return false;
                if (!split_grid(mode, rows, heads) || !combine_grid(mode, rows, heads)) return false;
            }
            for (const bool sink : {false, true}) {
                if (!backward_grid<KernelFamily::bwd_dot_do_o>(mode, rows, sink)) return false;
                if (!backward_grid<KernelFamily::bwd_convert_dq>(mode, rows, sink)) return false;
            }
        }
    for (const std::int64_t rows : {1, 4, 5})
        for (const std::int64_t keys : {1, 3, 4, 6, 7})
            for (const bool rotates : {false, true})
                for (const bool queries : {false, true})
                    if (!append_grid(rows, keys, rotates, queries)) return false;
    return true;
}

bool rows_are_right() {
    if (!row_tiles_are_right()) return false;
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const std::int64_t length : {1, 3, 4, 8, 9, 15, 21})
            for (const std::int64_t heads : numbers_of_heads) {
                if (!rows_of_blocks<KernelFamily::fwd>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::fwd_pagedkv>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::batch_prefill>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::fwd_splitkv>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::fwd_splitkv_combine>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::bwd_dot_do_o>(mode, length, heads)) return false;
                if (!rows_of_blocks<KernelFamily::bwd_convert_dq>(mode, length, heads)) return false;
            }
    using Append = Program<KernelFamily::fwd_appendkv>;
    for (const std::int64_t length : {1, 3, 4, 8, 9}) {
        auto args = args_of<AppendKvArgs>(Mode::batch, length, 100);
        args.seqlen_knew = length + 1;
        const auto config = config_of(KernelFamily::fwd_appendkv, Mode::batch);
        for (std::int64_t t = 0; t < 4; ++t) {
            if (Append::rows(config, args, {0, 0, t, true}) != std::min<std::int64_t>(3, length + 1 - 3 * t))
                return false;
            if (Append::rows(config, args, {0, 0, t, false}) != std::min<std::int64_t>(4, length - 4 * t))
                return false;
        }
    }
    return true;
}

bool key_jobs_are_right() {
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const bool deterministic : {false, true})
            for (const bool direct : {false, true})
                for (const bool masked : {false, true})
                    for (const bool reduced : {false, true})
                        for (const std::int64_t keys : {0, 1, 3, 4, 14, 15, 20})
                            for (const std::int64_t share : {-1, 0, 1, 2, 3, 4})
                                if (!jobs_of({mode, deterministic, direct, masked, reduced, keys, share}))
                                    return false;
    return true;
}

} // namespace fmha::test
