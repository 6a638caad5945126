// Lengths, extents, places of keys and of partial sums of dQ, and which heads share a block.

#include "kernels/programs/cache.hpp"
#include "kernels/programs/dq_partials.hpp"
#include "kernels/programs/packed_heads.hpp"
#include "kernels/programs/ws_keys.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/tensors.hpp"

#include <algorithm>
#include <vector>

namespace fmha::test {
namespace {

using kernels::Entry;
using kernels::Extent;
using kernels::Pages;

constexpr std::int64_t entries = 3;
constexpr std::int32_t starts_q[] = {2, 7, 7, 20}, starts_k[] = {1, 9, 20, 24};
constexpr std::int32_t logical_q[] = {3, 0, 9}, logical_k[] = {8, 5, 0};
constexpr std::int32_t cumulated_q[] = {4, 6, 13, 17}, cumulated_k[] = {3, 5, 9, 18};

bool is(const Entry& entry, std::int64_t q, std::int64_t k, std::int64_t start_q, std::int64_t start_k) {
    return entry.seqlen_q == q && entry.seqlen_k == k && entry.start_q == start_q && entry.start_k == start_k;
}

/// Lengths of an entry as N-1 to N-3 give them: the shape's or the physical ones, then logical ones.
bool entries_are_right() {
    for (const bool group : {false, true})
        for (const int given : {0, 1, 2, 3, 4})
            for (std::int64_t b = 0; b < entries; ++b) {
                Shape shape;
                shape.mode = group ? Mode::group : Mode::batch;
                shape.seqlen_q = 31;
                shape.seqlen_k = 41;
                LengthArrays lengths;
                if (group) lengths.seqstart_q = starts_q, lengths.seqstart_k = starts_k;
                std::int64_t q = group ? starts_q[b + 1] - starts_q[b] : 31;
                std::int64_t k = group ? starts_k[b + 1] - starts_k[b] : 41;
                const std::int64_t physical_q = q, start_q = group ? starts_q[b] : 0,
                                   start_k = group ? starts_k[b] : 0;
                if (given == 1) lengths.seqlen_q = logical_q, q = logical_q[b];
                if (given == 2) lengths.seqlen_k = logical_k, k = logical_k[b];
                if (given == 3) lengths.cu_seqlen_q = cumulated_q, q = cumulated_q[b + 1] - cumulated_q[b];
                if (given == 4) lengths.cu_seqlen_k = cumulated_k, k = cumulated_k[b + 1] - cumulated_k[b];
                if (!is(Entry::of(shape, lengths, b), q, k, start_q, start_k)) return false;
                if (!is(Entry::of_queries(shape, lengths, b), physical_q, 0, start_q, 0)) return false;
                if (!is(Pages::entry_of(shape, lengths, {}, b), q, k, start_q, start_k)) return false;
            }
    // Pages of B-4: whole ones, and a last one.
    constexpr std::int32_t indptr[] = {0, 3, 3, 4}, last[] = {5, 0, 8};
    Shape shape;
    for (const bool lasts : {true, false})
        for (std::int64_t b = 0; b < entries; ++b) {
            KvPlace place;
            place.kv_indptr = indptr;
            place.kv_last_page_lens = lasts ? last : nullptr;
            place.page_size = lasts ? 8 : 1;
            const std::int64_t pages = indptr[b + 1] - indptr[b];
            const std::int64_t keys = pages == 0 ? 0 : lasts ? 8 * (pages - 1) + last[b] : pages;
            if (Pages::entry_of(shape, {}, place, b).seqlen_k != keys) return false;
        }
    // A gappy table has packed keys in batch mode too (P-2).
    KvPlace gappy;
    gappy.is_gappy = true;
    LengthArrays packed;
    packed.seqstart_k = starts_k;
    return is(Pages::entry_of(shape, packed, gappy, 1), 0, starts_k[2] - starts_k[1], 0, starts_k[1]);
}

bool places_are_right() {
    constexpr std::int32_t table[] = {40, 41, 42, 50, 51, 52}, slots[] = {6, 4, 5}, indptr[] = {0, 3, 6};
    for (const std::int64_t start : {0, 3})
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t j = 0; j < 9; ++j) {
                KvPlace place;
                const auto at = [&](std::int64_t page, std::int64_t slot) {
                    const auto found = Pages::of(place, b, start).at(j);
                    return found.page == page && found.slot == slot;
                };
                if (!at(b, start + j)) return false;
                place.cache_batch_idx = slots;
                if (!at(slots[b], start + j)) return false;
                place = {};
                place.block_table = table;
                place.block_table_stride = 3;
                place.page_size = 4;
                if (!at(table[3 * b + j / 4], j % 4)) return false;
                place.is_gappy = true;
                if (!at(table[3 * b + (start + j) / 4], (start + j) % 4)) return false;
                place = {};
                place.kv_page_indices = table;
                place.kv_indptr = indptr;
                place.page_size = 4;
                if (!at(table[3 * b + j / 4], j % 4)) return false;
            }
    return true;
}

bool extents_are_right() {
    for (std::int64_t size = 0; size < 20; ++size)
        for (const std::int64_t granule : {1, 4, 8}) {
            const Extent extent = Extent::of(size, granule);
            std::int64_t read = 0, written = 0;
            while (read < size) read += granule;
            while (written + granule <= size) written += granule;
            if (extent.size != size || extent.read != read || extent.written != written) return false;
            const auto begun = [](std::int64_t elements) {
                std::int64_t blocks = 0;
                while (blocks * 3 < elements) ++blocks;
                return blocks;
            };
            const Extent blocks = extent.blocks(3);
            if (blocks.size != begun(size) || blocks.read != begun(read) || blocks.written != begun(written))
                return false;
        }
    KernelConfig config;
    config.algorithm.tile = {.m0 = 5, .n0 = 6};
    config.signature.hdim_q = 24;
    config.signature.hdim_v = 40;
    for (const bool s : {false, true})
        for (const bool sk : {false, true})
            for (const std::int8_t d : {0, 1, 8})
                for (const std::int8_t dv : {0, 1, 8})
                    for (const std::int32_t alignment : {0, 1, 4}) {
                        config.algorithm.pad = {s, sk, d, dv};
                        config.algorithm.hdim_q_alignment = alignment;
                        config.algorithm.hdim_v_alignment = 2 * alignment;
                        const auto found = kernels::Granules::of(config);
                        const std::int64_t q = d > 0 ? d : alignment > 0 ? alignment : 24;
                        const std::int64_t v = dv > 0 ? dv : alignment > 0 ? 2 * alignment : 40;
                        if (found.seqlen_q != (s ? 1 : 5) || found.seqlen_k != (sk ? 1 : 6) ||
                            found.hdim_q != q || found.hdim_v != v)
                            return false;
                    }
    return true;
}

/// Regions of the workspace by.
bool partials_are_right() {
    for (const bool group : {false, true})
        for (const bool deterministic : {false, true})
            for (const std::int64_t batch : {1, 3, 4, 5})
                for (std::int64_t b = 0; b < batch; ++b) {
                    KernelConfig config;
                    config.signature.is_deterministic = deterministic;
                    constexpr std::int32_t starts[] = {2, 7, 8, 20, 21, 30};
                    BwdArgs args;
                    args.shape = {group ? Mode::group : Mode::batch, batch, 3, 3, 9, 10, 0, 0, 16, 24};
                    args.lengths.seqstart_q = group ? starts : nullptr;
                    std::vector<std::int64_t> memory(40);
                    args.workspace = memory.data();
                    auto* const splits = reinterpret_cast<std::int32_t*>(memory.data());
                    const bool each = group && deterministic;
                    const auto aligned = [](std::int64_t bytes) {
                        while (bytes % 16 != 0) ++bytes;
                        return bytes;
                    };
                    const std::int64_t counts = aligned(4 * (each ? batch : 1)),
                                       begins = each ? aligned(8 * (batch + 1)) : 0;
                    for (std::int64_t i = 0; i < batch; ++i) splits[i] = static_cast<std::int32_t>(2 + i);
                    if (each)
                        for (std::int64_t i = 0; i <= batch; ++i)
                            memory[static_cast<std::size_t>(counts / 8 + i)] = 100 * i;
                    const std::int64_t of_entry = each            ? 2 + b
                                                  : deterministic ? 2
                                                                  : 1,
                                       rows = group ? starts[b + 1] - starts[b] : 9;
                    const std::int64_t start = each    ? 100 * b
                                               : group ? 3 * starts[b] * std::int64_t{16}
                                                       : b * 3 * of_entry * 9 * 16;
                    const auto found = kernels::DqPartials::of(config, args, b);
                    const auto* const base = reinterpret_cast<const unsigned char*>(memory.data());
                    if (reinterpret_cast<const unsigned char*>(found.data) != base + counts + begins)
                        return false;
                    const auto matrix = found.matrix(2, 1, Extent::of(rows, 1), Extent::of(16, 1));
                    if (matrix.offset(4, 5) != start + ((2 * of_entry + 1) * rows + 4) * 16 + 5) return false;
                }
    return true;
}

struct Cached {
    std::int64_t page_size = 0, start = 0, keys = 0, begin = 0, end = 0; ///< page_size 0: not in pages
    kernels::Mask mask;
    std::int64_t rows = 1;
    bool padded = true; ///< keys behind the last one are not read
};

/// The tiles of a block: whole at multiples of n0 among the slots, so that none lies in two pages.
bool tiles_of(const Cached& cached) {
    constexpr std::int64_t n0 = 4, hk = 1;
    constexpr std::int32_t table[] = {7, 3, 9, 1, 8, 2, 6, 5};
    CacheContext ctx;
    ctx.config.algorithm.tile = {.m0 = 16, .n0 = 4, .n1 = 4};
    ctx.config.algorithm.pad = {true, cached.padded, 1, 1};
    PagedKvArgs args;
    args.shape = {Mode::batch, 1, 2, 2, 1, cached.keys, 0, 0, 4, 4};
    args.k.batch_stride = args.v.batch_stride = 1000;
    args.k.head_stride = args.v.head_stride = 300;
    args.k.row_stride = args.v.row_stride = 4;
    if (cached.page_size > 0) {
        args.place.block_table = table;
        args.place.page_size = cached.page_size;
        args.place.is_gappy = true;
    }
    const Entry entry{cached.rows, cached.keys, 0, cached.start};
    const auto in = kernels::CacheMatrices::of(ctx, args, entry, kernels::FwdItem{0, 1, 0, 0}, hk,
                                               {cached.begin, cached.end});
    // Keys that are not in pages have tiles of their own block.
    const std::int64_t first_slot = cached.page_size > 0 ? cached.start : -cached.begin;
    std::int64_t read = cached.end;
    while (!cached.padded && cached.end == cached.keys && read % n0 != 0) ++read;

    const auto visits = in.tiles(cached.mask, {0, cached.rows}, n0);
    std::vector<std::int64_t> visited;
    for (std::int64_t t = visits.first(); t < visits.end && visited.size() < 50; t = visits.next(t))
        visited.push_back(t);
    std::vector<std::int64_t> needed;
    std::int64_t t = 0;
    for (std::int64_t key = cached.begin; key < cached.end; ++t) {
        std::int64_t next = key + 1;
        while (next < read && (first_slot + next) % n0 != 0) ++next;
        const auto tile = in.tile(ctx, {t});
        if (tile.row != t * n0 || tile.first != key || tile.end != next) return false;
        const auto none = in.tile(ctx, {t, false});
        if (none.first != none.end) return false;
        const std::int64_t real = std::min(next, cached.end);
        std::vector<kernels::Matrix> matrices{in.keys(tile), in.values(tile)};
        // Of an entry that is not split teams have the same, found with a division that is prepared.
        if (cached.page_size > 0 && cached.begin == 0 && cached.end == cached.keys && cached.padded) {
            const kernels::PagedKeys of_teams{in};
            const kernels::Divisor of_page(static_cast<std::uint32_t>(cached.page_size));
            for (const auto& staged :
                 {of_teams.staged_keys(ctx, t, of_page), of_teams.staged_values(ctx, t, of_page)}) {
                if (staged.row != tile.row) return false;
                matrices.push_back(staged.matrix);
            }
        }
        for (const auto& matrix : matrices) {
            if (matrix.rows.size != tile.row + real - key || matrix.rows.read != tile.row + next - key)
                return false;
            const std::int64_t page =
                cached.page_size > 0 ? table[(cached.start + key) / cached.page_size] : 0;
            const std::int64_t slot =
                cached.page_size > 0 ? (cached.start + key) % cached.page_size : cached.start + key;
            if (matrix.offset(tile.row + 1, 2) != page * 1000 + hk * 300 + (slot + 1) * 4 + 2) return false;
        }
        bool seen = false;
        const kernels::Mask& m = cached.mask;
        for (std::int64_t i = 0; i < cached.rows; ++i)
            for (std::int64_t j = key; j < real; ++j)
                seen = seen || (j < i + m.x && (j >= i - m.y + 1 || (j < m.sink && i < m.sink_rows)));
        if (seen) needed.push_back(t);
        key = next;
    }
    // A first tile that begins among the slots of a page may be visited for keys before the block alone.
    if (cached.begin == cached.end) return visited.empty();
    const bool in_vain = cached.mask.sink == 0 && (first_slot + cached.begin) % n0 != 0 && !visited.empty() &&
                         visited.front() == 0;
    if (in_vain && (needed.empty() || needed.front() != 0)) visited.erase(visited.begin());
    return visited == needed;
}

/// Keys of an entry are divided among splits (S-1): ranges of one width, one after another, the last ones shorter or empty.
bool splits_are_right() {
    for (std::int64_t keys = 0; keys < 20; ++keys)
        for (std::int64_t splits = 1; splits < 9; ++splits) {
            std::int64_t width = 0, begin = 0;
            while (width * splits < keys) ++width;
            for (std::int64_t s = 0; s < splits; ++s) {
                Partials partials;
                partials.num_splits = splits;
                const auto range = CacheContext{}.split_keys(partials, s, keys);
                const std::int64_t end = std::min(begin + width, keys);
                if (range.begin != begin || range.end != end) return false;
                begin = end;
            }
            if (begin != keys) return false;
        }
    return true;
}

} // namespace

