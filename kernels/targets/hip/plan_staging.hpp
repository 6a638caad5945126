#pragma once

#include "kernels/targets/hip/plan_lds.hpp"
#include "kernels/targets/hip/transposing_read.hpp"

#include <cstdint>

/// The ways of tiles to LDS and registers.
namespace fmha::hip_target::planning {

/// Registers that a wave may keep the query tile in. Beyond that it is read again for every product.
constexpr int query_register_limit(MatrixUnit unit) {
    return is_rdna(unit) ? 32 : 128;
}

/// Registers that a wave may use for accumulators, query tile and the next step: with more, the other registers of a kernel
/// do not fit into those of an RDNA wave, or of two waves on CDNA.
constexpr int read_ahead_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia ? 0 : is_rdna(unit) ? 144 : 176;
}

/// The same where a SIMD of CDNA holds one wave.
constexpr int wave_alone_limit = 384;

/// Whether a tile's biases and random bytes take the last registers of the second wave of a SIMD beside long products, which need those for
/// reading ahead and for places in copies least.
constexpr bool crowds_long_products(const BlockPlan& plan, const Signature& has) {
    const bool shares = plan.unit == MatrixUnit::cdna4 && !has_simd_alone(plan);
    return shares && plan.first.is_long() && plan.first.scale_block == 0 &&
           has.bias == BiasType::elementwise && has.has_dropout;
}

/// Whether CDNA asks for the biases of a large tile a group ahead. Not those of bf16, which are added by pairs, and not beside micro-scaled
/// products, unless dropout leaves a SIMD to one wave there anyway: the registers would cost the second wave.
constexpr bool asks_biases_ahead(const BlockPlan& plan, const Signature& has) {
    constexpr int large = 64;
    const bool crowded = plan.first.scale_block != 0 && !has.has_dropout;
    return is_cdna(plan.unit) && plan.first.acc.registers >= large && has.data_type != DataType::bf16 &&
           !crowded;
}

/// RowPlan::stores_anew: where registers are short, on CDNA beside an elementwise bias and on RDNA with 256 channels. With fewer channels other
/// registers let RDNA issue fewer instructions in pairs.
constexpr bool stores_anew(const BlockPlan& plan, const Signature& has) {
    constexpr int wide_output = 128;
    return is_cdna(plan.unit) ? has.bias == BiasType::elementwise
                              : is_rdna(plan.unit) && plan.second.acc.registers >= wide_output;
}

/// Whether kernels of 256 channels and padded head dimensions on RDNA 4 have no register left: with ALiBi, and with random bytes and biases
/// beside a generic mask where values are stored by column. They would have scratch.
constexpr bool crowds_rdna4(const BlockPlan& plan, const Signature& has) {
    const bool adds_all = plan.value.stored_by_column && has.bias == BiasType::elementwise &&
                          has.has_dropout && has.mask == MaskClass::generic;
    return plan.unit == MatrixUnit::rdna4 && !plan.key.whole_lines &&
           (has.bias == BiasType::alibi || adds_all);
}

/// Decides whether threads keep their places in copies, by the registers that are taken. RDNA, where LDS has room for fewer waves than
/// registers have, keeps them while there are registers: caches need some themselves. On CDNA they must not cost a SIMD the third wave, nor
/// the second. Where RDNA 3 does not keep them for a cache, with a bias, it keeps nothing else that can be computed again: such kernels of 256
/// channels had scratch.
constexpr void plan_places(BlockPlan& plan, const KernelConfig& cfg) {
    if (plan.unit == MatrixUnit::nvidia) return;
    const bool rdna = is_rdna(plan.unit);
    const int taken = plan.first.acc.registers + plan.second.acc.registers + plan.query.words;
    const bool costs_third = taken > 96 && taken <= 128, costs_second = taken > 160 && taken <= 200;
    const Signature& has = cfg.signature;
    const bool in_cache = !api_traits_of(has.family).contiguous();
    const bool needs_more = in_cache || crowds_rdna4(plan, has);
    // Those of linear pages of batch prefill have them where a SIMD has registers for a third wave without.
    const bool costs_other =
        (wants_second_block(plan, cfg) && !plan.staging.gathers) || crowds_long_products(plan, cfg.signature);
    plan.staging.keeps_places =
        rdna ? taken <= (needs_more ? 144 : 161) : !costs_third && !costs_second && !costs_other;
    plan.rows.computes_again = plan.unit == MatrixUnit::rdna3 && in_cache && !plan.staging.keeps_places &&
                               has.bias != BiasType::no_bias;
}

