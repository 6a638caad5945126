#include "kernels/targets/hip/cannot_execute.hpp"

#include "dispatcher/types/type_classes.hpp"
#include "kernels/programs/head_rows.hpp"
#include "kernels/targets/hip/block_shape.hpp"
#include "kernels/targets/hip/family_plan.hpp"
#include "kernels/targets/hip/plan_lds.hpp"
#include "kernels/targets/with_program.hpp"
#include "kernels/targets/wrong_features.hpp"

#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

std::string ws_features(const KernelConfig& config) {
    const Signature& s = config.signature;
    const std::string found = fmt::format(
        "found {} of {} on {}, mode {}, V by {}, bias {}, qscale {}, {} dropout", to_string(s.family),
        to_string(s.data_type), config.arch.view(), to_string(s.mode), to_string(s.v_layout),
        to_string(s.bias), to_string(s.qscale), s.has_dropout ? "with" : "without");
    if (kernels::HeadRows::serve(config))
        return fmt::format(
            "a warp-specialised kernel whose query heads share a tile is forward of fp16 or bf16 on "
            "sm_90 in batch mode, V by row, without bias, scales and dropout; {}",
            found);
    return fmt::format(
        "a warp-specialised kernel runs on sm_90 without dropout: forward, paged-KV or batch prefill "
        "(linear layout) of fp16 or bf16, V by row, without scales, or of fp8, fp8bf16 or fp8fp32 with "
        "qscale {} or {}, V by column in forward alone; {}",
        to_string(QScale::no_scale), to_string(QScale::pertensor), found);
}

std::string ws_tiles(const KernelConfig& config) {
    const Tile& tile = config.algorithm.tile;
    const GemmTriples& warp = config.algorithm.warp;
    return fmt::format(
        "a warp-specialised kernel has one to three teams of 64 rows (one where query heads share a tile), "
        "and multiplies 64 rows, a multiple of 16 columns up to 256, 16 deep (of fp8 multiples of 32 keys, "
        "at most 128 channels of V, 32 deep; over pages of paged-KV a divisor of 128 keys, of batch prefill "
        "pages of 8 keys or more, of fp8 of 16), found {} teams, a tile of {} by {} and {} channels, "
        "instructions {}x{}x{} and {}x{}x{}",
        config.algorithm.wave.m0, tile.m0, tile.n0, tile.n1, warp.m0, warp.n0, warp.k0, warp.m1, warp.n1,
        warp.k1);
}

