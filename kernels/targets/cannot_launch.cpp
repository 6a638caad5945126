#include "kernels/targets/cannot_launch.hpp"

#include "dispatcher/types/element.hpp"

#include <fmt/format.h>

#include <limits>
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

std::optional<std::string> wrong_mode(const KernelConfig& config, const Shape& shape) {
    if (shape.mode == config.signature.mode) return std::nullopt;
    return fmt::format("mode is {}, the kernel runs {}", to_string(shape.mode),
                       to_string(config.signature.mode));
}

std::optional<std::string> wrong_head(std::int64_t hdim, std::int64_t most) {
    if (hdim <= most) return std::nullopt;
    return fmt::format("head dimension {} exceeds the kernel's {}", hdim, most);
}

} // namespace

std::optional<std::string> wrong_tensors(std::initializer_list<TypedTensor> tensors) {
    for (const auto& [name, view, type] : tensors) {
        if (view.type != type)
            return fmt::format("tensor {} is {}, the kernel takes {}", name, to_string(view.type),
                               to_string(type));
        if (auto reason = wrong_strides(name, view)) return reason;
    }
    return std::nullopt;
}

std::optional<std::string> too_many_blocks(std::int64_t blocks) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (blocks <= most) return std::nullopt;
    return fmt::format("the launch needs {} blocks; allowed: at most {}", blocks, most);
}

std::optional<std::string> wrong_shape(const KernelConfig& config, const Shape& shape) {
    const Signature& s = config.signature;
    if (auto reason = wrong_mode(config, shape)) return reason;
    if (shape.hdim_q > s.hdim_q || shape.hdim_v > s.hdim_v)
        return fmt::format("head dimensions ({}, {}) exceed the kernel's ({}, {})", shape.hdim_q,
                           shape.hdim_v, s.hdim_q, s.hdim_v);
    if (shape.min_seqlen_q > 0 && !s.skip_min_seqlen_q)
        return fmt::format("min_seqlen_q={} needs a kernel that can skip", shape.min_seqlen_q);
    return std::nullopt;
}

std::optional<std::string> wrong_lengths(const Shape& shape, const LengthArrays& lengths,
                                         bool keys_elsewhere) {
    if (shape.mode != Mode::group) return std::nullopt;
    if (lengths.seqstart_q == nullptr) return "group mode needs the array seqstart_q (N-2)";
    if (lengths.seqstart_k == nullptr && !keys_elsewhere)
        return "group mode needs the array seqstart_k (N-2)";
    return std::nullopt;
}

std::optional<std::string> wrong_mask(const KernelConfig& config, const MaskArgs& mask) {
    const Signature& s = config.signature;
    if (mask.type != MaskType::no_mask && s.mask == MaskClass::none)
        return fmt::format("mask is {}, the kernel has no mask", to_string(mask.type));
    const bool has_lower_bound =
        mask.type == MaskType::window_generic || (mask.type != MaskType::no_mask && mask.left >= 0);
    if (has_lower_bound && s.mask == MaskClass::causal)
        return fmt::format("window_left={} needs a kernel with mask class generic, this one is causal",
                           mask.left);
    if (mask.sink > 0 && !s.has_sink)
        return fmt::format("sink_size={} needs a kernel with sink tokens", mask.sink);
    return std::nullopt;
}

std::optional<std::string> wrong_score(const KernelConfig& config, const ScoreArgs& score) {
    const Signature& s = config.signature;
    if (score.bias_type != s.bias)
        return fmt::format("bias is {}, the kernel has {}", to_string(score.bias_type), to_string(s.bias));
    if ((score.logits_soft_cap > 0.0F) != s.has_logits_soft_cap)
        return fmt::format("logits_soft_cap is {}, the kernel was built {} it", score.logits_soft_cap,
                           s.has_logits_soft_cap ? "with" : "without");
    if (score.sink_logit != nullptr && !s.has_sink_logit) return "sink logits need a kernel that has them";
    return std::nullopt;
}

std::optional<std::string> wrong_dropout(const KernelConfig& config, const DropoutArgs& dropout) {
    if (dropout.p_drop > 0.0F && !config.signature.has_dropout)
        return fmt::format("p_drop={} needs a kernel with dropout", dropout.p_drop);
    return std::nullopt;
}

