#include "reference/matrix/features.hpp"

#include "dispatcher/types/error.hpp"
#include "reference/matrix/key_runs.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace fmha::reference::matrix {
namespace {

/// Channels or keys that share one micro-scale.
constexpr std::int64_t micro_block = 32;

std::int64_t blocks_before(const FwdArgs& args, const std::int32_t* starts, std::int64_t b) {
    return args.shape.mode == Mode::group && starts != nullptr ? starts[b] : 0;
}

/// Multiplies row r of `out` by its descales: `row` is its position inside the entry, `packed_row` inside the
/// tensor.
void descale_channels(const FwdArgs& args, const TensorView& scale, std::int64_t b, std::int64_t h,
                      std::int64_t packed_row, std::int64_t block, Eigen::Ref<Eigen::RowVectorXd> out) {
    if (args.quant.qscale == QScale::no_scale || !scale.present()) return;
    if (args.quant.qscale == QScale::pertensor || args.quant.qscale == QScale::kv_blockscale)
        out *= decode_element(scale, 0, 0, 0, 0);
    if (args.quant.qscale == QScale::per_token_head) out *= decode_element(scale, b, h, packed_row, 0);
    if (args.quant.qscale == QScale::blockscale) out *= decode_element(scale, b, h, block, 0);
    if (args.quant.qscale != QScale::mx) return;
    for (Eigen::Index c = 0; c < out.size(); c += micro_block)
        out.segment(c, std::min<Eigen::Index>(micro_block, out.size() - c)) *=
            decode_element(scale, b, h, packed_row, c / micro_block);
}

} // namespace

EntryExtent entry_extent(const AttentionArgs& args, std::int64_t b) {
    const LengthArrays& given = args.lengths;
    if ((given.seqlen_q != nullptr && given.cu_seqlen_q != nullptr) ||
        (given.seqlen_k != nullptr && given.cu_seqlen_k != nullptr))
        throw ProblemError("N-3", "lengths", "seqlen and cu_seqlen",
                           "a side has both seqlen and cu_seqlen; at most one may be given");
    EntryExtent extent{b, 0, args.shape.seqlen_q, 0, args.shape.seqlen_k};
    const auto take = [b](const std::int32_t* starts, std::int64_t& length) {
        length = std::int64_t{starts[b + 1]} - starts[b];
        return std::int64_t{starts[b]};
    };
    if (args.shape.mode == Mode::group) {
        extent.first_q = take(given.seqstart_q, extent.queries);
        if (given.seqstart_k != nullptr) extent.first_k = take(given.seqstart_k, extent.keys);
    }
    if (given.cu_seqlen_q != nullptr) take(given.cu_seqlen_q, extent.queries);
    if (given.cu_seqlen_k != nullptr) take(given.cu_seqlen_k, extent.keys);
    if (given.seqlen_q != nullptr) extent.queries = given.seqlen_q[b];
    if (given.seqlen_k != nullptr) extent.keys = given.seqlen_k[b];
    if (args.place.lookup == KvLookup::sglang_1d) extent.keys = listed_keys(args.place, b);
    const std::int64_t width = (extent.keys + args.num_splits - 1) / args.num_splits;
    extent.begin = std::min(extent.keys, width * args.split);
    extent.end = std::min(extent.keys, extent.begin + width);
    return extent;
}

VisibleKeys of_split(const VisibleKeys& keys, const EntryExtent& extent) {
    VisibleKeys mine;
    mine.first = std::max(keys.first, extent.begin);
    mine.end = std::max(mine.first, std::min(keys.end, extent.end));
    mine.sink_begin = std::max(keys.sink_begin, extent.begin);
    mine.sink_end = std::max(mine.sink_begin, std::min(keys.sink_end, extent.end));
    return mine;
}

