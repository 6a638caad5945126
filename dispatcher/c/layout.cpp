#include "dispatcher/include/fmha/fmha.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace {

/// How a binding spells the type of a member.
template <class T>
constexpr const char* spelling = nullptr;
template <>
constexpr const char* spelling<std::int32_t> = "int32";
template <>
constexpr const char* spelling<std::uint32_t> = "uint32";
template <>
constexpr const char* spelling<std::int64_t> = "int64";
template <>
constexpr const char* spelling<std::uint64_t> = "uint64";
template <>
constexpr const char* spelling<float> = "float";
template <>
constexpr const char* spelling<double> = "double";
template <class T>
constexpr const char* spelling<T*> = "pointer";
template <std::size_t size>
constexpr const char* spelling<char[size]> = "text";
template <>
constexpr const char* spelling<fmha_tensor> = "fmha_tensor";
template <>
constexpr const char* spelling<fmha_shape> = "fmha_shape";
template <>
constexpr const char* spelling<fmha_lengths> = "fmha_lengths";
template <>
constexpr const char* spelling<fmha_mask_args> = "fmha_mask_args";
template <>
constexpr const char* spelling<fmha_score> = "fmha_score";
template <>
constexpr const char* spelling<fmha_dropout> = "fmha_dropout";
template <>
constexpr const char* spelling<fmha_quant> = "fmha_quant";
template <>
constexpr const char* spelling<fmha_kv_place> = "fmha_kv_place";
template <>
constexpr const char* spelling<fmha_rope_args> = "fmha_rope_args";

/// One list a structure, the only one beside the structure itself: the structures have no padding, so a list that covers
/// every byte has no member missing.
template <std::size_t count>
constexpr bool covers(const std::array<fmha_field_layout, count>& fields, std::uint64_t size) {
    std::uint64_t end = 0;
    for (const fmha_field_layout& field : fields) {
        if (field.offset != end || field.type == nullptr) return false;
        end += field.size;
    }
    return end == size;
}

#define FMHA_FIELD(name)                                                                                     \
    fmha_field_layout {                                                                                      \
#name, spelling < decltype(Layout::name)>, offsetof(Layout, name), sizeof(Layout::name)              \
    }
#define FMHA_LAYOUT(Type, ...)                                                                               \
    namespace layout_of_##Type {                                                                             \
        using Layout = Type;                                                                                 \
        constexpr std::array fields{__VA_ARGS__};                                                            \
        static_assert(covers(fields, sizeof(Type)), #Type " has a member that is not listed");               \
    }
#define FMHA_STRUCTURE(Type)                                                                                 \
    Structure {                                                                                              \
#Type, layout_of_##Type::fields, sizeof(Type)                                                        \
    }

FMHA_LAYOUT(fmha_tensor, FMHA_FIELD(data), FMHA_FIELD(batch_stride), FMHA_FIELD(head_stride),
            FMHA_FIELD(row_stride), FMHA_FIELD(col_stride))
FMHA_LAYOUT(fmha_context_options, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(arch),
            FMHA_FIELD(kernels_dir), FMHA_FIELD(device))
FMHA_LAYOUT(fmha_shape, FMHA_FIELD(data_type), FMHA_FIELD(mode), FMHA_FIELD(v_layout), FMHA_FIELD(reserved),
            FMHA_FIELD(batch), FMHA_FIELD(nhead_q), FMHA_FIELD(nhead_k), FMHA_FIELD(seqlen_q),
            FMHA_FIELD(seqlen_k), FMHA_FIELD(max_seqlen_q), FMHA_FIELD(max_seqlen_k),
            FMHA_FIELD(min_seqlen_q), FMHA_FIELD(hdim_q), FMHA_FIELD(hdim_v))
FMHA_LAYOUT(fmha_lengths, FMHA_FIELD(seqstart_q), FMHA_FIELD(seqstart_k), FMHA_FIELD(seqlen_q),
            FMHA_FIELD(seqlen_k), FMHA_FIELD(cu_seqlen_q), FMHA_FIELD(cu_seqlen_k))
FMHA_LAYOUT(fmha_mask_args, FMHA_FIELD(type), FMHA_FIELD(reserved), FMHA_FIELD(window_left),
            FMHA_FIELD(window_right), FMHA_FIELD(sink_size))
FMHA_LAYOUT(fmha_score, FMHA_FIELD(bias_type), FMHA_FIELD(scale_s), FMHA_FIELD(scale_o),
            FMHA_FIELD(logits_soft_cap), FMHA_FIELD(alibi_slopes), FMHA_FIELD(alibi_stride),
            FMHA_FIELD(sink_logit))
FMHA_LAYOUT(fmha_dropout, FMHA_FIELD(seed), FMHA_FIELD(offset), FMHA_FIELD(p_drop), FMHA_FIELD(reserved))
FMHA_LAYOUT(fmha_quant, FMHA_FIELD(qscale), FMHA_FIELD(reserved), FMHA_FIELD(q_descale),
            FMHA_FIELD(k_descale), FMHA_FIELD(v_descale), FMHA_FIELD(block_scale_size_q),
            FMHA_FIELD(block_scale_size_k), FMHA_FIELD(block_scale_seqstart_q),
            FMHA_FIELD(block_scale_seqstart_k))
FMHA_LAYOUT(fmha_kv_place, FMHA_FIELD(block_table), FMHA_FIELD(block_table_stride), FMHA_FIELD(kv_indptr),
            FMHA_FIELD(kv_page_indices), FMHA_FIELD(kv_last_page_lens), FMHA_FIELD(cache_batch_idx),
            FMHA_FIELD(page_size), FMHA_FIELD(page_count), FMHA_FIELD(is_gappy), FMHA_FIELD(kv_layout),
            FMHA_FIELD(kv_lookup), FMHA_FIELD(reserved))
