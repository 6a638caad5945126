#include "kernels/targets/cannot_launch.hpp"

#include "dispatcher/types/element.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace fmha::targets {

namespace {

/// Kernels copy packed elements by the byte and take block scales by rows of consecutive bytes.
std::optional<std::string> wrong_strides(std::string_view name, const TensorView& view) {
    constexpr std::int64_t far = std::int64_t{1} << 22;
    const std::int64_t line = view.row_stride == 1 ? view.col_stride : view.row_stride;
    const bool by_line = view.row_stride == 1 || view.col_stride == 1;
    const auto wrong = [&](std::string_view rule) {
        return fmt::format(
            "tensor {} of {} has row stride {}, column stride {}, head stride {} and batch stride {}; {}",
            name, to_string(view.type), view.row_stride, view.col_stride, view.head_stride, view.batch_stride,
            rule);
    };
    if (view.type == ElementType::fp4 &&
        (!by_line || line % 2 != 0 || view.head_stride % 2 != 0 || view.batch_stride % 2 != 0))
        return wrong("packed elements lie in lines that begin with a byte, so that all strides but one are "
                     "even (T-2)");
    if (view.type == ElementType::e8m0 && (!by_line || line >= far))
        return wrong("block scales lie in lines of consecutive bytes, less than 4 MiB apart (Q-5)");
    return std::nullopt;
}

} // namespace

std::optional<std::string> cannot_launch(const KernelConfig& config, const FwdArgs& args) {
    const Signature& s = config.signature;
    const Tile& tile = config.algorithm.tile;
    const ElementTypes types = element_types(s.data_type, fp8_flavour(config.arch));
    const auto wrong_type = [](std::string_view name, const TensorView& view, ElementType type) {
        return fmt::format("tensor {} is {}, the kernel takes {}", name, to_string(view.type),
                           to_string(type));
    };
    if (args.shape.mode != s.mode)
        return fmt::format("mode is {}, the kernel runs {}", to_string(args.shape.mode), to_string(s.mode));
    if (args.q.type != types.q) return wrong_type("q", args.q, types.q);
    if (args.k.type != types.k) return wrong_type("k", args.k, types.k);
    if (args.v.type != types.v) return wrong_type("v", args.v, types.v);
    if (args.o.type != types.o) return wrong_type("o", args.o, types.o);
    if (args.shape.hdim_q > s.hdim_q || args.shape.hdim_v > s.hdim_v)
        return fmt::format("head dimensions ({}, {}) exceed the kernel's ({}, {})", args.shape.hdim_q,
                           args.shape.hdim_v, s.hdim_q, s.hdim_v);
    if (args.score.bias_type != s.bias)
        return fmt::format("bias is {}, the kernel has {}", to_string(args.score.bias_type),
                           to_string(s.bias));
    if (args.score.bias_type == BiasType::elementwise && args.bias.type != types.bias)
        return wrong_type("bias", args.bias, types.bias);
    if ((args.score.logits_soft_cap > 0.0F) != s.has_logits_soft_cap)
        return fmt::format("logits_soft_cap is {}, the kernel was built {} it", args.score.logits_soft_cap,
                           s.has_logits_soft_cap ? "with" : "without");
    if (args.mask.type != MaskType::no_mask && s.mask == MaskClass::none)
        return fmt::format("mask is {}, the kernel has no mask", to_string(args.mask.type));
    const bool has_lower_bound = args.mask.type == MaskType::window_generic ||
                                 (args.mask.type != MaskType::no_mask && args.mask.left >= 0);
    if (has_lower_bound && s.mask == MaskClass::causal)
        return fmt::format("window_left={} needs a kernel with mask class generic, this one is causal",
                           args.mask.left);
    if (args.mask.sink > 0 && !s.has_sink)
        return fmt::format("sink_size={} needs a kernel with sink tokens", args.mask.sink);
    if (args.score.sink_logit != nullptr && !s.has_sink_logit)
        return "sink logits need a kernel that has them";
    if (args.lse.present() && !s.has_lse) return "an LSE buffer was given to a kernel that does not store it";
    if (args.dropout.p_drop > 0.0F && !s.has_dropout)
        return fmt::format("p_drop={} needs a kernel with dropout", args.dropout.p_drop);
    if (args.shape.min_seqlen_q > 0 && !s.skip_min_seqlen_q)
        return fmt::format("min_seqlen_q={} needs a kernel that can skip", args.shape.min_seqlen_q);
    if (args.quant.qscale != s.qscale)
        return fmt::format("qscale is {}, the kernel has {}", to_string(args.quant.qscale),
                           to_string(s.qscale));
    for (const auto& [name, view] :
         {std::pair{"q", &args.q}, std::pair{"k", &args.k}, std::pair{"v", &args.v},
          std::pair{"q_descale", &args.quant.q_descale}, std::pair{"k_descale", &args.quant.k_descale},
          std::pair{"v_descale", &args.quant.v_descale}})
        if (auto reason = wrong_strides(name, *view)) return reason;
    if (args.quant.qscale == QScale::blockscale &&
        (args.quant.block_scale_size_q % tile.m0 != 0 || args.quant.block_scale_size_k % tile.n0 != 0))
        return fmt::format(
            "scale blocks of {} rows and {} keys are not multiples of the tile's m0={} and n0={}",
            args.quant.block_scale_size_q, args.quant.block_scale_size_k, tile.m0, tile.n0);
    return std::nullopt;
}

} // namespace fmha::targets
