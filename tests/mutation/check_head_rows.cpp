// The rows of a tile of several query heads of a KV head: how many heads, which row of which head is where, which blocks a launch has.

#include "kernels/programs/fmha_fwd.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <cstdint>

namespace fmha::test {
namespace {

using kernels::HeadRows;
using kernels::Program;

/// A launch of forward by teams for at most `most` query rows, in tiles of `m0`.
struct Launch {
    KernelConfig config;
    FwdArgs args;

    Launch(std::int16_t m0, std::int64_t most, std::int64_t batch, std::int64_t heads_q, std::int64_t heads_k,
           std::int64_t rows) {
        config.signature.mask = MaskClass::causal;
        config.algorithm.pipeline = Pipeline::ws;
        config.algorithm.tile = {.m0 = m0, .n0 = 16, .n1 = 160};
        config.algorithm.wave.m0 = 1;
        config.algorithm.max_seq_len_q = most;
        args.shape = {Mode::batch, batch, heads_q, heads_k, rows, 100, 0, 0, 64, 64};
        args.q.head_stride = 1000;
        args.q.batch_stride = 1000 * heads_q;
    }
    HeadRows rows() const { return HeadRows::of(config, args); }
};

/// The largest power of two that divides `group` heads and leaves 16 of `m0` rows or more to each.
std::int64_t heads_of_tile(std::int64_t m0, std::int64_t group) {
    std::int64_t heads = 1;
    while (m0 / (2 * heads) >= 16 && group % (2 * heads) == 0) heads *= 2;
    return heads;
}

bool has_heads(const HeadRows& rows, std::int64_t m0, std::int64_t heads) {
    if (!rows.any() || rows.heads(m0) != heads || rows.of_head(m0) != m0 / heads) return false;
    // A team may ask for fewer rows than a tile has.
    if (rows.heads(m0 / heads) != 1) return false;
    for (std::int32_t r = 0; r < m0; ++r)
        if (rows.head(r) != r / (m0 / heads) || rows.row(r) != r % (m0 / heads)) return false;
    return true;
}

bool is_one_head(const HeadRows& rows, std::int64_t m0) {
    if (rows.any() || rows.heads(m0) != 1 || rows.of_head(m0) != m0) return false;
    for (std::int32_t r = 0; r < m0; ++r)
        if (rows.head(r) != 0 || rows.row(r) != r) return false;
    return true;
}

bool heads_are_packed() {
    for (const std::int16_t m0 : {std::int16_t{16}, std::int16_t{32}, std::int16_t{64}, std::int16_t{128}}) {
        for (const std::int64_t heads_k : {1, 3})
            for (const std::int64_t group : {1, 2, 3, 4, 6, 8, 12, 16, 32})
                for (const std::int64_t most : {1, 15, int{m0}}) {
                    const Launch launch(m0, most, 2, group * heads_k, heads_k, most);
                    if (!has_heads(launch.rows(), m0, heads_of_tile(m0, group))) return false;
                }
        // Entries or heads that share memory have tiles of their own; a single one shares it with nobody.
        Launch same_heads(m0, 1, 1, 8, 1, 1), same_entries(m0, 1, 2, 8, 1, 1), one_entry(m0, 1, 1, 8, 1, 1);
        same_heads.args.q.head_stride = 0;
        same_entries.args.q.batch_stride = one_entry.args.q.batch_stride = 0;
        if (!has_heads(same_heads.rows(), m0, 1) || !has_heads(same_entries.rows(), m0, 1) ||
            !has_heads(one_entry.rows(), m0, heads_of_tile(m0, 8)))
            return false;
        // Kernels for any number of rows, for more than a tile has, and by another program.
        Launch other(m0, 1, 2, 8, 1, 1);
        other.config.algorithm.pipeline = Pipeline::qr;
        if (!is_one_head(Launch(m0, 0, 2, 8, 1, 1).rows(), m0) ||
            !is_one_head(Launch(m0, m0 + 1, 2, 8, 1, 1).rows(), m0) || !is_one_head(other.rows(), m0))
            return false;
    }
    return true;
}

/// A few tokens over a cache have as many rows of each head as the longest entry, rounded up to a power of two.
bool tokens_are_packed() {
    KernelConfig config;
    config.algorithm.pad.s = true;
    config.algorithm.tile = {.m0 = 16, .n0 = 64, .n1 = 32};
    config.algorithm.max_seq_len_q = 8;
    PagedKvArgs args;
    const auto rows = [&](const KernelConfig& of) { return HeadRows::of(of, args); };
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const std::int64_t count : {1, 2, 3, 4, 5, 8, 16, 17, 40})
            for (const std::int64_t group : {1, 2, 3, 4, 6, 8, 16}) {
                args.shape = {mode, 2, group * 3, 3, mode == Mode::group ? 40 : count, 100, 0, 0, 64, 64};
                args.shape.max_seqlen_q = mode == Mode::group ? count : 1;
                std::int64_t heads = 1;
                while (2 * heads * count <= 16 && group % (2 * heads) == 0) heads *= 2;
                if (!has_heads(rows(config), 16, heads)) return false;
            }
    // A kernel for one row alone has tokens too.
    KernelConfig for_one = config;
    for_one.algorithm.max_seq_len_q = 1;
    args.shape = {Mode::batch, 2, 48, 3, 1, 100, 0, 0, 64, 64};
    if (!has_heads(rows(for_one), 16, 16)) return false;
    // Kernels that only decode, of other programs, and those in which more than masks asks for a row's head.
    const auto apart = [&](auto change) {
        KernelConfig other = config;
        change(other);
        return is_one_head(rows(other), 16);
    };
    FwdArgs forward;
    forward.shape = args.shape;
    return apart([](KernelConfig& c) { c.algorithm.max_seq_len_q = 0; }) &&
           apart([](KernelConfig& c) { c.algorithm.max_seq_len_q = 9; }) &&
           apart([](KernelConfig& c) { c.algorithm.pad.s = false; }) &&
           apart([](KernelConfig& c) { c.signature.bias = BiasType::elementwise; }) &&
           apart([](KernelConfig& c) { c.signature.bias = BiasType::alibi; }) &&
           apart([](KernelConfig& c) { c.signature.has_dropout = true; }) &&
           apart([](KernelConfig& c) { c.signature.qscale = QScale::pertensor; }) &&
           is_one_head(HeadRows::of(config, forward), 16);
}

/// Blocks, with heads of a tile counted as one; the last tile of rows comes first. A block has all rows of its tile, or none behind the last.
bool blocks_are_right(const Launch& launch, std::int64_t heads, std::int64_t rows_of_head) {
    const Shape& shape = launch.args.shape;
    const std::int64_t q_tiles = (shape.seqlen_q + rows_of_head - 1) / rows_of_head;
    const kernels::FwdGrid grid(launch.config, launch.args);
    const kernels::WsGrid items(launch.config, launch.args);
    if (grid.size() != shape.batch * shape.nhead_q / heads * q_tiles || items.size() != grid.size())
        return false;
    std::int64_t n = 0;
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.nhead_q / heads; ++h)
            for (std::int64_t q = q_tiles - 1; q >= 0; --q, ++n) {
                const kernels::FwdItem item = grid[n];
                if (item.b != b || item.h != h || item.q_tile != q || item.v_tile != 0) return false;
                const std::int64_t m0 = launch.config.algorithm.tile.m0;
                if (Program<KernelFamily::fwd>::rows(launch.config, launch.args, item) != m0) return false;
                const auto rows =
                    kernels::QueryRows::of(launch.config.algorithm.tile, shape.seqlen_q, q, launch.rows());
                if (rows.first != q * rows_of_head ||
                    rows.count != std::min(rows_of_head, shape.seqlen_q - q * rows_of_head))
                    return false;
            }
    return Program<KernelFamily::fwd>::rows(launch.config, launch.args, {0, 0, q_tiles, 0}) <= 0;
}

} // namespace

bool head_rows_are_right() {
    if (!heads_are_packed() || !tokens_are_packed()) return false;
    for (const std::int64_t rows : {1, 15, 16, 17, 31, 32, 33, 63, 64})
        if (!blocks_are_right({64, 64, 2, 24, 3, rows}, 4, 16) ||
            !blocks_are_right({64, 64, 3, 6, 3, rows}, 2, 32) ||
            !blocks_are_right({64, 64, 2, 9, 3, rows}, 1, 64))
            return false;
    return true;
}

} // namespace fmha::test
