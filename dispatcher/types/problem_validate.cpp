#include "dispatcher/types/element.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/problem.hpp"
#include "dispatcher/types/type_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace fmha {

namespace {

[[noreturn]] void reject(const char* rule, std::string_view field, std::string value,
                         const std::string& sentence) {
    throw ProblemError(rule, std::string(field), std::move(value), sentence);
}

[[noreturn]] void reject(const char* rule, std::string_view field, std::int64_t value,
                         const std::string& sentence) {
    reject(rule, field, std::to_string(value), sentence);
}

template <NamedEnum E>
void require_known(const char* rule, std::string_view field, E value) {
    const auto code = static_cast<std::int64_t>(value);
    if (!enum_of_code<E>(code))
        reject(rule, field, code,
               fmt::format("{} {} is not known; allowed: {}", field, code, allowed_names<E>()));
}

bool is_one_of(auto value, auto... allowed) {
    return ((value == allowed) || ...);
}

void check_identity(const Problem& p) {
    const Signature& s = p.signature;
    require_known("T-4", "data_type", s.data_type);
    require_known("2", "api_family", p.api_family);
    require_known("2", "mode", s.mode);
    require_known("2", "v_layout", s.v_layout);
    require_known("M-4", "mask_type", p.mask_type);
    require_known("2", "bias", s.bias);
    require_known("2", "qscale", s.qscale);
    require_known("2", "rope", s.rope);
    require_known("2", "family", s.family);
    if (traits_of(s.family).api != p.api_family)
        reject("9", "family", std::string(to_string(s.family)),
               fmt::format("stage {} is no stage of {}", to_string(s.family), to_string(p.api_family)));
}

void check_heads(const Problem& p) {
    const auto positive = [](const char* rule, std::string_view field, std::int64_t value) {
        if (value <= 0)
            reject(rule, field, value, fmt::format("{} is {}; it must be positive", field, value));
    };
    positive("H-1", "batch", p.batch);
    positive("H-1", "nhead_q", p.nhead_q);
    positive("H-1", "nhead_k", p.nhead_k);
    if (p.nhead_q % p.nhead_k != 0)
        reject("H-1", "nhead_q", p.nhead_q,
               fmt::format("nhead_q {} is not a multiple of nhead_k {}", p.nhead_q, p.nhead_k));
    for (const auto& [field, value] :
         {std::pair<std::string_view, std::int64_t>{"hdim_q", p.signature.hdim_q},
          {"hdim_v", p.signature.hdim_v}}) {
        positive("H-2", field, value);
        if (value % 8 != 0)
            reject("H-2", field, value, fmt::format("{} {} is not a multiple of 8", field, value));
    }
}

void check_lengths(const Problem& p) {
    const Presence& has = p.presence;
    const ApiTraits& api = traits_of(p.api_family);
    for (const auto& [field, value] : {std::pair<std::string_view, std::int64_t>{"seqlen_q", p.seqlen_q},
                                       {"seqlen_k", p.seqlen_k},
                                       {"max_seqlen_q", p.max_seqlen_q},
                                       {"max_seqlen_k", p.max_seqlen_k}})
        if (value < 0)
            reject("N-4", field, value, fmt::format("{} is {}; a length is 0 or more", field, value));
    if (p.signature.mode == Mode::group && !api.stores_keys) {
        if (!has.seqstart_q) reject("N-2", "seqstart_q", "absent", "group mode needs the array seqstart_q");
        // Keys in pages have their lengths in the page table or in seqlen_k (P-3, B-4, B-5).
        const bool pages_say = p.signature.use_paged_kv && (has.seqlen_k || api.lists_pages);
        if (!has.seqstart_k && !pages_say)
            reject("N-2", "seqstart_k", "absent", "group mode needs the array seqstart_k");
        if (p.max_seqlen_q <= 0)
            reject("N-2", "max_seqlen_q", p.max_seqlen_q,
                   fmt::format("group mode needs max_seqlen_q > 0, got {}", p.max_seqlen_q));
    }
    if (has.seqlen_q && has.cu_seqlen_q)
        reject("N-3", "cu_seqlen_q", "present",
               "seqlen_q and cu_seqlen_q are both given; at most one is allowed");
    if (has.seqlen_k && has.cu_seqlen_k)
        reject("N-3", "cu_seqlen_k", "present",
               "seqlen_k and cu_seqlen_k are both given; at most one is allowed");
    // Batch prefill takes them all the same.
    if (api.reads_cache && !api.lists_pages)
        for (const auto& [field, present] : {std::pair<std::string_view, bool>{"seqlen_q", has.seqlen_q},
                                             {"cu_seqlen_q", has.cu_seqlen_q},
                                             {"cu_seqlen_k", has.cu_seqlen_k}})
            if (present)
                reject("N-6", field, "present",
                       fmt::format("{} takes no padded lengths, but {} is given", to_string(p.api_family),
                                   field));
    if (p.min_seqlen_q < 0)
        reject("N-5", "min_seqlen_q", p.min_seqlen_q,
               fmt::format("min_seqlen_q is {}; it is 0 (off) or positive", p.min_seqlen_q));
    if (p.min_seqlen_q > 0 && p.signature.mode == Mode::batch)
        reject("N-5", "min_seqlen_q", p.min_seqlen_q,
               fmt::format("min_seqlen_q {} needs group mode", p.min_seqlen_q));
    if (p.min_seqlen_q > 0 && !api.min_seqlen_q)
        reject("N-5", "min_seqlen_q", p.min_seqlen_q,
               fmt::format("min_seqlen_q {} exists in fwd only, not in {}", p.min_seqlen_q,
                           to_string(p.api_family)));
}

/// Extents of whole tensors must be countable in 64 bits (L-1); nothing downstream checks again.
void check_sizes(const Problem& p) {
    const bool batch = p.signature.mode == Mode::batch; // whose tensors have the stated lengths in any case
    const std::int64_t rows = std::max({std::int64_t{1}, p.effective_max_seqlen_q(), batch ? p.seqlen_q : 0});
    const std::int64_t keys = std::max({std::int64_t{1}, p.effective_max_seqlen_k(), batch ? p.seqlen_k : 0});
    const std::int64_t channels = std::max(p.signature.hdim_q, p.signature.hdim_v);
    const auto countable = [&](std::string_view what, std::int64_t length, std::int64_t width) {
        // Eight bytes an element leaves room for every element type and for byte offsets.
        std::int64_t product = 8;
        for (const std::int64_t factor : {p.batch, p.nhead_q, length, width})
            if (__builtin_mul_overflow(product, factor, &product))
                reject("L-1", what, fmt::format("{}*{}*{}*{}", p.batch, p.nhead_q, length, width),
                       fmt::format("{} of {} x {} x {} x {} elements exceeds 64-bit addressing", what,
                                   p.batch, p.nhead_q, length, width));
    };
    countable("q", rows, channels);
    countable("k", keys, channels);
    // The score matrix exists in memory only as bias, random bytes or the backward accumulator.
    const Signature& s = p.signature;
    if (s.bias == BiasType::elementwise || s.is_store_randval) countable("bias", rows, keys);
}

/// The sides of a window are added to positions and to differences of lengths, which are all below 2^60 (check_sizes).
void check_window(const Problem& p) {
    if (p.mask_type == MaskType::no_mask) return;
    constexpr std::int64_t most = std::int64_t{1} << 60;
    const bool literal = p.mask_type == MaskType::window_generic;
    for (const auto& [field, side] : {std::pair<std::string_view, std::int64_t>{"window_left", p.window_left},
                                      {"window_right", p.window_right}})
        if (side > most || (literal && side < -most))
            reject(literal ? "M-7" : "M-1", field, side,
                   fmt::format("{} is {}; allowed: at most 2^60 keys{}", field, side,
                               literal ? " on either side" : ", and below 0 for no bound"));
}

void check_mask(const Problem& p) {
    const Signature& s = p.signature;
    check_window(p);
    if (s.mask != mask_class(p.mask_type, p.window_left))
        reject("M-6", "mask", std::string(to_string(s.mask)),
               fmt::format("mask class {} does not belong to mask {} with left {}", to_string(s.mask),
                           to_string(p.mask_type), p.window_left));
    if (p.mask_type == MaskType::window_generic) {
        // x + y >= 2 with y = left + 1 and x = right + 1.
        if (p.window_left + p.window_right < 0)
            reject("M-7", "window_right", p.window_right,
                   fmt::format("a generic mask needs left + right >= 0, got {} and {}", p.window_left,
                               p.window_right));
    }
    if (p.sink_size < 0)
        reject("K-1", "sink_size", p.sink_size, fmt::format("sink_size is {}; it is 0 or more", p.sink_size));
    if (p.sink_size > 0 && !s.has_sink)
        reject(
            "K-3", "has_sink", "false",
            fmt::format("sink_size {} needs a kernel with sink tokens, but has_sink is false", p.sink_size));
}

void check_features(const Problem& p) {
    const Signature& s = p.signature;
    const ApiTraits& api = traits_of(p.api_family);
    if (s.has_logits_soft_cap && s.bias != BiasType::no_bias)
        reject("C-2", "bias", std::string(to_string(s.bias)),
               fmt::format("soft-cap cannot be combined with bias {}", to_string(s.bias)));
    if (s.has_dropout && !api.dropout)
        reject("D-8", "has_dropout", "true",
               fmt::format("dropout exists in fwd and bwd only, not in {}", to_string(p.api_family)));
    if (s.is_store_randval && !s.has_dropout)
        reject("D-7", "is_store_randval", "true", "stored random values need dropout");
    if (s.has_dbias && !api.gradients)
        reject("W-12", "has_dbias", "true",
               fmt::format("the bias gradient is an output of bwd, not of {}", to_string(p.api_family)));
    if (s.has_dbias && s.bias != BiasType::elementwise)
        reject("W-12", "has_dbias", "true",
               fmt::format("the bias gradient needs an elementwise bias, not {}", to_string(s.bias)));
    if (p.reduce_dk_dv && !api.gradients)
        reject("W-11", "reduce_dk_dv", "true",
               fmt::format("dK and dV are outputs of bwd, not of {}", to_string(p.api_family)));
    if (s.has_sink_logit && !api.attends)
        reject("K-4", "has_sink_logit", "true", "append-KV computes no scores and has no sink logit");
}

void check_backward(const Problem& p) {
    if (!traits_of(p.api_family).gradients) return;
    const Signature& s = p.signature;
    if (s.has_logits_soft_cap) reject("20.1", "has_logits_soft_cap", "true", "backward has no soft-cap");
    if (s.qscale != QScale::no_scale)
        reject("20.1", "qscale", std::string(to_string(s.qscale)),
               fmt::format("backward has no quantisation, got qscale {}", to_string(s.qscale)));
    if (s.do_fp8_static_quant)
        reject("20.1", "do_fp8_static_quant", "true", "backward has no static quantisation");
    if (s.has_sink) reject("K-2", "has_sink", "true", "backward has no sink tokens");
    if (s.use_paged_kv) reject("20.1", "use_paged_kv", "true", "backward has no paging");
    if (s.v_layout == VLayout::column) reject("20.1", "v_layout", "column", "backward needs row-major V");
    if (!has_gradients(s.data_type))
        reject("20.1", "data_type", std::string(to_string(s.data_type)),
               fmt::format("backward exists for fp32, fp16 and bf16, not for {}", to_string(s.data_type)));
}

void check_append(const Problem& p) {
    const Signature& s = p.signature;
    const bool append = traits_of(p.api_family).stores_keys;
    if (append && s.mode == Mode::group)
        reject("V-1", "mode", "group", "append-KV exists in batch mode only");
    if (append && !p.presence.seqlen_k)
        reject("V-1", "seqlen_k", "absent",
               "append-KV needs the array seqlen_k, the tokens already in the cache");
    if (s.rope == Rope::none) return;
    if (!append)
        reject("V-4", "rope", std::string(to_string(s.rope)),
               fmt::format("RoPE is part of append-KV, not of {}", to_string(p.api_family)));
    if (!is_half(s.data_type))
        reject("V-7", "data_type", std::string(to_string(s.data_type)),
               fmt::format("RoPE exists for fp16 and bf16, not for {}", to_string(s.data_type)));
    if (p.rotary_dim <= 0 || p.rotary_dim % 16 != 0)
        reject("V-4", "rotary_dim", p.rotary_dim,
               fmt::format("rotary_dim {} is not a positive multiple of 16", p.rotary_dim));
    if (p.rotary_dim > s.hdim_q)
        reject("V-4", "rotary_dim", p.rotary_dim,
               fmt::format("rotary_dim {} exceeds hdim_q {}", p.rotary_dim, s.hdim_q));
}

void check_paging(const Problem& p) {
    const Signature& s = p.signature;
    const ApiTraits& api = traits_of(p.api_family);
    const bool prefill = api.lists_pages;
    if (s.use_paged_kv && api.contiguous())
        reject("P-1", "use_paged_kv", "true",
               "fwd reads contiguous K and V; paged problems belong to fwd_pagedkv");
    if (!s.use_paged_kv && api.always_paged)
        reject("P-2", "use_paged_kv", "false",
               fmt::format("{} reads K and V from pages only", to_string(p.api_family)));
    if (p.presence.cache_batch_idx && s.mode == Mode::group)
        reject("P-6", "cache_batch_idx", "present", "cache_batch_idx exists in batch mode only");
    if (p.presence.cache_batch_idx && s.use_paged_kv)
        reject("P-6", "cache_batch_idx", "present", "cache_batch_idx cannot be combined with paging");
    if (p.presence.is_gappy && !(s.use_paged_kv && p.presence.seqlen_k && p.presence.seqstart_k))
        reject("P-3", "is_gappy", "true", "is_gappy needs paging and the arrays seqlen_k and seqstart_k");
    if (s.use_paged_kv && !prefill && (s.page_size <= 0 || s.page_size % 128 != 0))
        reject("P-4", "page_size", s.page_size,
               fmt::format("page_size {} is not a positive multiple of 128", s.page_size));
    if (!prefill) return;
    if (s.mode == Mode::batch) reject("B-1", "mode", "batch", "batch prefill exists in group mode only");
    if (s.v_layout == VLayout::column) reject("B-1", "v_layout", "column", "batch prefill needs row-major V");
    if (s.page_size <= 0 || !std::has_single_bit(static_cast<std::uint32_t>(s.page_size)))
        reject("B-1", "page_size", s.page_size,
               fmt::format("page_size {} is not a power of two", s.page_size));
    if (s.kv_layout == KvLayout::unset || s.kv_lookup == KvLookup::unset)
        reject("B-2", s.kv_layout == KvLayout::unset ? "kv_layout" : "kv_lookup", "unset",
               "batch prefill must state its KV layout and its page look-up; neither has a default");
    if (s.kv_layout == KvLayout::vectorized) {
        const std::int64_t vector = 128 / element_bits(element_types(s.data_type, Fp8Flavour::ocp).k);
        if (s.page_size == 1) reject("B-1", "page_size", 1, "page_size 1 needs the linear KV layout");
        if (s.page_size % vector != 0 || s.hdim_q % vector != 0)
            reject("B-3", "page_size", s.page_size,
                   fmt::format("the vectorized layout needs page_size {} and hdim_q {} to be multiples of {}",
                               s.page_size, s.hdim_q, vector));
    }
}

void check_quantisation(const Problem& p) {
    const Signature& s = p.signature;
    if (is_micro_scaled(s.data_type) != (s.qscale == QScale::mx))
        reject("Q-5", "qscale", std::string(to_string(s.qscale)),
               fmt::format("data type {} and qscale {} do not belong together: mx scales go with mx types",
                           to_string(s.data_type), to_string(s.qscale)));
    const bool prefill_only = is_one_of(s.qscale, QScale::kv_blockscale, QScale::per_token_head);
    const bool fwd_only = is_one_of(s.qscale, QScale::blockscale, QScale::mx);
    const ApiTraits& api = traits_of(p.api_family);
    if ((prefill_only && !api.lists_pages) || (fwd_only && !api.contiguous()))
        reject("15", "qscale", std::string(to_string(s.qscale)),
               fmt::format("qscale {} exists in {} only, not in {}", to_string(s.qscale),
                           prefill_only ? "batch_prefill" : "fwd", to_string(p.api_family)));
    if (is_micro_scaled(s.data_type) && s.v_layout == VLayout::row)
        reject("Q-5", "v_layout", "row", fmt::format("{} needs column-major V", to_string(s.data_type)));
    if (packs_keys(s.data_type) && s.mode == Mode::batch && p.seqlen_k % 2 != 0)
        reject("T-2", "seqlen_k", p.seqlen_k,
               fmt::format("packed fp4 values of V run along the keys, so seqlen_k {} must be even",
                           p.seqlen_k));
}

void check_alignment(const Problem& p) {
    if (p.tensor_alignment < 1 || p.tensor_alignment > most_tensor_alignment ||
        !std::has_single_bit(static_cast<std::uint64_t>(p.tensor_alignment)))
        reject("L-1", "tensor_alignment", p.tensor_alignment,
               fmt::format("tensor_alignment is {}; allowed: powers of two from 1 to {}", p.tensor_alignment,
                           most_tensor_alignment));
}

void check_splits(const Problem& p) {
    // Partial results have as many rows as max_seqlen_q says, and the kernels write every row; a main kernel of backward for so
    // few rows has no more of them in its tile.
    const ApiTraits& api = traits_of(p.api_family);
    if ((api.splits_keys || api.gradients) && p.signature.mode == Mode::batch && p.max_seqlen_q > 0 &&
        p.max_seqlen_q < p.seqlen_q)
        reject("N-1", "max_seqlen_q", p.max_seqlen_q,
               fmt::format("max_seqlen_q is {}, but every entry of the batch has {} rows (seqlen_q)",
                           p.max_seqlen_q, p.seqlen_q));
    if (p.num_splits > most_num_splits)
        reject("S-7", "num_splits", p.num_splits,
               fmt::format("num_splits {} exceeds {}; below 1 means that the plan chooses", p.num_splits,
                           most_num_splits));
    if (p.compute_units < 0)
        reject("S-6", "compute_units", p.compute_units,
               fmt::format("compute_units is {}; 0 means the architecture's own number", p.compute_units));
    if (p.kv_pool_bytes < 0)
        reject("B-8", "kv_pool_bytes", p.kv_pool_bytes,
               fmt::format("kv_pool_bytes is {}; 0 means unknown", p.kv_pool_bytes));
}

} // namespace

void validate(const Problem& problem) {
    check_identity(problem);
    check_heads(problem);
    check_lengths(problem);
    check_sizes(problem);
    check_mask(problem);
    check_backward(problem);
    check_features(problem);
    check_append(problem);
    check_paging(problem);
    check_quantisation(problem);
    check_splits(problem);
    check_alignment(problem);
}

} // namespace fmha
