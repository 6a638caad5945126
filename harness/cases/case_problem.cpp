#include "harness/cases/case_problem.hpp"

#include "dispatcher/types/check_append.hpp"
#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/cache_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace fmha::harness {
namespace {

/// A value that is 0 in the floats of an argument asks for nothing, or for a default, which the case does not mean.
void check_underflow(const char* rule, const char* field, double value) {
    if (value != 0.0 && static_cast<float>(value) == 0.0F)
        throw ProblemError(rule, field, fmt::format("{}", value),
                           fmt::format("{} is {}, which is 0 in the floats that kernels take", field, value));
}

/// Rules about values that a problem does not hold because no kernel depends on them.
void check_arguments(const Case& c) {
    check_underflow("C-1", "logits_soft_cap", c.logits_soft_cap);
    check_underflow("D-1", "p_drop", c.p_drop);
    check_underflow("H-3", "scale_s", c.scale_s);
    check_underflow("O-1", "scale_o", c.scale_o);
    const ScoreArgs score{.scale_s = static_cast<float>(c.scale_s),
                          .scale_o = static_cast<float>(c.scale_o),
                          .logits_soft_cap = static_cast<float>(c.logits_soft_cap)};
    const DropoutArgs dropout{.p_drop = static_cast<float>(c.p_drop)};
    QuantArgs quant;
    quant.qscale = c.qscale;
    quant.block_scale_size_q = c.block_scale_q;
    quant.block_scale_size_k = c.block_scale_k;
    std::vector<std::int32_t> starts{0};
    const auto& physical = c.physical_k.empty() ? c.seqlen_k : c.physical_k;
    if (c.mode == Mode::group && c.data_type == DataType::mxfp4)
        for (std::int64_t b = 0; b < c.batch; ++b)
            starts.push_back(static_cast<std::int32_t>(
                starts.back() + physical[physical.size() == 1 ? 0 : static_cast<std::size_t>(b)]));
    check_values(c.data_type, score, dropout, quant, starts);
}

std::vector<std::int32_t> cached_lengths(const Case& c) {
    std::vector<std::int32_t> cached;
    for (std::int64_t b = 0; b < c.batch; ++b)
        cached.push_back(
            static_cast<std::int32_t>(c.seqlen_k[c.seqlen_k.size() == 1 ? 0 : static_cast<std::size_t>(b)]));
    return cached;
}

/// P-3, of the lengths alone: pages of an entry have room for its keys, wherever they lie.
void check_pages(const Case& c) {
    const std::int64_t pages = room_of(c) / c.cache.page_size;
    const std::vector<std::int32_t> cached = cached_lengths(c),
                                    table(static_cast<std::size_t>(pages * c.batch), 0);
    const Shape shape{.batch = c.batch};
    const LengthArrays lengths{.seqlen_k = cached.data()};
    check_cache(shape, lengths,
                {.block_table = table.data(),
                 .block_table_stride = pages,
                 .page_size = c.cache.page_size,
                 .page_count = 1});
}

/// V-3, of the lengths alone: where the pages lie makes no difference.
void check_room(const Case& c) {
    const std::vector<std::int32_t> cached = cached_lengths(c);
    AppendKvArgs args;
    args.shape.batch = c.batch;
    args.shape.seqlen_k = room_of(c);
    args.seqlen_knew = c.append.seqlen_knew;
    args.lengths.seqlen_k = cached.data();
    check_append(args);
}

/// Whether Q, K or V has the wide stride of the case, if there is one.
bool widens_input(const Case& c) {
    return c.wide_tensor == "q" || c.wide_tensor == "k" || c.wide_tensor == "v";
}
bool widens_pages(const Case& c) {
    return is_paged(c) && (c.wide_tensor == "k" || c.wide_tensor == "v");
}

/// Strides of a case are above 0, and only a wide one can be beyond those of tensor maps. A map of pages counts in steps of what
/// divides the strides of pages and of heads, and pages in vectors have none.
bool mappable(const Case& c) {
    constexpr std::int64_t end_of_strides = std::int64_t{1} << 40, most_steps = (std::int64_t{1} << 31) - 2;
    const ElementTypes types = element_types(c.data_type, Fp8Flavour::ocp);
    if (!widens_input(c)) return true;
    if (!widens_pages(c))
        return c.mode == Mode::group || c.batch == 1 ||
               element_bytes(types.q, c.wide_batch_stride) < end_of_strides;
    if (is_vectorized(c)) return true;
    const std::int64_t row = (c.wide_tensor == "v" ? c.hdim_v : c.hdim_q) + c.stride_padding;
    const std::int64_t of_head = c.iperm == Layout::bshd ? row : row * c.cache.page_size + c.stride_padding;
    const std::int64_t common = std::gcd(c.wide_batch_stride, c.nhead_k > 1 ? of_head : 0);
    return element_bytes(types.k, common) < end_of_strides &&
           (pool_pages(c) - 1) * (c.wide_batch_stride / common) + (c.nhead_k - 1) * (of_head / common) <=
               most_steps;
}

std::int64_t longest(const std::vector<std::int64_t>& logical, const std::vector<std::int64_t>& physical) {
    return std::ranges::max(physical.empty() ? logical : physical);
}

/// Of forward and keys in pages: strides are head dimensions, of V by column lengths, and sums of their multiples, each with the padding (L-2);
/// memory begins at a page. V by column counts in batch mode, and of pages in vectors nothing does (invocation.cpp).
std::int64_t alignment_of(const Case& c) {
    const ElementTypes types = element_types(c.data_type, Fp8Flavour::ocp);
    const bool batch = c.mode == Mode::batch, in_vectors = is_vectorized(c);
    const bool counts = widens_pages(c) ? !in_vectors : batch;
    const std::int64_t wide = widens_input(c) && counts ? c.wide_batch_stride : 0;
    const std::int64_t line_of_v = in_vectors                   ? 0
                                   : c.v_layout == VLayout::row ? c.hdim_v
                                   : batch                      ? longest(c.seqlen_k, c.physical_k)
                                                                : 0;
    std::int64_t common = most_tensor_alignment;
    for (const auto& [type, line] : {std::pair{types.q, c.hdim_q}, {types.v, line_of_v}})
        for (const std::int64_t stride : {line + c.stride_padding, c.stride_padding, wide})
            common = std::gcd(common, element_bytes(type, stride));
    return common;
}

bool gives(LengthForm form, LengthForm wanted) {
    return form == wanted || form == LengthForm::both;
}

/// The arrays that the arguments of the case have.
Presence presence_of(const Case& c) {
    const ApiTraits& api = traits_of(c.family);
    const bool group = c.mode == Mode::group;
    Presence presence;
    presence.seqstart_q = group;
    presence.seqstart_k = (group && !api.lists_pages) || c.cache.gappy;
    presence.seqlen_q = gives(c.length_form_q, LengthForm::seqlen);
    presence.seqlen_k = gives(c.length_form_k, LengthForm::seqlen) || api.stores_keys;
    presence.cu_seqlen_q = gives(c.length_form_q, LengthForm::cu_seqlen);
    presence.cu_seqlen_k = gives(c.length_form_k, LengthForm::cu_seqlen);
    presence.is_gappy = c.cache.gappy;
    presence.block_table = has_block_table(c);
    presence.cache_batch_idx = c.cache.cache_batch_idx;
    presence.rotary = api.stores_keys && rotates(c);
    return presence;
}

} // namespace

