#pragma once

#include "kernels/programs/divisor.hpp"
#include "kernels/programs/key_loop.hpp"

#include <cstdint>

namespace fmha::kernels {

/// The items of a warp-specialised launch, in the order in which its blocks take them. Heads whose rows share a tile count as one.
///
/// Where all query tiles see the same keys, those of a head follow each other, and a block computes several. Where the last one takes less
/// time, because teams have no rows in it, the number of blocks has no divisor of theirs, or some blocks would compute the longer tiles of all
/// heads.
///
/// Under a window a block computes several too, of many heads in turn: those that blocks compute at the same time are neighbours in all heads.
/// The first tiles of a sequence see less of a window than the others. Where the window is long and they alone do, they come after all
/// others, the longest first, and every other round of blocks is dealt backwards, so that blocks end together. Only tiles whose keys of all
/// heads are in the cache at once do so.
///
/// Where a mask makes later ones longer, a block computes pairs: the longest tile of one head and the shortest of the next, the second longest
/// and the second shortest, and so on. All pairs are about as long, and those of two heads follow each other, so that few heads have to have
/// their keys and values in the L2 cache. Where tiles of queries end within tiles of keys, pairs differ by a tile, and the number of blocks has
/// no divisor of the number of a head's tiles either.
///
/// Each block computes one item, and the next one begins where another ends, where pairs would leave many blocks idle in the last round,
/// where tiles are so many that the code around the loop over keys counts for little, or where lengths are on the device and
/// blocks would have few items each. The longest of several heads come first then, of as many as have their keys and values in the cache.
///
/// Where lengths are on the device, items are numbered as if all sequences had the largest one; a block skips those that do not exist. The number of blocks
/// has no divisor of the number of a head's tiles, or under a window of the heads that take turns, or some of the blocks would compute the short sequences.
struct WsGrid {
    std::uint32_t heads = 0, q_tiles = 0, all_heads = 0;
    std::uint32_t heads_at_once = 1; ///< that take turns where a block computes one item
    std::uint32_t blocks = 0;
    bool slides = false;    ///< a window, under which most rows see as many keys as others
    bool lengthens = false; ///< another mask, which makes later items of a head longer
    bool lengths_known = false, pairs = false;
    bool lengths_equal = false;    ///< every entry has the lengths of the shape
    bool uneven = false;           ///< items of a head, or its pairs, take different times
    bool first_are_last = false;   ///< the first tiles of all heads come after the others
    std::uint32_t first_tiles = 0; ///< of a head, that see less of the window than others and may come last
    /// The divisors of an item's number: the heads of an entry; the heads that take turns and their items; the heads of the last turn.
    Divisor of_entry, of_turn, in_turn, of_last_turn;
    Divisor of_all;  ///< heads
    Divisor of_page; ///< of keys in a cache

