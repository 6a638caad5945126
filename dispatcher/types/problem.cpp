#include "dispatcher/types/problem.hpp"

#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

#include <limits>

namespace fmha {

namespace {

/// Product that saturates at the largest 64-bit value; non-positive factors give 0.
std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
    std::int64_t product = 1;
    bool saturated = false;
    for (const std::int64_t factor : factors) {
        if (factor <= 0) return 0;
        if (__builtin_mul_overflow(product, factor, &product)) {
            saturated = true;
            product = 1;
        }
    }
    return saturated ? std::numeric_limits<std::int64_t>::max() : product;
}

} // namespace

MaskClass mask_class(MaskType type, std::int64_t window_left) {
    switch (type) {
    case MaskType::no_mask:
        return MaskClass::none;
    case MaskType::window_generic:
        return MaskClass::generic;
    case MaskType::top_left:
    case MaskType::bottom_right:
        break;
    }
    return window_left < 0 ? MaskClass::causal : MaskClass::generic;
}

std::int64_t Problem::num_ops() const {
    const std::int64_t rows = effective_max_seqlen_q(), keys = effective_max_seqlen_k();
    const std::int64_t dq = signature.hdim_q, dv = signature.hdim_v;
    if (dq <= 0 || dv <= 0 || !traits_of(api_family).attends) return 0;
    std::int64_t channels = 0;
    const bool overflow =
        traits_of(api_family).gradients
            ? __builtin_add_overflow(saturating_product({3, dq}), saturating_product({2, dv}), &channels)
            : __builtin_add_overflow(dq, dv, &channels);
    if (overflow) channels = std::numeric_limits<std::int64_t>::max();
    return saturating_product({2, batch, nhead_q, rows, keys, channels});
}

std::string Problem::canonical_key() const {
    std::string key;
    // An empty text still occupies its place, so that no two lists of fields read alike.
    const auto add = [&key](std::string_view text) {
        if (!key.empty()) key += '\x1F';
        key += text;
    };
    add(fmha::to_string(api_family));
    add(arch.view());
    each_leaf(signature, [&](const std::string&, const auto& leaf) { add(field_text(leaf)); });
    for (const std::int64_t value : {batch, nhead_q, nhead_k, num_splits, compute_units, tensor_alignment})
        add(field_text(value));
    add(field_text(tensors_mappable));
    add(field_text(reduce_dk_dv));
    add(field_text(kv_pool_bytes > std::numeric_limits<std::int32_t>::max()));
    add(field_text(has_variable_seqlen_q()));
    add(field_text(has_variable_seqlen_k()));
    return key;
}

std::string Problem::to_string() const {
    const Signature& s = signature;
    std::string text =
        fmt::format("{} {} {} b{} h{}/{} sq{} sk{} d{}/{}", fmha::to_string(api_family),
                    fmha::to_string(s.data_type), fmha::to_string(s.mode), batch, nhead_q, nhead_k,
                    effective_max_seqlen_q(), effective_max_seqlen_k(), s.hdim_q, s.hdim_v);
    if (!arch.empty()) text += fmt::format(" arch={}", arch.view());
    if (s.family != traits_of(api_family).main) text += fmt::format(" stage={}", fmha::to_string(s.family));
    if (mask_type != MaskType::no_mask) {
        text += fmt::format(" mask={}", fmha::to_string(mask_type));
        if (window_left >= 0 || window_right != 0) text += fmt::format("({},{})", window_left, window_right);
    }
    if (sink_size > 0) text += fmt::format(" sink={}", sink_size);
    if (s.bias != BiasType::no_bias) text += fmt::format(" bias={}", fmha::to_string(s.bias));
    if (s.qscale != QScale::no_scale) text += fmt::format(" qscale={}", fmha::to_string(s.qscale));
    if (s.rope != Rope::none) text += fmt::format(" rope={}:{}", fmha::to_string(s.rope), rotary_dim);
    if (s.v_layout == VLayout::column) text += " v=column";
    if (s.use_paged_kv) text += fmt::format(" page={}", s.page_size);
    if (s.kv_layout != KvLayout::unset)
        text += fmt::format(" kv={}/{}", fmha::to_string(s.kv_layout), fmha::to_string(s.kv_lookup));
    if (traits_of(api_family).splits_keys) text += fmt::format(" splits={}", num_splits);
    if (tensor_alignment < most_tensor_alignment) text += fmt::format(" aligned={}", tensor_alignment);
    if (!tensors_mappable) text += " unmappable";
    const std::pair<bool, std::string_view> flags[] = {{s.has_lse, " lse"},
                                                       {s.has_logits_soft_cap, " soft_cap"},
                                                       {s.has_dropout, " dropout"},
                                                       {s.is_store_randval, " store_randval"},
                                                       {s.has_sink && sink_size <= 0, " sink"},
                                                       {s.has_sink_logit, " sink_logit"},
                                                       {s.has_dbias, " dbias"},
                                                       {s.is_deterministic, " deterministic"},
                                                       {reduce_dk_dv, " reduce_dk_dv"},
                                                       {s.do_fp8_static_quant, " static_quant"},
                                                       {s.skip_min_seqlen_q, " skip_min_seqlen_q"}};
    for (const auto& [on, name] : flags)
        if (on) text += name;
    return text;
}

