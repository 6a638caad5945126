#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/targets/hip/plan_types.hpp"

/// The places of tiles in LDS.
namespace fmha::hip_target {

/// LDS that one block may use.
constexpr int lds_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia ? 232448 : unit == MatrixUnit::cdna4 ? 163840 : 65536;
}

namespace planning {

constexpr bool is_rdna(MatrixUnit unit) {
    return unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4;
}

/// How many scales a step has, and who keeps how many words of them.
constexpr void plan_scales(BlockPlan& plan) {
    const int lines = plan.key.columns > plan.value.columns ? plan.key.columns : plan.value.columns;
    const int blocks = plan.value.depth / plan.second.scale_block;
    plan.key.scale_blocks = narrow(plan.key.step / plan.first.scale_block);
    plan.value.scale_blocks = narrow(plan.value.step / plan.second.scale_block);
    plan.weights.block_maxima = narrow(plan.first.acc.row_tiles * blocks);
    plan.staging.ahead_scales = narrow((lines + plan.threads - 1) / plan.threads);
}

/// Units of 16 bytes on different banks of LDS.
constexpr int bank_units(MatrixUnit unit) {
    return unit == MatrixUnit::cdna4 ? 16 : 8;
}

/// How a tile of a right operand, or a step of one, lies in LDS. `width`: units of 16 bytes of a line that lanes access
/// together.
constexpr Image operand_image(const BlockPlan& plan, const OperandPlan& operand, int width) {
    const int depth = plan.staging.async == AsyncCopies::tiles ? operand.depth : operand.step;
    const int lines = operand.by_column ? operand.columns : depth,
              elements = operand.by_column ? depth : operand.columns;
    if (plan.staging.async != AsyncCopies::steps || operand.copy_words == 0)
        return Image::padded(lines, elements, operand.type);
    return Image::swizzled(lines, elements, operand.type, bank_units(plan.unit), width);
}

/// Whether accumulators and query take so many registers of CDNA that a SIMD holds one wave, which then has registers to spare.
constexpr bool has_simd_alone(const BlockPlan& plan) {
    // 8 bits need registers beside that for conversions.
    const int most = element_bits(plan.key.type) <= 8 ? 208 : 255;
    return is_cdna(plan.unit) &&
           plan.first.acc.registers + plan.second.acc.registers + plan.query.words > most;
}

/// Blocks that registers let a compute unit of CDNA hold, roughly.
constexpr int blocks_by_registers(const BlockPlan& plan) {
    constexpr int registers = 512, beside = 40, simds = 4;
    const int taken = plan.first.acc.registers + plan.second.acc.registers + plan.query.words + beside;
    const int waves = registers / taken > 1 ? registers / taken : 1;
    const int blocks = waves * simds * plan.wave_size / plan.threads;
    return blocks > 1 ? blocks : 1;
}

/// How many steps of `bytes` bytes LDS may hold beside `rest` bytes: as many as leave room for the blocks that registers let a compute
/// unit hold, and take turns so that each step of a tile always has the same place.
constexpr int step_buffers(const BlockPlan& plan, int bytes, int rest, int pages) {
    if (plan.unit != MatrixUnit::cdna4) return 2;
    for (const OperandPlan* operand : {&plan.key, &plan.value})
        if (operand->copy_words == 0 || operand->copies(plan.threads) == 0) return 2;
    constexpr int most = 8;
    const int reached = 65536 - pages;
    const int room = lds_limit(plan.unit) / blocks_by_registers(plan) - rest;
    const int steps = plan.key.steps() + plan.value.steps();
    int found = 2;
    for (int buffers = 3; buffers <= most && buffers <= steps; ++buffers)
        if (steps % buffers == 0 && buffers * bytes <= (room < reached ? room : reached)) found = buffers;
    return found;
}

/// Whether the steps of batch prefill on CDNA 2 and 3, of 16 bits, would leave room in LDS for one block a compute unit, though registers have
/// room for two: a buffer of its own for every second step is worth less than another wave, which works while one waits.
constexpr bool wants_second_block(const BlockPlan& plan, const KernelConfig& cfg) {
    constexpr int small = 64;
    const bool older = plan.unit == MatrixUnit::cdna2 || plan.unit == MatrixUnit::cdna3;
    return older && api_traits_of(cfg.signature.family).lists_pages && element_bits(plan.key.type) == 16 &&
           plan.first.acc.registers < small && !has_simd_alone(plan);
}

/// Whether LDS has room for two waves a SIMD on RDNA, where registers have room for five or six: with a query of 192 channels or more, and two
/// buffers. Read from memory, beside one buffer, it leaves room for six blocks.
constexpr bool leaves_few_waves(const BlockPlan& plan) {
    constexpr int lanes = 32, simds = 4, few = 2; // which share the LDS of two compute units
    const int blocks = 2 * lds_limit(plan.unit) / plan.lds_bytes;
    return is_rdna(plan.unit) && blocks * plan.threads <= few * simds * lanes;
}

/// Lays out LDS. Returns false when it does not fit.
constexpr bool plan_lds(BlockPlan& plan, const KernelConfig& cfg) {
    const int limit = lds_limit(matrix_unit(cfg.arch));
    const Tile& tile = cfg.algorithm.tile;
    plan.query.image = plan.random = {};
    // Lanes read a line each, or, by key, neighbouring channels of the same line.
    const int width =
        plan.value.by_column ? 1 : plan.second.acc.cols * element_bits(plan.value.type) / 8 / 16;
    plan.key.image = operand_image(plan, plan.key, 1);
    plan.value.image = operand_image(plan, plan.value, width);
    Image &key = plan.key.image, &value = plan.value.image, &query = plan.query.image;
    if (plan.query.place == OperandPlace::lds) query = Image::padded(tile.m0, tile.k0max, plan.query.type);
    if (cfg.signature.has_dropout) plan.random = Image::padded(tile.n0, tile.m0, ElementType::uint8);

    const int pages = 2 * plan.staging.ahead_bytes();
    const int rest = query.bytes() + plan.random.bytes() + pages;
    if (plan.staging.async == AsyncCopies::tiles) {
        plan.random.offset = query.bytes();
        plan.key.stage = key.bytes();
        plan.value.stage = value.bytes();
        key.offset = rest;
        value.offset = rest + 2 * plan.key.stage;
        plan.lds_bytes = value.offset + 2 * plan.value.stage;
        return plan.lds_bytes <= limit;
    }
    // Steps of keys and of values take turns in the same buffers, two or more, or in one where two do not fit. They come first,
    // because asynchronous copies reach the first 64 KB.
    const int buffer = key.bytes() > value.bytes() ? key.bytes() : value.bytes();
    plan.staging.buffers =
        narrow(plan.staging.async == AsyncCopies::steps ? step_buffers(plan, buffer, rest, pages) : 2);
    const bool shares = plan.staging.async == AsyncCopies::none && wants_second_block(plan, cfg);
    // A second buffer would cost half of the waves, or more.
    const bool streams = is_rdna(plan.unit) && plan.query.place == OperandPlace::memory;
    const int blocks = streams ? 3 : shares ? 2 : 1;
    const int stages = rest + 2 * buffer <= limit / blocks ? plan.staging.buffers : 1;
    plan.key.stage = plan.value.stage = stages > 1 ? buffer : 0;
    plan.staging.pages_at = stages * buffer;
    query.offset = plan.staging.pages_at + pages;
    plan.random.offset = query.offset + query.bytes();
    plan.lds_bytes = rest + stages * buffer;
    const int shared = WeightPlan::shared_bytes * plan.threads;
    if (plan.second.copies == 2 && plan.lds_bytes + shared <= limit) {
        plan.weights.shared_at = plan.lds_bytes;
        plan.lds_bytes += shared;
    }
    constexpr int reached = 65536;
    if (plan.staging.async == AsyncCopies::steps && (stages == 1 || stages * buffer + pages > reached))
        return false;
    return plan.lds_bytes <= limit;
}

} // namespace planning

} // namespace fmha::hip_target