bool lengths_are_right() {
    return splits_are_right() && entries_are_right() && places_are_right() && extents_are_right() &&
           partials_are_right();
}

bool cache_tiles_are_right() {
    for (const std::int64_t page_size : {0, 4, 8, 12})
        for (const std::int64_t start : {0, 1, 3, 6})
            for (const std::int64_t keys : {0, 1, 5, 8, 13})
                for (std::int64_t begin = 0; begin <= keys; begin += 3)
                    for (std::int64_t end = begin; end <= keys; ++end)
                        for (const bool padded : {true, false})
                            for (const kernels::Mask& mask :
                                 {kernels::Mask{keys, 2, 0, 0}, kernels::Mask{3, 2, 0, 0},
                                  kernels::Mask{9, -2, 0, 0}, kernels::Mask{keys + 1, -6, 2, 100},
                                  kernels::Mask{keys + 1, -6, 3, 100}, kernels::Mask{keys + 1, -6, 4, 100},
                                  kernels::Mask{keys + 1, -6, 5, 100}})
                                if (!tiles_of({page_size, start, keys, begin, end, mask, 2, padded}))
                                    return false;
    return true;
}

bool packed_heads_are_right() {
    float logits[6] = {};
    for (const bool padded : {false, true})
        for (const Mode mode : {Mode::batch, Mode::group})
            for (const std::int64_t rows : {1, 2})
                for (const BiasType bias : {BiasType::no_bias, BiasType::alibi, BiasType::elementwise})
                    for (const bool sink : {false, true})
                        for (const MaskType type : {MaskType::no_mask, MaskType::top_left,
                                                    MaskType::bottom_right, MaskType::window_generic})
                            for (const std::int64_t left : {-1, 0, 1}) {
                                KernelConfig config;
                                config.algorithm.pad.s = padded;
                                config.signature.bias = bias;
                                config.signature.mask = MaskClass::generic;
                                config.signature.has_sink_logit = sink;
                                PagedKvArgs args;
                                args.shape = {mode, 1, 6, 2, rows, 9, 0, 0, 8, 8};
                                if (mode == Mode::group) {
                                    args.shape.max_seqlen_q = rows;
                                    args.shape.seqlen_q = 3 - rows;
                                }
                                args.score.sink_logit = sink ? logits : nullptr;
                                args.mask = {type, left, 0, 0};
                                // Row 0 sees key 0: no left bound, or literal coordinates with y ≥ 1 (M-7).
                                const bool from_first =
                                    type == MaskType::no_mask ||
                                    (type == MaskType::window_generic ? left + 1 >= 1 : left < 0);
                                for (const auto& [drops, scale] :
                                     {std::pair(true, QScale::no_scale),
                                      std::pair(false, QScale::per_token_head)}) {
                                    KernelConfig apart = config;
                                    apart.signature.has_dropout = drops;
                                    apart.signature.qscale = scale;
                                    if (kernels::PackedHeads::of(apart, args, false).any()) return false;
                                }
                                for (const bool takes : {false, true}) {
                                    const bool packs = padded && rows == 1 && from_first &&
                                                       bias != BiasType::alibi && !(takes && sink);
                                    const auto heads = kernels::PackedHeads::of(config, args, takes);
                                    if (heads.heads != (packs ? 3 : 1) || heads.any() != packs) return false;
                                }
                            }
    for (const std::int64_t heads : {1, 3})
        for (std::int64_t x = -2; x < 12; ++x)
            for (const std::int64_t keys : {0, 1, 7, 9}) {
                const kernels::PackedHeads packed{heads};
                // Of row 0, whose keys begin with the first.
                const std::int64_t seen = heads == 1 ? keys : std::clamp<std::int64_t>(x, 0, keys);
                const kernels::Mask mask{x, 4, 1, 2};
                if (packed.seen(mask, keys) != seen || packed.rows(5) != 5 * heads ||
                    packed.first(2) != 2 * heads)
                    return false;
                const kernels::Mask inside = packed.in_tile(mask, keys);
                if (heads == 1 &&
                    (inside.x != x || inside.y != 4 || inside.sink != 1 || inside.sink_rows != 2))
                    return false;
                if (heads > 1 && (inside.x < keys || inside.y < heads || inside.sink > 0)) return false;
            }
    return true;
}

} // namespace fmha::test
