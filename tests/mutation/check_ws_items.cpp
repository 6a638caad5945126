// The items of a warp-specialised launch: how many heads take turns, in which order items come, and which block has which.

#include "kernels/programs/ws_items.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace fmha::test {
namespace {

using Item = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
using kernels::WsGrid;

Item tuple_of(const kernels::FwdItem& item) {
    return {item.b, item.h, item.q_tile, item.v_tile};
}

/// A launch of tiles of 4 rows and 8 channels, whose other numbers all differ.
struct Launch {
    KernelConfig config;
    FwdArgs args;

    Launch(Mode mode, bool masked, std::int64_t batch, std::int64_t heads_q, std::int64_t heads_k,
           std::int64_t q_tiles, std::int64_t keys, std::int64_t channels = 64) {
        config.signature.mode = mode;
        config.signature.mask = masked ? MaskClass::causal : MaskClass::none;
        config.algorithm.tile = {.m0 = 4, .n0 = 3, .n1 = 40};
        args.shape = {mode, batch, heads_q, heads_k, 4 * q_tiles, keys, 0, 0, channels, 128 - channels};
        // In a group the largest length says how many tiles an entry may have, and seqlen_q is none (N-2).
        if (mode == Mode::group) std::swap(args.shape.seqlen_q, args.shape.max_seqlen_q);
    }
    WsGrid grid() const { return {config, args}; }
};

/// Heads that take turns and whether a block computes several items, of a launch of 128 channels: 256 bytes a key.
struct Turns {
    Mode mode;
    bool masked;
    std::int64_t batch, heads_q, heads_k, q_tiles, keys;
    std::uint32_t heads;
    bool several;
};

/// 8 · 132 items fill eight rounds; 32 MiB of keys and values are cached, and 72 MiB are the most; few tiles are 16.
constexpr Turns turns[] = {
    // Without a mask the tiles of a head follow each other.
    {Mode::batch, false, 2, 6, 3, 5, 100, 1, true},
    {Mode::group, false, 2, 6, 3, 5, 100, 1, false},
    // Heads that fill eight rounds, one more or less than there are, one tile, and a rest.
    {Mode::batch, true, 1, 100, 50, 16, 100, 66, true},
    {Mode::batch, true, 1, 65, 65, 16, 100, 65, true},
    {Mode::batch, true, 1, 67, 67, 16, 100, 66, true},
    {Mode::batch, true, 7, 151, 151, 1, 100, 1056, true},
    {Mode::batch, true, 1, 300, 300, 5, 100, 212, true},
    {Mode::batch, true, 1, 1, 1, 16, 100, 1, true},
    // One tile more than few, with one head and with many: as many heads as are cached, whole groups of them, one group at least.
    {Mode::batch, true, 1, 1, 1, 17, 100, 1, false},
    {Mode::batch, true, 1, 600, 200, 17, 1024, 128 * 3, false},
    {Mode::batch, true, 1, 300, 100, 17, 1024, 300, false},
    {Mode::batch, true, 1, 300, 300, 17, 64 * 1024, 2, false},
    {Mode::batch, true, 1, 300, 300, 17, 128 * 1024, 1, false},
    {Mode::batch, true, 1, 300, 100, 17, 200 * 1024, 3, false},
    {Mode::group, true, 2, 300, 100, 5, 1024, 128 * 3, false},
    // 36 heads of 8192 keys are 72 MiB; heads of a group share theirs.
    {Mode::batch, true, 1, 36, 36, 16, 8192, 36, true},
    {Mode::batch, true, 1, 36, 36, 16, 8193, 15, false},
    {Mode::batch, true, 1, 66, 33, 16, 8192, 66, true},
    {Mode::batch, true, 1, 66, 33, 16, 9000, 28, false},
    // Without a key a head is as long as one.
    {Mode::batch, true, 140'000, 1, 1, 17, 0, 128 * 1024, false},
};

bool turns_are_right() {
    for (const Turns& t : turns) {
        const Launch launch(t.mode, t.masked, t.batch, t.heads_q, t.heads_k, t.q_tiles, t.keys);
        const WsGrid grid = launch.grid();
        if (grid.heads_at_once != t.heads || grid.several_a_block != t.several) return false;
        if (grid.size() != t.batch * t.heads_q * t.q_tiles * 2) return false;
    }
    // The longer of keys and rows counts: at 8192 it is just not too long.
    Launch longer(Mode::batch, true, 1, 36, 36, 16, 8193);
    longer.args.shape.max_seqlen_q = 8192;
    Launch rows(Mode::batch, true, 1, 36, 36, 16, 100);
    rows.args.shape.max_seqlen_q = 8193;
    if (longer.grid().several_a_block || rows.grid().several_a_block) return false;
    // Channels of keys and of values count alike.
    const Launch wide(Mode::batch, true, 1, 300, 300, 17, 64 * 1024, 104);
    if (wide.grid().heads_at_once != 2 || wide.grid().v_tiles != 1) return false;
    // The last tile may have one row.
    Launch rest(Mode::batch, false, 1, 1, 1, 4, 100);
    ++rest.args.shape.seqlen_q;
    if (rest.grid().q_tiles != 5) return false;
    // Nothing to compute, and nothing to divide by.
    const Launch no_heads(Mode::batch, true, 1, 0, 0, 17, 100), no_rows(Mode::batch, true, 1, 6, 3, 0, 100);
    return no_heads.grid().size() == 0 && no_rows.grid().size() == 0;
}

/// Round after round of heads; in a round the last query tile of every head, then the one before.
bool order_is_right(const Launch& launch) {
    const WsGrid grid = launch.grid();
    const FwdArgs& args = launch.args;
    const std::int64_t heads = args.shape.batch * args.shape.nhead_q, at_once = grid.heads_at_once;
    if (at_once == 0 || grid.size() > 10'000) return false;
    std::vector<Item> want, got;
    for (std::int64_t first = 0; first < heads; first += at_once)
        for (std::int64_t q = std::int64_t{grid.q_tiles} - 1; q >= 0; --q)
            for (std::int64_t head = first; head < std::min(heads, first + at_once); ++head)
                for (std::int64_t v = 0; v < 2; ++v)
                    want.emplace_back(head / args.shape.nhead_q, head % args.shape.nhead_q, q, v);
    for (std::uint32_t n = 0; n < grid.size(); ++n) got.push_back(tuple_of(grid[n]));
    return got == want;
}

/// Items are dealt out like cards, every other round from the last block on.
bool dealing_is_right(const Launch& launch, std::uint32_t blocks) {
    const WsGrid grid = launch.grid();
    std::vector<std::vector<Item>> want(blocks);
    for (std::uint32_t n = 0; n < grid.size(); ++n) {
        const std::uint32_t place = n % blocks;
        const bool backwards = n / blocks % 2 == 1;
        want[backwards ? blocks - 1 - place : place].push_back(tuple_of(grid[n]));
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
        const kernels::BlockItems items{launch.config, launch.args, block, blocks};
        std::vector<Item> got;
        for (std::uint32_t n = 0; got.size() <= grid.size() && items.exists(n); ++n)
            got.push_back(tuple_of(items[n]));
        if (got != want[block]) return false;
    }
    return true;
}

} // namespace

bool ws_items_are_right() {
    if (!turns_are_right()) return false;
    const Launch launches[] = {
        {Mode::batch, false, 2, 6, 3, 5, 100},      {Mode::batch, true, 2, 6, 3, 5, 100},
        {Mode::group, true, 3, 5, 5, 4, 64 * 1024}, {Mode::group, true, 2, 6, 2, 3, 200 * 1024},
        {Mode::group, false, 2, 6, 3, 5, 100},      {Mode::batch, true, 1, 7, 7, 1, 100}};
    for (const Launch& launch : launches) {
        if (!order_is_right(launch)) return false;
        for (const std::uint32_t blocks : {1U, 2U, 7U, 16U})
            if (!dealing_is_right(launch, blocks)) return false;
        const WsGrid grid = launch.grid();
        for (const std::int64_t device :
             {std::int64_t{0}, std::int64_t{1}, grid.size() - 1, grid.size(), grid.size() + 1}) {
            const bool fewer = grid.several_a_block && device > 0 && device < grid.size();
            if (grid.blocks(device) != (fewer ? device : grid.size())) return false;
        }
    }
    const kernels::OneItem one{{1, 2, 3, 4}};
    return kernels::OneItem::exists(0) && !kernels::OneItem::exists(1) &&
           tuple_of(one[0]) == Item(1, 2, 3, 4);
}

} // namespace fmha::test