/// Patches of a step of the operand that are transposed in registers, so wide that their lines have `words` words.
constexpr int patches(const OperandPlan& operand, int words) {
    return operand.step / 4 * (operand.columns * element_bits(operand.type) / (32 * words));
}
/// The widest patches of which every thread of AMD's blocks has one: wider ones cost the waves that do all of the work more
/// instructions than they save.
constexpr void plan_patches(const BlockShape& plan, OperandPlan& operand) {
    if (plan.unit == MatrixUnit::nvidia) return;
    while (operand.patch_line > 1 && patches(operand, operand.patch_line) < plan.threads)
        operand.patch_line /= 2;
}

/// Such a wave waits for nobody, and nobody works while it waits.
constexpr void plan_wave_alone(BlockPlan& plan) {
    if (!has_simd_alone(plan)) return;
    // A read of LDS takes as long as two of the products that such tiles have.
    const auto ahead = [](const ProductPlan& p) {
        const int at_once = p.acc.row_tiles * p.parts * (p.is_long() ? 2 : 1);
        return p.own_factor ? 0 : (2 + at_once - 1) / at_once;
    };
    if (plan.query.place == OperandPlace::registers) {
        plan.query.parked = true;
        plan.first.reads_ahead = narrow(ahead(plan.first));
    }
    plan.second.reads_ahead = narrow(ahead(plan.second));
    for (ProductPlan* p : {&plan.first, &plan.second})
        p->right_registers = narrow((1 + p->reads_ahead) * p->right_fragment);
}

/// Right fragments are read ahead also by waves that share a SIMD, where nothing goes through the registers that this takes, on CDNA 4: its
/// products of 16 × 16 are over before LDS has answered, those of 32 × 32 half over, and those of 64 deep are not. Not where four waves share
/// the registers.
constexpr void plan_shared_simd(BlockPlan& plan, const KernelConfig& cfg) {
    const bool straight =
        plan.staging.async == AsyncCopies::steps && plan.key.copy_words > 0 && plan.value.copy_words > 0;
    if (plan.unit != MatrixUnit::cdna4 || !straight || has_simd_alone(plan) || plan.query.streams()) return;
    constexpr int of_16 = 4, few = 96;
    const int taken = plan.first.acc.registers + plan.second.acc.registers + plan.query.words;
    for (ProductPlan* p : {&plan.first, &plan.second}) {
        const bool is_short = p->acc.fragment == of_16;
        if (p->own_factor || (!is_short && taken <= few)) continue;
        if (crowds_long_products(plan, cfg.signature)) continue;
        p->reads_ahead = narrow(is_short ? 6 : p->is_long() ? 1 : 2);
        p->right_registers = narrow((1 + p->reads_ahead) * p->right_fragment);
    }
}

/// Whether RDNA reads the keys ahead alone: `kept` registers leave no room for the words of a step of the values, but for those of the keys.
/// Over a cache, and on RDNA 4 with elementwise biases or dropout, such kernels of 256 channels would have scratch.
constexpr bool keeps_keys_alone(const BlockPlan& plan, const Signature& has, int kept, int keys, int values) {
    constexpr int most = 176;
    const bool crowded =
        !api_traits_of(has.family).contiguous() ||
        (plan.unit == MatrixUnit::rdna4 && (has.bias == BiasType::elementwise || has.has_dropout)) ||
        crowds_rdna4(plan, has);
    return is_rdna(plan.unit) && !crowded && 0 < keys && keys < values && kept + keys <= most &&
           kept + values > read_ahead_limit(plan.unit);
}