Problem to_problem(const Case& c, std::string_view arch) {
    check_arguments(c);
    const ApiTraits& api = traits_of(c.family);
    const bool append = api.stores_keys;
    if (append) check_room(c);
    const bool group = c.mode == Mode::group;
    ProblemBuilder builder;
    builder.api_family(c.family)
        .gfx_arch(arch)
        .data_type(c.data_type)
        .group_mode(group)
        .dims(c.hdim_q, c.hdim_v, c.batch, computed_rows(c, longest(c.seqlen_q, c.physical_q)),
              api.reads_cache ? stated_seqlen_k(c) : longest(c.seqlen_k, c.physical_k))
        .nheads(c.nhead_q, c.nhead_k)
        .variable_lengths(presence_of(c))
        .mask_type(c.mask)
        .window(c.window_left, c.window_right)
        .sink_size(c.sink_size)
        .bias_type(c.bias)
        .lse(c.lse && !append)
        .logits_soft_cap(c.logits_soft_cap > 0.0)
        .dropout(c.p_drop > 0.0)
        .v_rowmajor(c.v_layout == VLayout::row)
        .sink_logit(c.sink_logits != SinkLogits::none)
        .qscale_type(c.qscale)
        .fp8_static_quant(c.static_quant)
        .min_seqlen_q(c.min_seqlen_q)
        .num_splits(c.split.num_splits)
        .bwd_flags(c.backward.dbias, c.store_randval, c.backward.deterministic)
        .reduce_dk_dv(c.backward.reduce_dk_dv)
        .compute_units(c.backward.compute_units)
        .rope_type(append ? c.append.rope : Rope::none)
        .rotary_dim(append ? rotary_dim_of(c) : 0);
    if (c.cache.page_size != 0 || api.always_paged)
        builder.page_size(static_cast<std::int32_t>(c.cache.page_size)).paged_kv(true);
    if (api.lists_pages) {
        builder.kv_cache(c.cache.kv_layout, c.cache.kv_lookup, static_cast<std::int32_t>(c.cache.page_size));
        if (widens_pages(c))
            builder.kv_pool_bytes(element_bytes(element_types(c.data_type, Fp8Flavour::ocp).k,
                                                pool_pages(c) * c.wide_batch_stride));
    }
    if (api.tensor_maps) builder.tensor_alignment(alignment_of(c)).tensors_mappable(mappable(c));
    // Entries may all be empty, but a launch needs a positive bound (N-2, N-4).
    if (group)
        builder.max_seqlen(computed_rows(c, std::max<std::int64_t>(1, std::ranges::max(c.seqlen_q))),
                           std::ranges::max(c.seqlen_k));
    Problem problem = builder.build();
    if (api.reads_cache && !append && is_paged(c)) check_pages(c);
    return problem;
}

} // namespace fmha::harness