FMHA_LAYOUT(fmha_rope_args, FMHA_FIELD(type), FMHA_FIELD(reserved), FMHA_FIELD(rotary_dim), FMHA_FIELD(cos),
            FMHA_FIELD(sin))
FMHA_LAYOUT(fmha_fwd_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api), FMHA_FIELD(reserved),
            FMHA_FIELD(shape), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v), FMHA_FIELD(o), FMHA_FIELD(lse),
            FMHA_FIELD(bias), FMHA_FIELD(randval), FMHA_FIELD(lengths), FMHA_FIELD(mask), FMHA_FIELD(score),
            FMHA_FIELD(dropout), FMHA_FIELD(quant))
FMHA_LAYOUT(fmha_splitkv_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api), FMHA_FIELD(reserved),
            FMHA_FIELD(shape), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v), FMHA_FIELD(o), FMHA_FIELD(lse),
            FMHA_FIELD(bias), FMHA_FIELD(lengths), FMHA_FIELD(mask), FMHA_FIELD(score), FMHA_FIELD(quant),
            FMHA_FIELD(place), FMHA_FIELD(num_splits), FMHA_FIELD(workspace), FMHA_FIELD(workspace_bytes))
FMHA_LAYOUT(fmha_pagedkv_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api), FMHA_FIELD(reserved),
            FMHA_FIELD(shape), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v), FMHA_FIELD(o), FMHA_FIELD(lse),
            FMHA_FIELD(bias), FMHA_FIELD(lengths), FMHA_FIELD(mask), FMHA_FIELD(score), FMHA_FIELD(quant),
            FMHA_FIELD(place))
FMHA_LAYOUT(fmha_appendkv_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api), FMHA_FIELD(has_mask),
            FMHA_FIELD(shape), FMHA_FIELD(seqlen_knew), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v),
            FMHA_FIELD(k_new), FMHA_FIELD(v_new), FMHA_FIELD(lengths), FMHA_FIELD(rope), FMHA_FIELD(place))
FMHA_LAYOUT(fmha_batch_prefill_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api),
            FMHA_FIELD(reserved), FMHA_FIELD(shape), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v),
            FMHA_FIELD(o), FMHA_FIELD(lse), FMHA_FIELD(bias), FMHA_FIELD(randval), FMHA_FIELD(lengths),
            FMHA_FIELD(mask), FMHA_FIELD(score), FMHA_FIELD(dropout), FMHA_FIELD(quant), FMHA_FIELD(place))
FMHA_LAYOUT(fmha_bwd_args, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(api), FMHA_FIELD(deterministic),
            FMHA_FIELD(shape), FMHA_FIELD(q), FMHA_FIELD(k), FMHA_FIELD(v), FMHA_FIELD(o), FMHA_FIELD(lse),
            FMHA_FIELD(bias), FMHA_FIELD(d_o), FMHA_FIELD(randval), FMHA_FIELD(d), FMHA_FIELD(dq),
            FMHA_FIELD(dk), FMHA_FIELD(dv), FMHA_FIELD(dbias), FMHA_FIELD(d_sink), FMHA_FIELD(lengths),
            FMHA_FIELD(mask), FMHA_FIELD(score), FMHA_FIELD(dropout), FMHA_FIELD(workspace),
            FMHA_FIELD(reduce_dk_dv), FMHA_FIELD(reserved), FMHA_FIELD(workspace_bytes),
            FMHA_FIELD(host_seqstart_q), FMHA_FIELD(host_seqstart_k))
FMHA_LAYOUT(fmha_run_info, FMHA_FIELD(size), FMHA_FIELD(version), FMHA_FIELD(workspace_bytes),
            FMHA_FIELD(milliseconds), FMHA_FIELD(kernel))

struct Structure {
    const char* name;
    std::span<const fmha_field_layout> fields;
    std::uint64_t size;
};

constexpr std::array structures{FMHA_STRUCTURE(fmha_tensor),
                                FMHA_STRUCTURE(fmha_context_options),
                                FMHA_STRUCTURE(fmha_shape),
                                FMHA_STRUCTURE(fmha_lengths),
                                FMHA_STRUCTURE(fmha_mask_args),
                                FMHA_STRUCTURE(fmha_score),
                                FMHA_STRUCTURE(fmha_dropout),
                                FMHA_STRUCTURE(fmha_quant),
                                FMHA_STRUCTURE(fmha_kv_place),
                                FMHA_STRUCTURE(fmha_rope_args),
                                FMHA_STRUCTURE(fmha_fwd_args),
                                FMHA_STRUCTURE(fmha_splitkv_args),
                                FMHA_STRUCTURE(fmha_pagedkv_args),
                                FMHA_STRUCTURE(fmha_appendkv_args),
                                FMHA_STRUCTURE(fmha_batch_prefill_args),
                                FMHA_STRUCTURE(fmha_bwd_args),
                                FMHA_STRUCTURE(fmha_run_info)};

} // namespace

extern "C" uint64_t fmha_layout(const char* structure, fmha_field_layout* fields, uint64_t capacity,
                                uint64_t* struct_size) {
    for (const Structure& known : structures)
        if (structure != nullptr && std::strcmp(known.name, structure) == 0) {
            if (struct_size != nullptr) *struct_size = known.size;
            if (fields != nullptr)
                std::copy_n(known.fields.begin(), std::min<std::uint64_t>(capacity, known.fields.size()),
                            fields);
            return known.fields.size();
        }
    return 0;
}
