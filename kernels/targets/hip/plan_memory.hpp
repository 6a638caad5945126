#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/plan_types.hpp"
#include "kernels/targets/hip/transposing_read.hpp"

#include <cstdint>

/// What lies where in LDS, and how it gets there.
namespace fmha::hip_target {

/// LDS that one block may use.
constexpr int lds_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia ? 232448 : unit == MatrixUnit::cdna4 ? 163840 : 65536;
}

namespace planning {

/// How many scales a step has, and who keeps how many words of them.
constexpr void plan_scales(BlockPlan& plan, const Tile& tile) {
    const auto narrow = [](int number) { return static_cast<std::int16_t>(number); };
    const int lines = tile.n0 > tile.n1 ? tile.n0 : tile.n1;
    plan.key_blocks = narrow(tile.k0 / plan.first.scale_block);
    plan.value_blocks = narrow(tile.k1 / plan.second.scale_block);
    plan.block_maxima = narrow(plan.row_tiles * (tile.n0 / plan.second.scale_block));
    plan.ahead_scales = narrow((lines + plan.threads - 1) / plan.threads);
}

/// Units of 16 bytes on different banks of LDS.
constexpr int bank_units(MatrixUnit unit) {
    return unit == MatrixUnit::cdna4 ? 16 : 8;
}

constexpr Image value_image(const BlockPlan& plan, const Tile& tile) {
    const int keys = plan.async == AsyncCopies::tiles ? tile.n0 : tile.k1;
    const int lines = plan.value_by_channel ? tile.n1 : keys,
              elements = plan.value_by_channel ? keys : tile.n1;
    if (plan.async != AsyncCopies::steps || plan.value_words == 0)
        return Image::padded(lines, elements, plan.type_v);
    // Lanes read a line each, or, by key, neighbouring channels of the same line.
    const int width = plan.value_by_channel ? 1 : plan.second.cols * element_bits(plan.type_v) / 8 / 16;
    return Image::swizzled(lines, elements, plan.type_v, bank_units(plan.unit), width);
}

/// Lays out LDS. Returns false when it does not fit.
constexpr bool plan_lds(BlockPlan& plan, const KernelConfig& cfg) {
    const int limit = lds_limit(matrix_unit(cfg.arch));
    const Tile& tile = cfg.algorithm.tile;
    plan.query = plan.random = {};
    plan.key = plan.async == AsyncCopies::tiles ? Image::padded(tile.n0, tile.k0max, plan.type_k)
               : plan.async == AsyncCopies::steps
                   ? Image::swizzled(tile.n0, tile.k0, plan.type_k, bank_units(plan.unit), 1)
                   : Image::padded(tile.n0, tile.k0, plan.type_k);
    plan.value = value_image(plan, tile);
    if (plan.query_place == QueryPlace::lds) plan.query = Image::padded(tile.m0, tile.k0max, plan.type_q);
    if (cfg.signature.has_dropout) plan.random = Image::padded(tile.n0, tile.m0, ElementType::uint8);

    const int rest = plan.query.bytes() + plan.random.bytes();
    if (plan.async == AsyncCopies::tiles) {
        plan.random.offset = plan.query.bytes();
        plan.key_stage = plan.key.bytes();
        plan.value_stage = plan.value.bytes();
        plan.key.offset = rest;
        plan.value.offset = rest + 2 * plan.key_stage;
        plan.lds_bytes = plan.value.offset + 2 * plan.value_stage;
        return plan.lds_bytes <= limit;
    }
    // Steps of keys and of values take turns in the same two buffers, or in one where two do not fit. They come first,
    // because asynchronous copies reach the first 64 KB.
    const int buffer = plan.key.bytes() > plan.value.bytes() ? plan.key.bytes() : plan.value.bytes();
    const int stages = rest + 2 * buffer <= limit ? 2 : 1;
    plan.key_stage = plan.value_stage = stages == 2 ? buffer : 0;
    plan.query.offset = stages * buffer;
    plan.random.offset = plan.query.offset + plan.query.bytes();
    plan.lds_bytes = rest + stages * buffer;
    constexpr int reached = 65536;
    if (plan.async == AsyncCopies::steps && (stages == 1 || 2 * buffer > reached)) return false;
    return plan.lds_bytes <= limit;
}

/// Registers that a wave may keep the query tile in. Beyond that it is read again for every product.
constexpr int query_register_limit(MatrixUnit unit) {
    return unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4 ? 32 : 128;
}

/// Registers that a wave may use for accumulators, query tile and the next step: with more, what else a kernel needs
/// does not fit into those of an RDNA wave, or of two waves on CDNA.
constexpr int read_ahead_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia                               ? 0
           : unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4 ? 144
                                                                    : 176;
}

/// Decides whether the next step of what goes through registers is read ahead, and how many words of it a thread has.
constexpr void plan_read_ahead(BlockPlan& plan, const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const auto rounds = [&](int units) { return (units + plan.threads - 1) / plan.threads; };
    const int bits_k = element_bits(plan.type_k), bits_v = element_bits(plan.type_v);
    const bool transposed = plan.value_by_channel && cfg.signature.v_layout == VLayout::row;
    const int units = tile.k1 * tile.n1 * bits_v / 128;
    const int keys = plan.key_words > 0 ? 0 : 4 * rounds(tile.n0 * tile.k0 * bits_k / 128);
    const int values = plan.value_words > 0 ? 0 : transposed ? 16 * rounds(units / 4) : 4 * rounds(units);
    const int words = keys > values ? keys : values;
    const int used = plan.score_registers + plan.output_registers + plan.query_words + words;
    plan.read_ahead = words > 0 && used <= read_ahead_limit(plan.unit);
    plan.ahead_words = static_cast<std::int16_t>(plan.read_ahead ? words : 1);
}