    WsGrid() = default;
    /// Each item for a block of its own.
    template <class Args>
    constexpr WsGrid(const KernelConfig& config, const Args& args)
        : heads(narrow(args.shape.nhead_q / HeadRows::of(config, args).heads(config.algorithm.tile.m0))),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        HeadRows::of(config, args).of_head(config.algorithm.tile.m0))),
          all_heads(narrow(args.shape.batch * heads)), blocks(narrow(size())),
          lengths_known(args.shape.mode == Mode::batch), lengths_equal(lengths_known && none(args.lengths)) {
        const MaskClass mask = config.signature.mask;
        const std::int64_t window = width(mask, args.mask, args.shape), keys = longest(args.shape);
        slides = mask == MaskClass::generic && 4 * window <= 3 * keys;
        lengthens = mask != MaskClass::none && !slides;
        const Tile& tile = config.algorithm.tile;
        const std::int64_t team_rows = tile.m0 / config.algorithm.wave.m0,
                           rest = args.shape.seqlen_q % tile.m0;
        const bool last_is_short = tile.m0 > 2 * team_rows && rest > 0 && rest <= tile.m0 - team_rows;
        uneven = lengthens ? tile.m0 % tile.n0 != 0 : !slides && last_is_short;
        of_entry = Divisor(heads);
        of_all = Divisor(all_heads);
        // Under a window it and as much again, for the tiles that follow.
        if (mask != MaskClass::none && blocks > 0) {
            heads_at_once = cached_heads(args.shape, slides ? 2 * window : keys);
            if (slides && lengths_known && reorders<Args>(config.signature))
                first_tiles = cut_tiles(config, args);
        }
        take_turns(heads_at_once);
        if constexpr (requires { args.place; }) of_page = Divisor(narrow(args.place.page_size));
    }
    constexpr std::int64_t size() const { return std::int64_t{all_heads} * q_tiles; }
    /// The same items, dealt out to so many blocks.
    constexpr WsGrid dealt_to(std::int64_t count) const {
        WsGrid dealt = *this;
        dealt.blocks = narrow(count);
        dealt.pairs = lengthens && count < size();
        if (dealt.pairs) dealt.take_turns(2);
        dealt.first_are_last = first_tiles > 0 && count < size();
        if (dealt.first_are_last) dealt.take_turns(heads_at_once);
        return dealt;
    }
    /// The same items, dealt out to the blocks of a device of so many multiprocessors.
    constexpr WsGrid on(std::int64_t multiprocessors) const {
        if (multiprocessors <= 0 || multiprocessors >= size()) return *this;
        const std::int64_t pair_count = (size() + 1) / 2, count = lengthens ? pair_count : size(),
                           rounds = (count + multiprocessors - 1) / multiprocessors;
        constexpr std::uint32_t few_tiles = 32;
        const bool rounds_are_full = 8 * count >= 7 * rounds * multiprocessors; // to 7/8
        if (lengthens && (q_tiles > few_tiles || !rounds_are_full)) return *this;
        // Of many rounds a block has long and short sequences, as others have.
        constexpr std::int64_t many_rounds = 8;
        if (!lengths_known && count < many_rounds * multiprocessors) return *this;
        if (lengths_known && !uneven) return dealt_to(multiprocessors);
        std::int64_t mixing = multiprocessors;
        while (common_divisor(mixing, slides ? heads_at_once : q_tiles) > 1) --mixing;
        const bool as_many_rounds = (count - 1) / mixing == (count - 1) / multiprocessors;
        return dealt_to(as_many_rounds || !lengths_known ? mixing : multiprocessors);
    }

    /// Whether the first tiles may come last in kernels of such arguments: only generic masks have windows. Over pages there is no register for
    /// it (128 channels, ALiBi and LSE would spill 40 bytes), and beside ALiBi none to spare.
    template <class Args>
    static constexpr bool reorders(const Signature& kernel) {
        return kernel.mask == MaskClass::generic && kernel.bias != BiasType::alibi &&
               !requires(const Args& args) {
            args.place;
        };
    }
    /// The n-th item of a block. The first tiles that come last are one more turn, of all heads.
    FMHA_DEVICE constexpr FwdItem item(std::uint32_t block, std::uint32_t n, bool reordered) const {
        const std::uint32_t at = number(block, n, reordered), late_from = all_heads * (q_tiles - first_tiles);
        const bool late = reordered && first_are_last && at >= late_from;
        const std::uint32_t turn = in_turn.quotient(at);
        const std::uint32_t first = late ? 0 : turn * of_turn.number,
                            place = at - (late ? late_from : turn * in_turn.number);
        const bool is_last = all_heads - first < of_turn.number;
        const Divisor& count = late ? of_all : is_last ? of_last_turn : of_turn;
        const std::uint32_t across = count.quotient(place), head = first + place - across * count.number;
        // In pairs the second item is the short one; a head that is alone has its long ones paired with its short ones.
        const bool is_short = pairs && place % 2 != 0;
        const std::uint32_t down = pairs ? place / 2 : across, entry = of_entry.quotient(head);
        return {entry, head - entry * heads, is_short ? down : (late ? first_tiles : q_tiles) - 1 - down, 0};
    }
    FMHA_DEVICE constexpr bool exists(std::uint32_t block, std::uint32_t n, bool reordered) const {
        return number(block, n, reordered) < all_heads * q_tiles;
    }

  private:
    FMHA_DEVICE constexpr std::uint32_t number(std::uint32_t block, std::uint32_t n, bool reordered) const {
        const bool backwards = reordered && first_are_last && n % 2 != 0;
        return pairs ? (n / 2 * blocks + block) * 2 + n % 2
                     : n * blocks + (backwards ? blocks - 1 - block : block);
    }
    /// The first tiles that may come last. Row r sees the keys from r − y + 1 to r + x − 1 (M-6). Short windows do not gain what their keys cost
    /// that have left the cache, and where a window ends behind its row the last tiles are short as well.
    template <class Args>
    constexpr std::uint32_t cut_tiles(const KernelConfig& config, const Args& args) const {
        const Shape& shape = args.shape;
        const Mask mask = Mask::of(args.mask, config.signature.mask, false, shape.seqlen_q, shape.seqlen_k);
        constexpr std::int64_t long_window = 512 << 10; // bytes of keys and values
        if ((mask.x + mask.y) * bytes_of_key(shape) < long_window ||
            shape.seqlen_q + mask.x > shape.seqlen_k + 1)
            return 0;
        const std::int64_t rows = HeadRows::of(config, args).of_head(config.algorithm.tile.m0),
                           cached = times_cached(shape, shape.batch * shape.nhead_k) - (mask.x - 1),
                           cut = (mask.y - 1 + rows - 1) / rows,
                           first = cut < cached / rows ? cut : cached / rows;
        return first < 0 ? 0 : at_most(q_tiles, first);
    }
    constexpr void take_turns(std::uint32_t together) {
        of_turn = Divisor(together);
        in_turn = Divisor(together * (first_are_last ? q_tiles - first_tiles : q_tiles));
        of_last_turn = Divisor(together > 0 ? all_heads % together : 0);
    }
    static constexpr bool none(const LengthArrays& of) {
        return of.seqlen_q == nullptr && of.seqlen_k == nullptr && of.cu_seqlen_q == nullptr &&
               of.cu_seqlen_k == nullptr;
    }
    /// The longer of keys and rows of a sequence; in a group its rows alone are known.
    static constexpr std::int64_t longest(const Shape& shape) {
        return shape.seqlen_k > shape.max_seqlen_q ? shape.seqlen_k : shape.max_seqlen_q;
    }
    /// One more than the keys of a row under a window, more than `longest` where a side has no end.
    static constexpr std::int64_t width(MaskClass kernel, const MaskArgs& args, const Shape& shape) {
        const Mask mask = Mask::of(args, kernel, false, longest(shape), longest(shape));
        return mask.x + mask.y;
    }
    /// So many heads of `shape` have `rows` keys and values in the L2 cache, whole groups of them.
    constexpr std::uint32_t cached_heads(const Shape& shape, std::int64_t rows) const {
        const std::int64_t group = heads / shape.nhead_k;
        const std::int64_t cached = times_cached(shape, rows > 0 ? rows : 1) * group;
        return at_most(all_heads, cached > group ? cached : group);
    }
    /// So many times `keys` keys and values are in the L2 cache at once.
    static constexpr std::int64_t times_cached(const Shape& shape, std::int64_t keys) {
        constexpr std::int64_t cached_bytes = 32 << 20; // an H200 caches 50 MB
        return cached_bytes / (keys * bytes_of_key(shape));
    }
    static constexpr std::int64_t bytes_of_key(const Shape& shape) {
        return (shape.hdim_q + shape.hdim_v) * 2;
    }
    static constexpr std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
        return b == 0 ? a : common_divisor(b, a % b);
    }
    static constexpr std::uint32_t at_most(std::uint32_t most, std::int64_t n) {
        return n < most ? narrow(n) : most;
    }
    static constexpr std::uint32_t narrow(std::int64_t n) { return static_cast<std::uint32_t>(n); }
    static constexpr std::uint32_t tiles(std::int64_t extent, std::int64_t tile) {
        return narrow((extent + tile - 1) / tile);
    }
};

/// The items of one block of a launch, of fewer than 2^31.
struct BlockItems {
    const WsGrid& grid;
    std::uint32_t block;
    bool reordered; ///< as `WsGrid::reorders` says

    FMHA_DEVICE constexpr bool exists(std::uint32_t n) const { return grid.exists(block, n, reordered); }
    FMHA_DEVICE constexpr FwdItem operator[](std::uint32_t n) const { return grid.item(block, n, reordered); }
    FMHA_DEVICE constexpr const Divisor& of_page() const { return grid.of_page; }
    FMHA_DEVICE constexpr bool lengths_equal() const { return grid.lengths_equal; }
};

/// A single item, where blocks are not persistent.
struct OneItem {
    FwdItem item;
    Divisor page{};

    FMHA_DEVICE static constexpr bool exists(std::uint32_t n) { return n == 0; }
    FMHA_DEVICE constexpr FwdItem operator[](std::uint32_t) const { return item; }
    FMHA_DEVICE constexpr const Divisor& of_page() const { return page; }
    FMHA_DEVICE static constexpr bool lengths_equal() { return false; }
};

} // namespace fmha::kernels
