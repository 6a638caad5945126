// The items of a warp-specialised launch: how many heads take turns, in which order items come, and which block has which.

#include "kernels/programs/pages.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/item_launch.hpp"

#include <algorithm>

namespace fmha::test::items {
namespace {

/// Heads that take turns where a block computes one item, of a launch of 128 channels: 256 bytes a key.
struct Turns {
    Mode mode;
    bool masked;
    std::int64_t batch, heads_q, heads_k, q_tiles, keys;
    std::uint32_t heads;
};

/// 32 MiB of keys and values are cached.
constexpr Turns turns[] = {
    // Without a mask the tiles of a head follow each other.
    {Mode::batch, false, 2, 6, 3, 5, 100, 1},
    {Mode::group, false, 2, 6, 3, 5, 100, 1},
    // As many heads as are cached, whole groups of them, one group at least.
    {Mode::batch, true, 1, 1, 1, 17, 100, 1},
    {Mode::batch, true, 1, 600, 200, 17, 1024, 128 * 3},
    {Mode::batch, true, 1, 300, 100, 17, 1024, 300},
    {Mode::batch, true, 1, 300, 300, 1, 64 * 1024, 2},
    {Mode::batch, true, 1, 300, 300, 17, 128 * 1024, 1},
    {Mode::batch, true, 1, 300, 100, 17, 200 * 1024, 3},
    {Mode::group, true, 2, 300, 100, 5, 1024, 128 * 3},
    {Mode::batch, true, 1, 36, 36, 16, 8193, 15},
    {Mode::batch, true, 1, 16, 16, 16, 8193, 15},
    {Mode::batch, true, 1, 66, 33, 16, 9000, 28},
    // Without a key a head is as long as one.
    {Mode::batch, true, 140'000, 1, 1, 17, 0, 128 * 1024},
};

bool turns_are_right() {
    for (const Turns& t : turns) {
        const Launch launch(t.mode, t.masked, t.batch, t.heads_q, t.heads_k, t.q_tiles, t.keys);
        const WsGrid grid = launch.grid();
        if (grid.heads_at_once != t.heads || grid.size() != t.batch * t.heads_q * t.q_tiles) return false;
    }
    // The longer of keys and rows counts: 36 heads of 8192 keys fill 72 MiB, of which 16 are cached.
    Launch longer(Mode::batch, true, 1, 36, 36, 16, 8193);
    longer.args.shape.max_seqlen_q = 8192;
    Launch rows(Mode::batch, true, 1, 36, 36, 16, 100);
    rows.args.shape.max_seqlen_q = 8192;
    if (longer.grid().heads_at_once != 15 || rows.grid().heads_at_once != 16) return false;
    // Channels of keys and of values count alike.
    const Launch wide(Mode::batch, true, 1, 300, 300, 17, 64 * 1024, 104);
    if (wide.grid().heads_at_once != 2) return false;
    // The last tile may have one row.
    Launch rest(Mode::batch, false, 1, 1, 1, 4, 100);
    ++rest.args.shape.seqlen_q;
    if (rest.grid().q_tiles != 5) return false;
    // Nothing to compute, and nothing to divide by.
    const Launch no_heads(Mode::batch, true, 1, 0, 0, 17, 100), no_rows(Mode::batch, true, 1, 6, 3, 0, 100);
    return no_heads.grid().size() == 0 && no_rows.grid().size() == 0;
}

/// Quotients where they change, and the largest numbers.
bool divisors_are_right() {
    constexpr std::uint32_t largest = (1U << 31U) - 1;
    const auto divides = [](std::uint32_t by) {
        const kernels::Divisor divisor(by);
        const std::uint32_t most = largest / by;
        for (const std::uint32_t q : {0U, 1U, 2U, 3U, 1000U, most / 2, most - most / 3, most})
            for (const std::uint32_t above : {0U, by / 2, by - 1}) {
                const std::uint64_t n = std::uint64_t{q} * by + above;
                if (n <= largest && divisor.quotient(static_cast<std::uint32_t>(n)) != n / by) return false;
            }
        return divisor.number == by && divisor.quotient(largest) == largest / by;
    };
    for (std::uint32_t by = 1; by <= 600; ++by)
        if (!divides(by)) return false;
    for (std::uint32_t bit = 10; bit < 31; ++bit)
        for (const std::uint32_t by : {(1U << bit) - 1, 1U << bit, (1U << bit) + 1, 3U << (bit - 2)})
            if (!divides(by)) return false;
    const kernels::Divisor none(0), unset;
    return none.number == 1 && none.quotient(7) == 7 && unset.number == 1 && unset.quotient(7) == 7;
}

/// How many blocks a device of `multiprocessors` is given.
struct Blocks {
    Mode mode;
    bool masked;
    std::int64_t heads, q_tiles, multiprocessors;
    std::uint32_t blocks;
};

constexpr Blocks blocks_of_devices[] = {
    {Mode::batch, false, 5, 4, 0, 20},
    {Mode::batch, false, 5, 4, 1, 1},
    {Mode::batch, false, 5, 4, 19, 19},
    {Mode::batch, false, 5, 4, 20, 20},
    {Mode::batch, false, 5, 4, 21, 20},
    // Lengths on the device: less than eight rounds, and eight or more, of as many blocks as have no divisor of the tiles.
    {Mode::group, false, 5, 4, 7, 20},
    {Mode::group, false, 11, 5, 7, 55},
    {Mode::group, false, 14, 4, 7, 7},
    {Mode::group, false, 14, 4, 6, 5},
    {Mode::group, false, 16, 3, 6, 5},
    {Mode::group, true, 8, 4, 16, 32},
    {Mode::group, true, 63, 4, 16, 252},
    {Mode::group, true, 64, 4, 16, 15},
    {Mode::group, true, 64, 4, 17, 256},
    {Mode::group, true, 16, 33, 8, 528},
    // 16 pairs: one round of 16, of 18 just full enough, of 19 no more; two of 8 and of 9; 15 pairs and a single tile.
    {Mode::batch, true, 8, 4, 16, 16},
    {Mode::batch, true, 8, 4, 18, 18},
    {Mode::batch, true, 8, 4, 19, 32},
    {Mode::batch, true, 8, 4, 9, 9},
    {Mode::batch, true, 8, 4, 10, 32},
    {Mode::batch, true, 31, 1, 16, 16},
    // Seven pairs fill 7/8 of a round of 8, a single tile beside six pairs is the seventh; six fill less of 7. Three in rounds of 2 fill 3/4.
    {Mode::batch, true, 14, 1, 8, 8},
    {Mode::batch, true, 13, 1, 8, 8},
    {Mode::batch, true, 12, 1, 7, 12},
    {Mode::batch, true, 6, 1, 2, 6},
    // Few tiles are 32.
    {Mode::batch, true, 1, 32, 16, 16},
    {Mode::batch, true, 2, 33, 11, 66},
    {Mode::batch, true, 8, 4, 0, 32},
};

bool blocks_are_right() {
    for (const Blocks& b : blocks_of_devices) {
        const WsGrid grid = Launch(b.mode, b.masked, 1, b.heads, b.heads, b.q_tiles, 100).grid();
        const WsGrid dealt = grid.on(b.multiprocessors);
        if (grid.blocks != grid.size() || grid.pairs || dealt.blocks != b.blocks) return false;
        if (dealt.pairs != (b.masked && b.blocks < grid.size())) return false;
    }
    return true;
}

/// Blocks of so many teams of two rows, whose last tile leaves teams without rows or does not.
struct LastTiles {
    std::int16_t teams;
    std::int64_t heads, rows, multiprocessors;
    std::uint32_t blocks;
};

constexpr LastTiles last_tiles[] = {
    {3, 100, 18, 132, 132}, // whole
    {3, 100, 17, 132, 132}, // no team without rows
    {3, 100, 16, 132, 131}, // 132 has the divisor 3 of three tiles, 131 has none
    {3, 100, 13, 132, 131}, // two teams without rows
    {3, 100, 22, 132, 131}, // four tiles
    {3, 100, 13, 131, 131}, // no divisor to begin with
    {3, 6, 10, 6, 6},       // five blocks would make a round more
    {3, 7, 10, 6, 5},       // 14 items make three rounds of five, as of six
    {3, 5, 10, 6, 5},       // ten make two whole rounds of five, as of six
    {3, 8, 10, 6, 6},       // sixteen begin a fourth round of five
    {2, 100, 13, 132, 132}, // a tile of two teams is not skipped by one
};

bool last_tiles_are_dealt() {
    for (const LastTiles& tiles : last_tiles) {
        Launch launch(Mode::batch, false, 1, tiles.heads, tiles.heads, 1, 100);
        launch.config.algorithm.tile.m0 = static_cast<std::int16_t>(2 * tiles.teams);
        launch.config.algorithm.wave.m0 = tiles.teams;
        launch.args.shape.seqlen_q = tiles.rows;
        if (launch.grid().on(tiles.multiprocessors).blocks != tiles.blocks) return false;
    }
    return true;
}

/// Pairs differ in length where tiles of queries end within tiles of keys.
bool uneven_pairs_are_dealt() {
    const auto blocks = [](int n0, std::int64_t heads, std::int64_t q_tiles, std::int64_t multiprocessors) {
        Launch launch(Mode::batch, true, 1, heads, heads, q_tiles, 100);
        launch.config.algorithm.tile.n0 = static_cast<std::int16_t>(n0);
        return launch.grid().on(multiprocessors).blocks;
    };
    // 14 pairs make two rounds of eight blocks, and of seven, which have no divisor of four tiles.
    for (const int whole : {1, 2, 4})
        if (blocks(whole, 7, 4, 8) != 8) return false;
    for (const int ends_within : {3, 8})
        if (blocks(ends_within, 7, 4, 8) != 7) return false;
    // 38 pairs make seven rounds of six blocks, eight of five; 113 begin the eighth round of 16 as of 15.
    return blocks(3, 25, 3, 6) == 6 && blocks(3, 113, 2, 16) == 15;
}

/// One item a block: round after round of heads; in a round the last query tile of every head, then the previous one.
std::vector<Item> in_rounds(const Launch& launch) {
    const WsGrid grid = launch.grid();
    const FwdArgs& args = launch.args;
    const std::int64_t heads = args.shape.batch * args.shape.nhead_q, at_once = grid.heads_at_once;
    std::vector<Item> items;
    for (std::int64_t first = 0; first < heads && at_once > 0; first += at_once)
        for (std::int64_t q = std::int64_t{grid.q_tiles} - 1; q >= 0; --q)
            for (std::int64_t head = first; head < std::min(heads, first + at_once); ++head)
                items.emplace_back(head / args.shape.nhead_q, head % args.shape.nhead_q, q, 0);
    return items;
}
/// In pairs: the longest tile of a head and the shortest of the next. A last head is its own next one.
std::vector<Item> in_pairs(const Launch& launch) {
    const WsGrid grid = launch.grid();
    const FwdArgs& args = launch.args;
    const std::int64_t heads = args.shape.batch * args.shape.nhead_q, tiles = grid.q_tiles;
    std::vector<Item> items;
    const auto add = [&](std::int64_t head, std::int64_t q) {
        items.emplace_back(head / args.shape.nhead_q, head % args.shape.nhead_q, q, 0);
    };
    for (std::int64_t head = 0; head < heads; head += 2)
        for (std::int64_t q = 0; q < tiles; ++q) {
            const bool alone = head + 1 == heads;
            if (alone && 2 * q >= tiles) break;
            add(head, tiles - 1 - q);
            if (!alone || 2 * q + 1 < tiles) add(alone ? head : head + 1, q);
        }
    return items;
}

/// Items, or pairs of them, are dealt out like cards.
bool dealing_is_right(const Launch& launch, std::uint32_t blocks) {
    const WsGrid grid = launch.grid().dealt_to(blocks);
    const std::size_t together = grid.pairs ? 2 : 1;
    const MaskClass mask = launch.config.signature.mask;
    const bool window = mask == MaskClass::generic && grid.slides;
    std::vector<Item> all;
    const bool cut = grid.first_are_last;
    if (cut)
        all = in_window_order(launch);
    else
        all = grid.pairs ? in_pairs(launch) : in_rounds(launch);
    if (std::ssize(all) != grid.size()) return false;
    if (grid.pairs != (mask != MaskClass::none && !window && blocks < grid.size())) return false;
    std::vector<std::vector<Item>> want(blocks);
    for (std::size_t n = 0; n < all.size(); ++n) {
        const std::size_t round = n / together / blocks, place = n / together % blocks;
        want[cut && round % 2 != 0 ? blocks - 1 - place : place].push_back(all[n]);
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
        const kernels::BlockItems items{grid, block, mask == MaskClass::generic};
        std::vector<Item> got;
        for (std::uint32_t n = 0; got.size() <= all.size() && items.exists(n); ++n)
            got.push_back(tuple_of(items[n]));
        if (got != want[block]) return false;
    }
    return true;
}

/// A launch over pages has their size prepared, for whatever number of blocks; keys lie where a division says.
bool pages_are_divided() {
    const std::int32_t table[] = {7, 2, 9};
    KernelConfig config;
    config.algorithm.tile = {.m0 = 128, .n0 = 128};
    config.algorithm.wave.m0 = 2;
    for (const std::int64_t size : {128, 384, 1024}) {
        PagedKvArgs args;
        args.shape = {Mode::batch, 2, 4, 2, 300, 300, 0, 0, 64, 64};
        args.place.page_size = size;
        FwdArgs forward;
        forward.shape = args.shape;
        const WsGrid grid = WsGrid(config, args).dealt_to(3);
        const kernels::BlockItems items{grid, 0, false};
        if (items.of_page().number != size || WsGrid(config, forward).of_page.number != 1) return false;
        const kernels::OneItem one{{}, kernels::Divisor(static_cast<std::uint32_t>(size))};
        for (const kernels::Divisor* of_page : {&items.of_page(), &one.of_page()})
            for (const std::int64_t first : {std::int64_t{0}, size / 2})
                for (const std::int64_t key :
                     {std::int64_t{0}, size - 1, size, 2 * size, 2 * size + size / 2 - 1}) {
                    const kernels::Pages pages{table, size, 0, first};
                    const kernels::KeyPlace divided = pages.at(key);
                    const kernels::KeyPlace at = kernels::PreparedPages(pages, *of_page).at(key);
                    if (at.page != divided.page || at.slot != divided.slot ||
                        at.page != table[(first + key) / size] || at.slot != (first + key) % size)
                        return false;
                }
    }
    return true;
}

/// Every entry has the lengths of the shape in batch mode without arrays of lengths. A launch of one item has not asked.
bool equal_lengths_are_known() {
    const std::int32_t lengths[] = {0, 7, 9};
    const auto known = [](const Launch& launch) {
        return kernels::BlockItems{launch.grid().dealt_to(3), 0, false}.lengths_equal();
    };
    const Launch batch(Mode::batch, false, 2, 6, 3, 5, 100);
    for (const auto array : {&LengthArrays::seqlen_q, &LengthArrays::seqlen_k, &LengthArrays::cu_seqlen_q,
                             &LengthArrays::cu_seqlen_k}) {
        Launch by_entry = batch;
        by_entry.args.lengths.*array = lengths;
        if (known(by_entry)) return false;
    }
    return known(batch) && !known(Launch(Mode::group, false, 2, 6, 3, 5, 100)) &&
           !kernels::OneItem::lengths_equal();
}

bool all_are_right() {
    if (!pages_are_divided() || !equal_lengths_are_known()) return false;
    if (!divisors_are_right() || !turns_are_right() || !blocks_are_right() || !last_tiles_are_dealt() ||
        !uneven_pairs_are_dealt())
        return false;
    const Launch launches[] = {
        {Mode::batch, false, 2, 6, 3, 5, 100},      {Mode::batch, true, 2, 6, 3, 5, 100},
        {Mode::batch, true, 1, 7, 7, 4, 100},       {Mode::batch, true, 3, 3, 1, 3, 100},
        {Mode::group, true, 3, 5, 5, 4, 64 * 1024}, {Mode::group, true, 2, 6, 2, 3, 200 * 1024},
        {Mode::group, false, 2, 6, 3, 5, 100},      {Mode::batch, true, 1, 7, 7, 1, 100},
        {Mode::batch, true, 2, 4, 4, 3, 40 * 1024}}; // turns of three heads, and of two
    // All heads at once, and turns of 31.
    for (const std::int64_t heads : {3, 20}) {
        const Launch cut = Launch(Mode::batch, true, 2, heads, heads, 9, 9 * 512, 64, 512).window(2046, 0);
        const std::uint32_t all = static_cast<std::uint32_t>(9 * 2 * heads);
        for (const std::uint32_t blocks : {1U, 7U, 16U, all - 1, all})
            if (!dealing_is_right(cut, blocks) ||
                cut.grid().dealt_to(blocks).first_are_last != (blocks < all))
                return false;
    }
    for (const Launch& launch : launches)
        for (const std::int64_t blocks :
             {std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, std::int64_t{16}, launch.grid().size() - 1,
              launch.grid().size(), launch.grid().size() + 1})
            if (!dealing_is_right(launch, static_cast<std::uint32_t>(blocks)) ||
                !dealing_is_right(launch.window(5, 4), static_cast<std::uint32_t>(blocks)))
                return false;
    const kernels::OneItem one{{1, 2, 3, 4}};
    return kernels::OneItem::exists(0) && !kernels::OneItem::exists(1) &&
           tuple_of(one[0]) == Item(1, 2, 3, 4);
}

} // namespace
} // namespace fmha::test::items

bool fmha::test::ws_items_are_right() {
    return items::all_are_right();
}