VisibleKeys visible_keys(const MaskArgs& mask, const EntryExtent& extent, std::int64_t i) {
    if (mask.type == MaskType::no_mask) return {0, 0, extent.keys};
    const bool literal = mask.type == MaskType::window_generic;
    const std::int64_t diagonal =
        i + (mask.type == MaskType::bottom_right ? extent.keys - extent.queries : 0);
    const std::int64_t begin = !literal && mask.left < 0 ? 0 : diagonal - mask.left;
    const std::int64_t end = !literal && mask.right < 0 ? extent.keys : diagonal + mask.right + 1;
    VisibleKeys keys;
    keys.end = std::clamp<std::int64_t>(end, 0, extent.keys);
    keys.first = std::clamp<std::int64_t>(begin, 0, keys.end);
    // K-1: the window's lower edge must be able to hide a key from the last query, and rows past Sk see none.
    const bool bounded_left =
        !literal && mask.left >= 0 && (extent.queries - 1) + (diagonal - i) - mask.left > 0;
    if (bounded_left && i < extent.keys) keys.sink_end = std::clamp<std::int64_t>(mask.sink, 0, keys.end);
    if (keys.sink_end >= keys.first) {
        keys.first = 0;
        keys.sink_end = 0;
    }
    return keys;
}

void load_query(const FwdArgs& args, const EntryExtent& extent, const RowId& row, Block out) {
    const std::int64_t packed = extent.first_q + row.i;
    decode_block(args.q, row.b, row.h, packed, 0, out);
    const std::int64_t block =
        blocks_before(args, args.quant.block_scale_seqstart_q, row.b) + row.i / args.quant.block_scale_size_q;
    descale_channels(args, args.quant.q_descale, row.b, row.h, packed, block, out.row(0));
    out *= double{args.score.scale_s};
}

void load_keys(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk, std::int64_t first,
               Block out) {
    if (lies_in_cache(args)) {
        load_cached_keys(args, extent, hk, first, out);
        return;
    }
    decode_block(args.k, extent.b, hk, extent.first_k + first, 0, out);
    const std::int64_t first_block = blocks_before(args, args.quant.block_scale_seqstart_k, extent.b);
    for (Eigen::Index r = 0; r < out.rows(); ++r)
        descale_channels(args, args.quant.k_descale, extent.b, hk, extent.first_k + first + r,
                         first_block + (first + r) / args.quant.block_scale_size_k, out.row(r));
}

void load_values(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk, std::int64_t first,
                 Block out) {
    if (lies_in_cache(args)) {
        load_cached_values(args, extent, hk, first, out);
        return;
    }
    decode_block(args.v, extent.b, hk, extent.first_k + first, 0, out);
    const TensorView& scale = args.quant.v_descale;
    if (args.quant.qscale == QScale::no_scale || !scale.present()) return;
    const std::int64_t first_block = blocks_before(args, args.quant.block_scale_seqstart_k, extent.b);
    if (args.quant.qscale == QScale::pertensor) out *= decode_element(scale, 0, 0, 0, 0);
    for (Eigen::Index r = 0; r < out.rows(); ++r) {
        if (args.quant.qscale == QScale::blockscale)
            out.row(r) *= decode_element(scale, extent.b, hk,
                                         first_block + (first + r) / args.quant.block_scale_size_k, 0);
        if (args.quant.qscale == QScale::mx) {
            Matrix along_channels(1, out.cols());
            decode_block(scale, extent.b, hk, first_block + (first + r) / micro_block, 0, along_channels);
            out.row(r).array() *= along_channels.row(0).array();
        }
    }
}

namespace {

/// Whether β is slope · j: a plain causal mask.
bool counts_columns(const MaskArgs& mask) {
    return (mask.type == MaskType::top_left || mask.type == MaskType::bottom_right) && mask.left < 0 &&
           mask.right == 0;
}

} // namespace

void load_bias(const FwdArgs& args, const EntryExtent& extent, const RowId& row, std::int64_t first,
               Block out) {
    if (args.score.bias_type == BiasType::elementwise) {
        decode_block(args.bias, row.b, row.h, extent.first_q + row.i, first, out);
        return;
    }
    const double slope = args.score.alibi_slopes[row.b * args.score.alibi_stride + row.h];
    using Positions = Eigen::Array<double, 1, Eigen::Dynamic>;
    const Positions keys = Positions::LinSpaced(out.cols(), static_cast<double>(first),
                                                static_cast<double>(first + out.cols() - 1));
    const MaskArgs& mask = args.mask;
    if (counts_columns(mask)) {
        out.row(0).array() = slope * keys;
        return;
    }
    const bool anchored_top = mask.type == MaskType::top_left || mask.type == MaskType::window_generic;
    const std::int64_t position = anchored_top ? row.i : row.i + extent.keys - extent.queries;
    out.row(0).array() = (keys - static_cast<double>(position)).abs() * -slope;
}

