#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/plan_types.hpp"

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

/// Lays out LDS. Returns false when it does not fit.
constexpr bool plan_lds(BlockPlan& plan, const KernelConfig& cfg) {
    const int limit = lds_limit(matrix_unit(cfg.arch));
    const Tile& tile = cfg.algorithm.tile;
    const int keys = plan.async ? tile.n0 : tile.k1;
    plan.key = Image::of(tile.n0, plan.async ? tile.k0max : tile.k0, plan.type_k);
    plan.value =
        plan.value_by_channel ? Image::of(tile.n1, keys, plan.type_v) : Image::of(keys, tile.n1, plan.type_v);
    if (plan.query_place == QueryPlace::lds) plan.query = Image::of(tile.m0, tile.k0max, plan.type_q);
    if (cfg.signature.has_dropout) plan.random = Image::of(tile.n0, tile.m0, ElementType::uint8);

    int at = plan.query.bytes();
    plan.random.offset = at;
    at += plan.random.bytes();
    if (plan.async) {
        plan.key_stage = plan.key.bytes();
        plan.value_stage = plan.value.bytes();
        plan.key.offset = at;
        plan.value.offset = at + 2 * plan.key_stage;
        plan.lds_bytes = plan.value.offset + 2 * plan.value_stage;
        return plan.lds_bytes <= limit;
    }
    // Steps of keys and of values take turns in the same two buffers, or in one where two do not fit.
    const int buffer = plan.key.bytes() > plan.value.bytes() ? plan.key.bytes() : plan.value.bytes();
    const int stages = at + 2 * buffer <= limit ? 2 : 1;
    plan.key.offset = plan.value.offset = at;
    plan.key_stage = plan.value_stage = stages == 2 ? buffer : 0;
    plan.lds_bytes = at + stages * buffer;
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

/// Decides whether the next step is read ahead, and how many words of it a thread has.
constexpr void plan_read_ahead(BlockPlan& plan, const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const auto rounds = [&](int units) { return (units + plan.threads - 1) / plan.threads; };
    const int bits_k = element_bits(plan.type_k), bits_v = element_bits(plan.type_v);
    const bool transposed = plan.value_by_channel && cfg.signature.v_layout == VLayout::row;
    const int keys = 4 * rounds(tile.n0 * tile.k0 * bits_k / 128), units = tile.k1 * tile.n1 * bits_v / 128;
    const int values = transposed ? 16 * rounds(units / 4) : 4 * rounds(units);
    const int words = keys > values ? keys : values;
    const int used = plan.score_registers + plan.output_registers + plan.query_words + words;
    plan.read_ahead = !plan.async && used <= read_ahead_limit(plan.unit);
    plan.ahead_words = static_cast<std::int16_t>(plan.read_ahead ? words : 1);
}

} // namespace planning
} // namespace fmha::hip_target