/// The widest unit, in words, in which CDNA copies `lines` lines of `line_bytes` straight to LDS, where the threads of a
/// block fill consecutive units. 0 when they do not go round in whole lines and waves, or when the bytes of a unit, more
/// than `run` of them, do not lie together in memory.
constexpr int copy_words(const BlockPlan& plan, int lines, int line_bytes, int run) {
    for (int words = plan.unit == MatrixUnit::cdna4 ? 4 : 1; words > 0; words -= 3) {
        const int unit = 4 * words, down = plan.threads * unit / line_bytes;
        if (unit <= run && line_bytes % 16 == 0 && plan.threads * unit % line_bytes == 0 &&
            (down & (down - 1)) == 0 && lines * line_bytes % (plan.wave_size * unit) == 0)
            return words;
    }
    return 0;
}

/// Fills in which lane reads what where LDS is read by columns. False when the second product's operand is not made of
/// such columns.
constexpr bool plan_transposed_reads(BlockPlan& plan) {
    const TransposingRead read = transposing_read(plan.type_v);
    const ProductPlan& p = plan.second;
    for (int bit = 0; bit < 6; ++bit) {
        const int row = read.source_row.lane[bit], col = read.source_col.lane[bit];
        const bool in_block = 1 << bit < transposing_lanes;
        if (in_block && (p.right_outer.lane[bit] != read.col.lane[bit] || plan.value_key_lane.lane[bit] != 0))
            return false;
        plan.read_key.lane[bit] = in_block ? static_cast<std::int8_t>(row > 0 ? plan.value_key[row] : 0)
                                           : plan.value_key_lane.lane[bit];
        plan.read_channel.lane[bit] = in_block ? static_cast<std::int8_t>(col) : p.right_outer.lane[bit];
    }
    if (p.right_elements % read.rows != 0) return false;
    for (int e = 0; e < p.right_elements; ++e) {
        int key = plan.value_key[e / read.rows * read.rows];
        for (int bit = 1; bit < read.rows; bit *= 2)
            if ((e & bit) != 0) key += plan.value_key[bit];
        if (plan.value_key[e] != key) return false;
    }
    return true;
}

/// Decides what is copied how, and what V looks like in LDS. `steps`: whether the pipeline's steps may be copied
/// asynchronously.
constexpr void plan_copies(BlockPlan& plan, const KernelConfig& cfg, bool steps) {
    const Tile& tile = cfg.algorithm.tile;
    const Pipeline pipeline = cfg.algorithm.pipeline;
    const bool transposing =
        pipeline == Pipeline::qr_async_trload || pipeline == Pipeline::qr_async_trload_v3;
    const bool column = cfg.signature.v_layout == VLayout::column;
    plan.async = AsyncCopies::none;
    plan.key_words = plan.value_words = 0;
    plan.reads_transposed = false;
    plan.value_by_channel = column || !(element_bits(plan.type_v) == 32 || plan.load_matrix);
    if (!transposing && pipeline != Pipeline::qr_async) return;
    if (plan.unit == MatrixUnit::nvidia) {
        if (pipeline != Pipeline::qr_async) return;
        plan.async = AsyncCopies::tiles;
        plan.key_words = plan.value_words = 4;
        return;
    }
    const bool cdna =
        plan.unit == MatrixUnit::cdna2 || plan.unit == MatrixUnit::cdna3 || plan.unit == MatrixUnit::cdna4;
    // Scales come with the step, in the padding of its lines.
    if (!steps || !cdna || plan.first.scale_block != 0) return;
    const int size_k = element_bits(plan.type_k) / 8, size_v = element_bits(plan.type_v) / 8;
    const int key_words = copy_words(plan, tile.n0, tile.k0 * size_k, 16);
    if (key_words == 0) return;
    plan.async = AsyncCopies::steps;
    plan.key_words = static_cast<std::int8_t>(key_words);
    const bool by_column =
        !column && transposing && has_transposing_read(plan.unit, plan.type_v) && plan_transposed_reads(plan);
    if (plan.value_by_channel && !column && !by_column) return;
    const int words = column ? copy_words(plan, tile.n1, tile.k1 * size_v, plan.place_run() * size_v)
                             : copy_words(plan, tile.k1, tile.n1 * size_v, 16);
    if (words == 0) return;
    plan.value_words = static_cast<std::int8_t>(words);
    plan.reads_transposed = by_column;
    plan.value_by_channel = column;
}

/// Copies and LDS. Returns false when they do not fit.
constexpr bool plan_staging(BlockPlan& plan, const KernelConfig& cfg) {
    plan_copies(plan, cfg, true);
    if (plan_lds(plan, cfg)) return true;
    if (plan.async != AsyncCopies::steps) return false;
    plan_copies(plan, cfg, false);
    return plan_lds(plan, cfg);
}

} // namespace planning

} // namespace fmha::hip_target