ProblemBuilder& ProblemBuilder::api_family(ApiFamily family) {
    problem_.api_family = family;
    problem_.signature.family = traits_of(family).main;
    return *this;
}
ProblemBuilder& ProblemBuilder::kernel_family(KernelFamily family) {
    problem_.signature.family = family;
    return *this;
}
ProblemBuilder& ProblemBuilder::gfx_arch(std::string_view arch) {
    problem_.arch = arch;
    return *this;
}
ProblemBuilder& ProblemBuilder::data_type(DataType type) {
    problem_.signature.data_type = type;
    return *this;
}
ProblemBuilder& ProblemBuilder::dims(std::int64_t hdim_q, std::int64_t hdim_v, std::int64_t batch,
                                     std::int64_t seqlen_q, std::int64_t seqlen_k) {
    problem_.signature.hdim_q = hdim_q;
    problem_.signature.hdim_v = hdim_v;
    problem_.batch = batch;
    problem_.seqlen_q = seqlen_q;
    problem_.seqlen_k = seqlen_k;
    return *this;
}
ProblemBuilder& ProblemBuilder::nheads(std::int64_t nhead_q, std::int64_t nhead_k) {
    problem_.nhead_q = nhead_q;
    problem_.nhead_k = nhead_k;
    return *this;
}
ProblemBuilder& ProblemBuilder::mask_type(MaskType type) {
    problem_.mask_type = type;
    return *this;
}
ProblemBuilder& ProblemBuilder::window(std::int64_t left, std::int64_t right) {
    problem_.window_left = left;
    problem_.window_right = right;
    return *this;
}
ProblemBuilder& ProblemBuilder::sink_size(std::int64_t tokens) {
    problem_.sink_size = tokens;
    return *this;
}
ProblemBuilder& ProblemBuilder::bias_type(BiasType type) {
    problem_.signature.bias = type;
    return *this;
}
ProblemBuilder& ProblemBuilder::lse(bool on) {
    problem_.signature.has_lse = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::dropout(bool on) {
    problem_.signature.has_dropout = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::logits_soft_cap(bool on) {
    problem_.signature.has_logits_soft_cap = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::v_rowmajor(bool on) {
    problem_.signature.v_layout = on ? VLayout::row : VLayout::column;
    return *this;
}
ProblemBuilder& ProblemBuilder::group_mode(bool on) {
    problem_.signature.mode = on ? Mode::group : Mode::batch;
    return *this;
}
ProblemBuilder& ProblemBuilder::paged_kv(bool on) {
    problem_.signature.use_paged_kv = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::fp8_static_quant(bool on) {
    problem_.signature.do_fp8_static_quant = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::skip_min_seqlen_q(bool on) {
    problem_.signature.skip_min_seqlen_q = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::sink(bool on) {
    problem_.signature.has_sink = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::sink_logit(bool on) {
    problem_.signature.has_sink_logit = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::qscale_type(QScale type) {
    problem_.signature.qscale = type;
    return *this;
}
ProblemBuilder& ProblemBuilder::rope_type(Rope type) {
    problem_.signature.rope = type;
    return *this;
}
ProblemBuilder& ProblemBuilder::rotary_dim(std::int64_t dim) {
    problem_.rotary_dim = dim;
    return *this;
}
ProblemBuilder& ProblemBuilder::kv_cache(KvLayout layout, KvLookup lookup, std::int32_t size) {
    problem_.signature.kv_layout = layout;
    problem_.signature.kv_lookup = lookup;
    return page_size(size);
}
ProblemBuilder& ProblemBuilder::page_size(std::int32_t size) {
    problem_.signature.page_size = size;
    return *this;
}
ProblemBuilder& ProblemBuilder::max_seqlen(std::int64_t q, std::int64_t k) {
    problem_.max_seqlen_q = q;
    problem_.max_seqlen_k = k;
    return *this;
}
ProblemBuilder& ProblemBuilder::min_seqlen_q(std::int64_t n) {
    problem_.min_seqlen_q = n;
    return *this;
}
ProblemBuilder& ProblemBuilder::num_splits(std::int64_t n) {
    problem_.num_splits = n;
    return *this;
}
ProblemBuilder& ProblemBuilder::bwd_flags(bool dbias, bool stores_randval, bool deterministic) {
    problem_.signature.has_dbias = dbias;
    problem_.signature.is_store_randval = stores_randval;
    problem_.signature.is_deterministic = deterministic;
    return *this;
}
ProblemBuilder& ProblemBuilder::reduce_dk_dv(bool on) {
    problem_.reduce_dk_dv = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::store_randval(bool on) {
    problem_.signature.is_store_randval = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::variable_lengths(const Presence& presence) {
    problem_.presence = presence;
    return *this;
}
ProblemBuilder& ProblemBuilder::compute_units(std::int64_t n) {
    problem_.compute_units = n;
    return *this;
}
ProblemBuilder& ProblemBuilder::tensor_alignment(std::int64_t bytes) {
    problem_.tensor_alignment = bytes;
    return *this;
}
ProblemBuilder& ProblemBuilder::tensors_mappable(bool on) {
    problem_.tensors_mappable = on;
    return *this;
}
ProblemBuilder& ProblemBuilder::kv_pool_bytes(std::int64_t bytes) {
    problem_.kv_pool_bytes = bytes;
    return *this;
}

Problem normalised(Problem problem) {
    Signature& s = problem.signature;
    s.mask = mask_class(problem.mask_type, problem.window_left);
    if (problem.sink_size > 0) s.has_sink = true;
    if (problem.min_seqlen_q > 0) s.skip_min_seqlen_q = true;
    const ApiTraits& api = traits_of(problem.api_family);
    if (api.gradients) s.has_lse = false;
    if (api.always_paged || problem.presence.block_table) s.use_paged_kv = true;
    if (s.use_paged_kv && !api.lists_pages) problem.presence.block_table = true;
    return problem;
}

Problem ProblemBuilder::build() const {
    Problem problem = normalised(problem_);
    validate(problem);
    return problem;
}

} // namespace fmha
