// Items under a window: how they are dealt out, and which tiles it cuts.

#include "tests/mutation/checks.hpp"
#include "tests/mutation/item_launch.hpp"

#include <algorithm>

namespace fmha::test::items {
namespace {

/// Under a window blocks compute several items, of all heads that are cached with twice the window.
bool windows_are_dealt() {
    const Launch seven(Mode::batch, true, 1, 7, 7, 4, 100);
    const auto slides = [](const Launch& launch) {
        const WsGrid grid = launch.grid();
        return grid.slides && !grid.lengthens && !grid.dealt_to(1).pairs && !grid.uneven;
    };
    const auto lengthens = [](const Launch& launch) {
        const WsGrid grid = launch.grid();
        return !grid.slides && grid.lengthens;
    };
    // 74 of 100 keys are a window; with one more on either side later items are longer than the first.
    if (!slides(seven.window(36, 37)) || !lengthens(seven.window(37, 37)) || !lengthens(seven.window(36, 38)))
        return false;
    // Of 33 keys 24 are one.
    const Launch odd(Mode::batch, true, 1, 7, 7, 4, 33);
    if (!slides(odd.window(11, 11)) || !lengthens(odd.window(11, 12))) return false;
    // Without an end to one side there is no window, and a causal kernel does not look at the other side.
    if (!lengthens(seven.window(10, 100)) || !lengthens(seven.window(100, 10))) return false;
    Launch causal = seven.window(36, 37);
    causal.config.signature.mask = MaskClass::causal;
    if (!lengthens(causal)) return false;
    // Tiles that are no whole number of tiles of keys, and many tiles of a head, change nothing.
    Launch ends_within = seven.window(36, 37);
    ends_within.config.algorithm.tile.n0 = 3;
    if (!slides(ends_within) || ends_within.grid().on(6).blocks != 6) return false;
    if (Launch(Mode::batch, true, 1, 2, 2, 33, 100).window(10, 0).grid().on(10).blocks != 10) return false;
    // 300 heads of 64 * 1024 keys: two are cached whole, 64 with 2048 of them, 58 with 2222 (59 with one less), all of them with few.
    const Launch many(Mode::batch, true, 1, 300, 300, 17, 64 * 1024);
    if (many.window(1022, 0).grid().heads_at_once != 64 || many.window(1109, 0).grid().heads_at_once != 58 ||
        many.window(30 * 1024 - 2, 0).grid().heads_at_once != 2 ||
        many.window(9, 0).grid().heads_at_once != 300)
        return false;
    // In a group the largest number of rows says how many keys there may be: 100. The blocks have no divisor of 32 heads.
    const Launch group(Mode::group, true, 1, 32, 32, 25, 0);
    return slides(group.window(36, 37)) && lengthens(group.window(37, 37)) &&
           group.window(36, 37).grid().on(16).blocks == 15 && group.window(36, 37).grid().on(15).blocks == 15;
}

/// A launch of tiles of 512 rows under a window, and how many tiles of a head begin before it is whole and come last. A key takes 256 bytes, so that
/// windows are long from 2048 keys on.
struct Cut {
    std::int64_t batch, heads_q, heads_k, tiles, keys, left, right;
    std::uint32_t first_tiles;
};

constexpr Cut cuts[] = {
    {1, 7, 7, 25, 12800, 2046, 0, 4},
    {1, 7, 7, 25, 12800, 2045, 0, 0},
    {1, 7, 7, 25, 12800, 2048, 0, 4},
    {1, 7, 7, 25, 12800, 2049, 0, 5},
    // The last row sees a key that is not there.
    {1, 7, 7, 25, 12800, 2046, 1, 0},
    {1, 7, 7, 25, 12801, 2046, 1, 4},
    {1, 7, 7, 25, 12900, 2046, 101, 0},
    // 2048 keys of 64 heads are cached, 2016 of 65; and of 62 all but 100 that a row sees behind its own.
    {1, 64, 64, 25, 12800, 4095, 0, 4},
    {1, 65, 65, 25, 12800, 4095, 0, 3},
    {2, 32, 32, 25, 12800, 4095, 0, 4},
    {13, 5, 5, 25, 12800, 4095, 0, 3},
    {1, 256, 64, 25, 12800, 4095, 0, 4},
    {1, 64, 64, 25, 12801, 4095, 1, 3},
    {1, 51, 51, 25, 12800, 2046, 0, 4}, // five tiles are
    {1, 60, 60, 25, 12900, 4095, 100, 4},
    {1, 62, 62, 25, 12900, 4095, 100, 3},
    {1, 300, 300, 25, 12800, 4095, 0, 0},
    {1, 400, 400, 25, 13800, 4095, 1000, 0},
    // No tile sees all of the window.
    {1, 1, 1, 1, 12800, 4095, 0, 1},
    {1, 7, 7, 1, 12800, 4095, 0, 1},
    {1, 7, 7, 8, 12800, 4095, 0, 8},
    {1, 7, 7, 9, 12800, 4095, 0, 8},
};

bool windows_are_cut() {
    const auto launch = [](Mode mode, const Cut& c) {
        return Launch(mode, true, c.batch, c.heads_q, c.heads_k, c.tiles, c.keys, 64, 512)
            .window(c.left, c.right);
    };
    for (const Cut& c : cuts) {
        const WsGrid grid = launch(Mode::batch, c).grid();
        if (!grid.slides || grid.first_tiles != c.first_tiles || grid.first_are_last) return false;
        if (grid.dealt_to(grid.size() - 1).first_are_last != (c.first_tiles > 0) ||
            grid.dealt_to(grid.size()).first_are_last)
            return false;
    }
    // From the last corner the window is 1000 keys on: x is 1001, y 1047.
    Launch corner = launch(Mode::batch, {1, 7, 7, 25, 13800, 2046, 0, 0});
    corner.args.mask.type = MaskType::bottom_right;
    if (corner.grid().first_tiles != 3) return false;
    // Over pages and with ALiBi items keep their order, and under a causal mask nobody asks.
    const Launch plain = launch(Mode::batch, cuts[0]);
    PagedKvArgs paged;
    paged.shape = plain.args.shape;
    paged.mask = plain.args.mask;
    paged.place.page_size = 128;
    Launch alibi = plain;
    alibi.config.signature.bias = BiasType::alibi;
    Signature biased, causal;
    biased.mask = MaskClass::generic;
    biased.bias = BiasType::elementwise;
    causal.mask = MaskClass::causal;
    const WsGrid over_pages(plain.config, paged);
    if (!over_pages.slides || over_pages.first_tiles != 0 || alibi.grid().first_tiles != 0 ||
        WsGrid::reorders<PagedKvArgs>(plain.config.signature) ||
        WsGrid::reorders<FwdArgs>(alibi.config.signature) || WsGrid::reorders<FwdArgs>(causal) ||
        !WsGrid::reorders<FwdArgs>(biased))
        return false;
    // In a group lengths are on the device. Where most keys are a window, later tiles are longer than the first.
    const WsGrid group = launch(Mode::group, cuts[0]).grid();
    const WsGrid wide = launch(Mode::batch, {1, 7, 7, 25, 12800, 9599, 0, 0}).grid();
    return group.slides && group.first_tiles == 0 && !wide.slides && wide.first_tiles == 0;
}

} // namespace

std::vector<Item> in_window_order(const Launch& launch) {
    const FwdArgs& args = launch.args;
    const std::int64_t heads = args.shape.batch * args.shape.nhead_q, at_once = launch.grid().heads_at_once;
    std::vector<Item> items;
    const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t q) {
        for (std::int64_t head = from; head < to; ++head)
            items.emplace_back(head / args.shape.nhead_q, head % args.shape.nhead_q, q, 0);
    };
    const std::int64_t rows = launch.config.algorithm.tile.m0, tiles = launch.grid().q_tiles,
                       cut = std::min(tiles, (args.mask.left + rows - 1) / rows);
    if (cut == 0) return {};
    for (std::int64_t first = 0; first < heads; first += at_once)
        for (std::int64_t q = tiles - 1; q >= cut; --q) add(first, std::min(heads, first + at_once), q);
    for (std::int64_t q = cut - 1; q >= 0; --q) add(0, heads, q);
    return items;
}

} // namespace fmha::test::items

bool fmha::test::ws_windows_are_right() {
    return items::windows_are_dealt() && items::windows_are_cut();
}