std::string describe(const KernelConfig& config, const BlockShape& plan) {
    const Tile& tile = config.algorithm.tile;
    const GemmTriples& warp = config.algorithm.warp;
    switch (plan.problem) {
    case PlanProblem::none:
        break;
    case PlanProblem::no_plan:
        return fmt::format("no plan says how a GPU runs kernels of {}", to_string(config.signature.family));
    case PlanProblem::unknown_unit:
        return fmt::format("the matrix instructions of {} are not in the table", config.arch.view());
    case PlanProblem::no_instruction:
        return fmt::format("{} has no matrix instruction {}x{}x{} or {}x{}x{} for {}", config.arch.view(),
                           warp.m0, warp.n0, warp.k0, warp.m1, warp.n1, warp.k1,
                           to_string(config.signature.data_type));
    case PlanProblem::different_shapes:
        return fmt::format("the two products have instructions of different shapes, {}x{} and {}x{}", warp.m0,
                           warp.n0, warp.m1, warp.n1);
    case PlanProblem::mixed_operands:
        return fmt::format("{} multiplies operands of two types", to_string(config.signature.data_type));
    case PlanProblem::waves_along_keys:
        return fmt::format("waves lie along keys or channels ({} and {}): a wave must own whole rows, except "
                           "in split-KV on NVIDIA with "
                           "16-bit types, one wave along rows, V by row and one step over the keys of a tile",
                           config.algorithm.wave.n0, config.algorithm.wave.n1);
    case PlanProblem::row_tiles:
        return fmt::format("{} rows do not divide into {} waves of whole instructions", tile.m0,
                           config.algorithm.wave.m0);
    case PlanProblem::key_tiles:
        return fmt::format("{} keys are not a multiple of the instruction's columns", tile.n0);
    case PlanProblem::first_depth:
        return fmt::format("k0max={} is not a multiple of k0={}, or k0 of the instruction's depth",
                           tile.k0max, tile.k0);
    case PlanProblem::second_depth:
        return fmt::format("n0={} is not a multiple of k1={}, or k1 of the instruction's depth", tile.n0,
                           tile.k1);
    case PlanProblem::channel_tiles:
        return fmt::format("n1={} is not a multiple of the instruction's columns", tile.n1);
    case PlanProblem::weight_keys:
        return fmt::format(
            "{} keys are too few for an operand of the second product: its lanes hold keys that "
            "lie further apart",
            warp.k1);
    case PlanProblem::weight_blocks:
        return "the lanes of the second product hold keys of blocks that have other scales";
    case PlanProblem::lds:
        return fmt::format("a block needs {} bytes of LDS, {} has {}", plan.lds_bytes, config.arch.view(),
                           lds_limit(plan.unit));
    case PlanProblem::combine_channels:
        return fmt::format("a combine kernel has tiles of a multiple of 32 channels, found n1={}", tile.n1);
    case PlanProblem::append_rows:
        return fmt::format("an append kernel has 64 queries and 64 keys in a tile, found m0={} and n0={}",
                           tile.m0, tile.n0);
    case PlanProblem::gradient_rows:
        return fmt::format(
            "the first and the last stage of backward have 64 rows in a tile and multiples of {} "
            "channels, found m0={} and head dimensions ({}, {})",
            line_channels, tile.m0, config.signature.hdim_q, config.signature.hdim_v);
    case PlanProblem::backward_waves: {
        const GemmTriples& wave = config.algorithm.wave;
        return fmt::format(
            "the waves of backward lie along keys in all products but that of dQ, found {}x{}, {}x{} "
            "and {}x{}",
            wave.m0, wave.n0, wave.m1, wave.n1, wave.m2, wave.n2);
    }
    case PlanProblem::ws_features:
        return ws_features(config);
    case PlanProblem::rows_of_heads:
        return fmt::format("rows of several query heads share a tile on sm_90 alone, found max_seq_len_q={} "
                           "and m0={}",
                           config.algorithm.max_seq_len_q, tile.m0);
    case PlanProblem::ws_tiles:
        return ws_tiles(config);
    }
    return {};
}

/// Of the programs of attention.
std::optional<std::string> unfit_attention(const KernelConfig& config) {
    const Signature& s = config.signature;
    if (auto reason = targets::wrong_features(config)) return reason;
    const bool mx_type = is_micro_scaled(s.data_type);
    if (mx_type != (s.qscale == QScale::mx))
        return fmt::format("data type {} and qscale {} do not belong together (Q-5)", to_string(s.data_type),
                           to_string(s.qscale));
    if (mx_type && s.v_layout == VLayout::row)
        return fmt::format("data type {} needs V by column (Q-5)", to_string(s.data_type));
    if (s.hdim_q > config.algorithm.tile.k0max)
        return fmt::format("hdim_q={} does not fit the query tile of k0max={}", s.hdim_q,
                           config.algorithm.tile.k0max);
    return std::nullopt;
}

/// The reason why this target has no kernel of a program for a configuration, beside that of its plan.
template <KernelFamily family>
std::optional<std::string> unfit(kernels::Program<family>, const KernelConfig& config) {
    if constexpr (!PlannedFamily<family> || kernels::RowProgram<kernels::Program<family>>)
        return std::nullopt;
    else
        return unfit_attention(config);
}

std::optional<std::string> unfit(kernels::Program<KernelFamily::fwd_appendkv>, const KernelConfig&) {
    return std::nullopt;
}

std::optional<std::string> unfit(kernels::Program<KernelFamily::bwd_dq_dk_dv>, const KernelConfig& config) {
    const std::int64_t most = config.algorithm.max_seq_len_q;
    if (most <= config.algorithm.tile.m0) return std::nullopt;
    return fmt::format("a kernel that stores dQ itself has all of its {} query rows in one tile, found m0={}",
                       most, config.algorithm.tile.m0);
}

} // namespace

std::optional<std::string> cannot_execute(const KernelConfig& config) {
    auto reason =
        targets::with_program(config.signature.family, [&](auto program) { return unfit(program, config); });
    if (reason) return reason;
    const BlockShape plan = block_shape(config);
    if (plan.problem != PlanProblem::none) return describe(config, plan);
    return std::nullopt;
}

} // namespace fmha::hip_target