std::optional<std::string> wrong_quant(const KernelConfig& config, const QuantArgs& quant) {
    const Signature& s = config.signature;
    const Tile& tile = config.algorithm.tile;
    if (quant.qscale != s.qscale)
        return fmt::format("qscale is {}, the kernel has {}", to_string(quant.qscale), to_string(s.qscale));
    for (const auto& [name, view] :
         {std::pair{"q_descale", &quant.q_descale}, std::pair{"k_descale", &quant.k_descale},
          std::pair{"v_descale", &quant.v_descale}})
        if (auto reason = wrong_strides(name, *view)) return reason;
    if (quant.qscale == QScale::blockscale &&
        (quant.block_scale_size_q <= 0 || quant.block_scale_size_k <= 0 ||
         quant.block_scale_size_q % tile.m0 != 0 || quant.block_scale_size_k % tile.n0 != 0))
        return fmt::format(
            "scale blocks of {} rows and {} keys are not positive multiples of the tile's m0={} and n0={}",
            quant.block_scale_size_q, quant.block_scale_size_k, tile.m0, tile.n0);
    return std::nullopt;
}

std::optional<std::string> wrong_lse(const KernelConfig& config, const TensorView& lse) {
    if (lse.present() && !config.signature.has_lse)
        return "an LSE buffer was given to a kernel that does not store it";
    return std::nullopt;
}

namespace {

/// Kernels take a list of pages for one wherever there is one.
std::optional<std::string> stray_list(const KvPlace& place) {
    if (place.kv_indptr == nullptr && place.kv_page_indices == nullptr && place.kv_last_page_lens == nullptr)
        return std::nullopt;
    return "kv_indptr, kv_page_indices and kv_last_page_lens belong to the look-up sglang_1d of "
           "batch_prefill "
           "and must be NULL (B-4)";
}

} // namespace

std::optional<std::string> wrong_place(const KernelConfig& config, const KvPlace& place,
                                       const LengthArrays& lengths) {
    const Signature& s = config.signature;
    if (auto reason = stray_list(place)) return reason;
    const std::int64_t n0 = config.algorithm.tile.n0;
    if ((place.page_size > 0) != s.use_paged_kv)
        return fmt::format("page_size is {}, the kernel reads {}", place.page_size,
                           s.use_paged_kv ? "pages" : "keys that are not paged");
    if (place.layout == KvLayout::vectorized)
        return "the vectorized layout of K and V belongs to batch_prefill";
    if (place.page_size % n0 != 0)
        return fmt::format("page_size is {}, the kernel takes multiples of its {} keys a tile",
                           place.page_size, n0);
    if (place.is_gappy && (lengths.seqstart_k == nullptr || lengths.seqlen_k == nullptr))
        return "is_gappy needs seqlen_k and seqstart_k (P-3)";
    return std::nullopt;
}

std::optional<std::string> wrong_pool(const KernelConfig& config, const KvPlace& place, const Shape& shape) {
    const Signature& s = config.signature;
    const bool list = s.kv_lookup == KvLookup::sglang_1d;
    if (place.page_size != s.page_size)
        return fmt::format("page_size is {}, the kernel was built for pages of {}", place.page_size,
                           s.page_size);
    if (place.layout != s.kv_layout)
        return fmt::format("the layout of K and V is {}, the kernel reads {}", to_string(place.layout),
                           to_string(s.kv_layout));
    if (place.lookup != s.kv_lookup)
        return fmt::format("the look-up of pages is {}, the kernel reads {}", to_string(place.lookup),
                           to_string(s.kv_lookup));
    const int vector = 128 / element_bits(stored_types(config).k);
    if (place.layout == KvLayout::vectorized && shape.hdim_q % vector != 0)
        return fmt::format("hdim_q is {}, the vectorized layout takes multiples of {} (B-3)", shape.hdim_q,
                           vector);
    if (shape.batch == 0) return std::nullopt;
    if (auto reason = stray_list(place); !list && reason) return reason;
    if (list && (place.kv_indptr == nullptr || place.kv_page_indices == nullptr))
        return fmt::format("sglang_1d needs kv_indptr and kv_page_indices; {} is NULL (B-4)",
                           place.kv_indptr == nullptr ? "kv_indptr" : "kv_page_indices");
    if (list && place.kv_last_page_lens == nullptr && place.page_size > 1)
        return fmt::format(
            "sglang_1d with pages of {} keys needs kv_last_page_lens, which is NULL; only pages of one key "
            "do without (B-4)",
            place.page_size);
    return std::nullopt;
}