double alibi_origin(const FwdArgs& args, const EntryExtent& extent, const RowId& row,
                    const VisibleKeys& keys) {
    if (keys.count() == 0) return 0.0;
    // β has its maximum next to one of the two diagonals or at an end of a run.
    const std::int64_t diagonal = row.i + extent.keys - extent.queries;
    Matrix beta(1, 1);
    double largest = -std::numeric_limits<double>::infinity();
    const auto look = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        for (const std::int64_t j : {begin, end - 1, row.i, diagonal}) {
            load_bias(args, extent, row, std::clamp(j, begin, end - 1), beta);
            largest = std::max(largest, beta(0, 0));
        }
    };
    look(keys.sink_begin, keys.sink_end);
    look(keys.first, keys.end);
    return largest;
}

namespace {

constexpr std::int64_t tile = 32;
using Lanes = std::array<std::uint32_t, tile>;

/// The four words of D-4 for 32 consecutive lanes of one tile.
struct LaneWords {
    std::array<Lanes, 4> word{};

    /// `off` is that of the first lane.
    LaneWords(std::uint64_t seed, std::uint64_t off, std::uint32_t tile_row, std::uint32_t tile_column) {
        for (std::size_t lane = 0; lane < tile; ++lane) {
            word[0][lane] = static_cast<std::uint32_t>(off + lane);
            word[1][lane] = static_cast<std::uint32_t>((off + lane) >> 32);
            word[2][lane] = tile_row;
            word[3][lane] = tile_column;
        }
        auto key_low = static_cast<std::uint32_t>(seed), key_high = static_cast<std::uint32_t>(seed >> 32);
        for (int round = 0; round < 7; ++round, key_low += 0x9E3779B9U, key_high += 0xBB67AE85U)
            for (std::size_t lane = 0; lane < tile; ++lane) {
                const std::uint64_t left = std::uint64_t{0xCD9E8D57U} * word[2][lane];
                const std::uint64_t right = std::uint64_t{0xD2511F53U} * word[0][lane];
                word[0][lane] = static_cast<std::uint32_t>(left >> 32) ^ word[1][lane] ^ key_low;
                word[2][lane] = static_cast<std::uint32_t>(right >> 32) ^ word[3][lane] ^ key_high;
                word[1][lane] = static_cast<std::uint32_t>(left);
                word[3][lane] = static_cast<std::uint32_t>(right);
            }
    }
};

} // namespace

void load_random_bytes(const FwdArgs& args, std::span<const RowId> rows, std::int64_t first,
                       std::int64_t keys, Bytes& out) {
    out.resize(static_cast<Eigen::Index>(rows.size()), keys);
    // Rows that lie in the same tile and take their bytes from the same lanes are neighbours: eight at a
    // time.
    const auto same_lanes = [](const RowId& x, const RowId& y) { return x.h == y.h && x.i / 8 == y.i / 8; };
    for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
        while (end < rows.size() && same_lanes(rows[begin], rows[end])) ++end;
        const RowId& row = rows[begin];
        const std::uint64_t upper_lanes = (row.i & 8) != 0 ? 32 : 0;
        const std::uint64_t off = args.dropout.offset +
                                  static_cast<std::uint64_t>(row.b * args.shape.nhead_q + row.h) * 64U +
                                  upper_lanes;
        for (std::int64_t j = 0; j < keys; j += tile) {
            const LaneWords words(args.dropout.seed, off, static_cast<std::uint32_t>(row.i >> 5),
                                  static_cast<std::uint32_t>((first + j) >> 5));
            const std::int64_t columns = std::min<std::int64_t>(tile, keys - j);
            for (std::size_t r = begin; r < end; ++r) {
                const std::int64_t i = rows[r].i;
                const Lanes& lanes = words.word[static_cast<std::size_t>(((i & 16) >> 3) | ((i & 4) >> 2))];
                for (std::int64_t lane = 0; lane < columns; ++lane)
                    out(static_cast<Eigen::Index>(r), j + lane) =
                        static_cast<std::uint8_t>(lanes[static_cast<std::size_t>(lane)] >> (8 * (i & 3)));
            }
        }
    }
}

} // namespace fmha::reference::matrix