/// Decides whether the next step of the operands that go through registers is read ahead, and how many words of it a thread has.
constexpr void plan_read_ahead(BlockPlan& plan, const KernelConfig& cfg) {
    plan_patches(plan, plan.key);
    plan_patches(plan, plan.value);
    const auto words_of = [&](const OperandPlan& operand) {
        if (operand.copy_words > 0) return 0;
        const int units = operand.step * operand.columns * element_bits(operand.type) / 128;
        const auto rounds = [&](int number) { return (number + plan.threads - 1) / plan.threads; };
        const bool turned = operand.by_column != operand.stored_by_column; // in patches of four lines
        return turned ? 4 * operand.patch_line * rounds(patches(operand, operand.patch_line))
                      : 4 * rounds(units);
    };
    const int keys = words_of(plan.key), values = words_of(plan.value);
    const int kept = plan.first.acc.registers + plan.second.acc.registers + plan.query.words;
    const bool in_pages = api_traits_of(cfg.signature.family).lists_pages;
    plan.staging.keys_alone = keeps_keys_alone(plan, cfg.signature, kept, keys, values);
    const int words = plan.staging.keys_alone || keys > values ? keys : values;
    const int used = kept + words;
    // Another half of a file is as large as the accumulators and the query of a wave that has it for itself. But bytes of pages would lie
    // in memory on CDNA 3, whose compiler does not know the number of a step in time.
    const bool in_memory = in_pages && element_bits(plan.key.type) == 8 && plan.unit == MatrixUnit::cdna3;
    const bool alone = has_simd_alone(plan) && used <= wave_alone_limit && !in_memory;
    plan.staging.read_ahead =
        words > 0 && (used <= read_ahead_limit(plan.unit) || alone || plan.staging.keys_alone);
    // Beside pages it would cost a wave.
    plan.staging.reads_first = plan.staging.read_ahead && !plan.staging.keys_alone &&
                               (alone || (plan.unit != MatrixUnit::nvidia && !in_pages));
    plan.staging.ahead_words = static_cast<std::int16_t>(plan.staging.read_ahead ? words : 1);
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

/// Fills in the reads of each lane where LDS is read by columns. False when the operand of `product` is not made of such
/// columns.
constexpr bool plan_transposed_reads(const ProductPlan& product, OperandPlan& operand) {
    const TransposingRead read = transposing_read(operand.type);
    const DepthOrder& order = operand.order;
    for (int bit = 0; bit < 6; ++bit) {
        const int row = read.source_row.lane[bit], col = read.source_col.lane[bit];
        const bool in_block = 1 << bit < transposing_lanes;
        if (in_block && (product.right_outer.lane[bit] != read.col.lane[bit] || order.lane.lane[bit] != 0))
            return false;
        operand.read_depth.lane[bit] =
            in_block ? static_cast<std::int8_t>(row > 0 ? order.element[row] : 0) : order.lane.lane[bit];
        operand.read_column.lane[bit] =
            in_block ? static_cast<std::int8_t>(col) : product.right_outer.lane[bit];
    }
    if (product.right_elements % read.rows != 0) return false;
    for (int e = 0; e < product.right_elements; ++e) {
        int depth = order.element[e / read.rows * read.rows];
        for (int bit = 1; bit < read.rows; bit *= 2)
            if ((e & bit) != 0) depth += order.element[bit];
        if (order.element[e] != depth) return false;
    }
    return true;
}

/// Whether CDNA copies the steps of a pipeline that goes through registers elsewhere straight to LDS, V by row. Nobody works while a wave
/// waits that has its SIMD for itself, and hardly anybody where two share one: CDNA 4, where several steps are under way, copies all
/// of 16 bits so. A few tokens over a cache have little work and many keys, of which many must be under way: on CDNA 4; elsewhere with
/// large tiles, whose registers another wave then has. With 256 channels, or 8 bits, such kernels would take the registers of a whole SIMD.
constexpr bool copies_straight(const BlockPlan& plan, const KernelConfig& cfg) {
    constexpr int large = 32, three_waves = 128;
    const ApiTraits& api = api_traits_of(cfg.signature.family);
    const bool cdna4 = plan.unit == MatrixUnit::cdna4, of_16 = element_bits(plan.key.type) == 16;
    if (plan.unit == MatrixUnit::nvidia) return false;
    if (api.contiguous()) {
        if (cfg.algorithm.pipeline != Pipeline::qr) return false;
        const int taken = plan.first.acc.registers + plan.second.acc.registers + plan.query.words;
        return has_simd_alone(plan) ? cdna4 : of_16 && (cdna4 || taken > three_waves);
    }
    const bool fits = of_16 && cfg.algorithm.tile.k0max <= 128 && !has_simd_alone(plan);
    return api.reads_cache && !api.lists_pages && fits && (cdna4 || plan.first.acc.registers >= large);
}

/// Whether tiles are counted, each with matrices of its own: on AMD's GPUs, whose scalar units compare no 64 bits. Not beside the biases of 64
/// scores a lane on RDNA 4, which LLVM would read all at once, in the registers of two other waves, and not over a cache of 256 channels on
/// RDNA 3, where a wave has no registers left: such kernels would have scratch.
constexpr bool counts_tiles(const BlockPlan& plan, const Signature& has) {
    constexpr int many = 64, wide_output = 128;
    const bool reads_biases = plan.unit == MatrixUnit::rdna4 && has.bias == BiasType::elementwise &&
                              !has.has_dropout && plan.first.acc.registers >= many;
    const bool is_full = plan.unit == MatrixUnit::rdna3 && plan.second.acc.registers >= wide_output &&
                         !api_traits_of(has.family).contiguous();
    return plan.unit != MatrixUnit::nvidia && !reads_biases && !is_full;
}

/// Decides the way of every copy, and the shape of V in LDS. `steps`: whether the pipeline's steps may be copied
/// asynchronously.
constexpr void plan_copies(BlockPlan& plan, const KernelConfig& cfg, bool steps) {
    const Tile& tile = cfg.algorithm.tile;
    const Pipeline pipeline = cfg.algorithm.pipeline;
    OperandPlan &key = plan.key, &value = plan.value;
    const bool transposing =
        pipeline == Pipeline::qr_async_trload || pipeline == Pipeline::qr_async_trload_v3;
    const bool column = value.stored_by_column;
    plan.staging.async = AsyncCopies::none;
    plan.staging.counts_tiles = counts_tiles(plan, cfg.signature);
    key.copy_words = value.copy_words = 0;
    value.reads_transposed = false;
    value.by_column = column || !(element_bits(value.type) == 32 || plan.second.load_matrix);
    // On NVIDIA a cache is copied asynchronously; 8-bit values are not, because they are transposed on their way.
    const ApiTraits& api = api_traits_of(cfg.signature.family);
    const bool cached = plan.unit == MatrixUnit::nvidia && element_bits(key.type) == 16 && api.reads_cache &&
                        !api.lists_pages;
    const bool straight = !column && copies_straight(plan, cfg);
    if (!transposing && pipeline != Pipeline::qr_async && !cached && !straight) return;
    if (plan.unit == MatrixUnit::nvidia) {
        if (transposing) return;
        plan.staging.async = AsyncCopies::tiles;
        plan.staging.tiles_ahead = tile.m0 <= 16;
        key.copy_words = value.copy_words = 4;
        return;
    }
    // Rows in small pages have no address that the lanes of a copy could share. CDNA 3 copies from addresses of lanes too, but word by
    // word, four times as many as through registers.
    if (plan.staging.pages_ahead && plan.unit != MatrixUnit::cdna4) return;
    // Nor do vectors gain there, whose every word has an address in registers, unless tiles are large.
    if (plan.staging.gathers_steps && plan.unit != MatrixUnit::cdna4 &&
        (element_bits(key.type) == 8 || wants_second_block(plan, cfg)))
        return;
    // Scales come with the step, in the padding of its lines.
    if (!steps || !is_cdna(plan.unit) || plan.first.scale_block != 0) return;
    const int size_k = element_bits(key.type) / 8, size_v = element_bits(value.type) / 8;
    const int key_words = copy_words(plan, tile.n0, key.step * size_k, 16);
    if (key_words == 0) return;
    plan.staging.async = AsyncCopies::steps;
    key.copy_words = static_cast<std::int8_t>(key_words);
    const bool by_columns =
        !column && has_transposing_read(plan.unit, value.type) && plan_transposed_reads(plan.second, value);
    if (value.by_column && !column && !by_columns) return;
    const int words = column ? copy_words(plan, tile.n1, value.step * size_v, value.order.run() * size_v)
                             : copy_words(plan, value.step, tile.n1 * size_v, 16);
    if (words == 0) return;
    value.copy_words = static_cast<std::int8_t>(words);
    value.reads_transposed = by_columns;
    value.by_column = column;
}

/// Joins as many of the program's steps of an operand, `step` deep, as have up to `most` bytes.
constexpr void join_steps(OperandPlan& operand, int step, int most) {
    operand.step = narrow(step);
    const int bytes = operand.columns * element_bits(operand.type) / 8;
    while (operand.depth % (2 * operand.step) == 0 && 2 * operand.step * bytes <= most)
        operand.step = narrow(2 * operand.step);
    operand.joins_steps = operand.step > step;
}

/// Steps of 8 bits of CDNA 3, and scaled ones: their products are over before the next step has come from memory, so that several come as
/// one where LDS keeps room for the blocks that registers have room for. Of scaled ones a thread reads the next step ahead, for which a wave
/// with 256 channels, or with biases of a tile, has no registers. False when they stay as they are.
constexpr bool plan_joined_steps(BlockPlan& plan, const KernelConfig& cfg) {
    const bool mx =
        plan.first.scale_block != 0 && !has_simd_alone(plan) && cfg.signature.bias != BiasType::elementwise;
    if ((plan.unit != MatrixUnit::cdna3 || element_bits(plan.key.type) != 8) && !mx) return false;
    const Tile& tile = cfg.algorithm.tile;
    for (int most = 16384; most >= 8192; most /= 2) {
        join_steps(plan.key, tile.k0, most);
        join_steps(plan.value, tile.k1, most);
        plan_copies(plan, cfg, true);
        if (mx) plan_scales(plan);
        if (plan_lds(plan, cfg) && (mx || plan.staging.async == AsyncCopies::steps) &&
            plan.lds_bytes * blocks_by_registers(plan) <= lds_limit(plan.unit))
            return true;
    }
    join_steps(plan.key, tile.k0, 0);
    join_steps(plan.value, tile.k1, 0);
    if (mx) plan_scales(plan);
    return false;
}

/// Copies and LDS. Returns false when they do not fit.
constexpr bool plan_staging(BlockPlan& plan, const KernelConfig& cfg) {
    if (plan_joined_steps(plan, cfg)) return true;
    plan_copies(plan, cfg, true);
    // Steps of V through registers need the room of two, beside which no second block fits.
    const bool crowds = wants_second_block(plan, cfg) && plan.value.copy_words == 0;
    if (plan_lds(plan, cfg) && !(crowds && 2 * plan.lds_bytes > lds_limit(plan.unit))) return true;
    if (plan.staging.async != AsyncCopies::steps) return false;
    plan_copies(plan, cfg, false);
    return plan_lds(plan, cfg);
}

} // namespace fmha::hip_target::planning