namespace {

std::optional<std::string> wrong_splits(const KernelConfig& config, const Partials& partials) {
    const std::int64_t most =
        std::int64_t{1} << (config.algorithm.max_splits_log2 > 0 ? config.algorithm.max_splits_log2 : 7);
    if (partials.num_splits < 1 || partials.num_splits > most)
        return fmt::format("num_splits is {}, the kernel takes 1 to {} (S-7)", partials.num_splits, most);
    return wrong_tensors(
        {{"o_acc", partials.o_acc, ElementType::fp32}, {"lse_acc", partials.lse_acc, ElementType::fp32}});
}

} // namespace

std::optional<std::string> cannot_split(const KernelConfig& config, const SplitKvArgs& args) {
    const ElementTypes types = stored_types(config);
    std::optional<std::string> reason = wrong_shape(config, args.shape);
    if (!reason)
        reason = wrong_lengths(args.shape, args.lengths,
                               args.place.page_size > 0 && args.lengths.seqlen_k != nullptr);
    if (!reason)
        reason = wrong_tensors({{"q", args.q, types.q}, {"k", args.k, types.k}, {"v", args.v, types.v}});
    ScoreArgs score = args.score;
    score.sink_logit = nullptr;
    if (!reason) reason = wrong_score(config, score);
    if (!reason && score.bias_type == BiasType::elementwise)
        reason = wrong_tensors({{"bias", args.bias, types.bias}});
    if (!reason) reason = wrong_mask(config, args.mask);
    if (!reason) reason = wrong_quant(config, args.quant);
    if (!reason) reason = wrong_place(config, args.place, args.lengths);
    if (!reason) reason = wrong_splits(config, args.partials);
    return reason;
}

std::optional<std::string> cannot_combine(const KernelConfig& config, const SplitKvArgs& args) {
    const Signature& s = config.signature;
    const Partials& partials = args.partials;
    if (auto reason = wrong_mode(config, args.shape)) return reason;
    if (auto reason = wrong_head(args.shape.hdim_v, s.hdim_v)) return reason;
    if (auto reason = wrong_lengths(args.shape, args.lengths, true)) return reason;
    if (auto reason = wrong_splits(config, partials)) return reason;
    const ElementTypes types = stored_types(config);
    if (auto reason = wrong_tensors({{"o", args.o, types.o}})) return reason;
    return wrong_lse(config, args.lse);
}

std::optional<std::string> cannot_append(const KernelConfig& config, const AppendKvArgs& args) {
    const Signature& s = config.signature;
    if (auto reason = wrong_shape(config, args.shape)) return reason;
    const ElementTypes types = stored_types(config);
    if (auto reason = wrong_tensors({{"k", args.k, types.k},
                                     {"v", args.v, types.v},
                                     {"k_new", args.k_new, types.k},
                                     {"v_new", args.v_new, types.v}}))
        return reason;
    if (args.lengths.seqlen_k == nullptr && args.shape.batch > 0)
        return "seqlen_k is absent; append-KV takes the tokens already in the cache (V-1)";
    const KvPlace& place = args.place;
    if (auto reason = stray_list(place)) return reason;
    const bool paged = place.page_size > 0;
    const bool table = place.block_table != nullptr, needed = args.seqlen_knew > 0;
    if (paged != s.use_paged_kv || (table ? !paged : paged && needed))
        return fmt::format("page_size is {} {} a block table, the kernel was built {} pages", place.page_size,
                           table ? "with" : "without", s.use_paged_kv ? "for" : "without");
    if (args.rope.type != s.rope)
        return fmt::format("rope is {}, the kernel has {}", to_string(args.rope.type), to_string(s.rope));
    if (s.rope == Rope::none) return std::nullopt;
    const std::int64_t dim = args.rope.rotary_dim;
    if (dim <= 0 || dim % 16 != 0 || dim > args.shape.hdim_q)
        return fmt::format("rotary_dim is {}; it must be a multiple of 16 from 16 to hdim_q={} (V-4)", dim,
                           args.shape.hdim_q);
    if (args.q.present())
        if (auto reason = wrong_tensors({{"q", args.q, types.q}})) return reason;
    return wrong_tensors({{"cos", args.rope.cos, types.k}, {"sin", args.rope.sin, types.k}});
}

namespace {

/// Of the kernels that read or write partial sums of dQ.
std::optional<std::string> wrong_workspace(const KernelConfig& config, const BwdArgs& args) {
    constexpr std::uintptr_t alignment = 16;
    if (args.deterministic != config.signature.is_deterministic)
        return fmt::format("deterministic is {}, the kernel was built {} it", args.deterministic,
                           config.signature.is_deterministic ? "for" : "without");
    if (args.workspace == nullptr) return "workspace is NULL; the kernel needs a prepared one (20.4)";
    if (reinterpret_cast<std::uintptr_t>(args.workspace) % alignment != 0)
        return fmt::format("workspace is not aligned to {} bytes (20.4)", alignment);
    return std::nullopt;
}

} // namespace

std::optional<std::string> cannot_dot(const KernelConfig& config, const BwdArgs& args) {
    std::optional<std::string> reason = wrong_mode(config, args.shape);
    if (!reason) reason = wrong_head(args.shape.hdim_v, config.signature.hdim_v);
    const ElementTypes types = stored_types(config);
    if (!reason)
        reason = wrong_tensors({{"o", args.o, types.o},
                                {"d_o", args.d_o, types.o},
                                {"lse", args.lse, ElementType::fp32},
                                {"d", args.d, ElementType::fp32}});
    if (!reason && args.d_sink != nullptr && args.score.sink_logit == nullptr)
        reason = "d_sink is wanted, but there are no sink logits";
    return reason;
}

std::optional<std::string> cannot_differentiate(const KernelConfig& config, const BwdArgs& args) {
    const Signature& s = config.signature;
    const ElementTypes types = stored_types(config);
    ScoreArgs score = args.score;
    score.sink_logit = nullptr; // it is in the LSE
    std::optional<std::string> reason = wrong_shape(config, args.shape);
    if (!reason)
        reason = wrong_tensors({{"q", args.q, types.q},
                                {"k", args.k, types.k},
                                {"v", args.v, types.v},
                                {"d_o", args.d_o, types.o},
                                {"lse", args.lse, ElementType::fp32},
                                {"d", args.d, ElementType::fp32},
                                {"dk", args.dk, types.k},
                                {"dv", args.dv, types.v}});
    if (!reason) reason = wrong_score(config, score);
    if (!reason && score.bias_type == BiasType::elementwise)
        reason = wrong_tensors({{"bias", args.bias, types.bias}});
    if (!reason && args.dbias.present() && !s.has_dbias)
        reason = "dbias is wanted from a kernel that does not store it";
    if (!reason && args.dbias.present()) reason = wrong_tensors({{"dbias", args.dbias, types.bias}});
    if (!reason) reason = wrong_mask(config, args.mask);
    if (!reason) reason = wrong_dropout(config, args.dropout);
    if (!reason && args.randval.present() && !(s.is_store_randval && args.dropout.p_drop > 0.0F))
        reason =
            fmt::format("randval is given, but {}",
                        s.is_store_randval ? "p_drop is 0" : "the kernel takes no random bytes from memory");
    if (!reason && args.randval.present())
        reason = wrong_tensors({{"randval", args.randval, ElementType::uint8}});
    if (reason || config.algorithm.max_seq_len_q == 0) return reason ? reason : wrong_workspace(config, args);
    if (args.shape.seqlen_q > config.algorithm.max_seq_len_q)
        return fmt::format("seqlen_q={} exceeds the kernel's {}", args.shape.seqlen_q,
                           config.algorithm.max_seq_len_q);
    if (args.reduce_dk_dv && args.shape.nhead_q > args.shape.nhead_k)
        return "reduce_dk_dv is true, the kernel writes dK and dV of every query head (W-11)";
    return wrong_tensors({{"dq", args.dq, types.q}});
}

std::optional<std::string> cannot_convert_dq(const KernelConfig& config, const BwdArgs& args) {
    std::optional<std::string> reason = wrong_mode(config, args.shape);
    if (!reason) reason = wrong_head(args.shape.hdim_q, config.signature.hdim_q);
    if (!reason) reason = wrong_tensors({{"dq", args.dq, stored_types(config).q}});
    return reason ? reason : wrong_workspace(config, args);
}

} // namespace fmha::targets
