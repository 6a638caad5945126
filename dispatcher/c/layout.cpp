#include "dispatcher/include/fmha/fmha.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace {

#define FMHA_FIELD(Type, name)                                                                               \
    fmha_field_layout {                                                                                      \
#name, offsetof(Type, name), sizeof(Type::name)                                                      \
    }

constexpr std::array tensor{FMHA_FIELD(fmha_tensor, data), FMHA_FIELD(fmha_tensor, batch_stride),
                            FMHA_FIELD(fmha_tensor, head_stride), FMHA_FIELD(fmha_tensor, row_stride),
                            FMHA_FIELD(fmha_tensor, col_stride)};

constexpr std::array options{
    FMHA_FIELD(fmha_context_options, size), FMHA_FIELD(fmha_context_options, version),
    FMHA_FIELD(fmha_context_options, arch), FMHA_FIELD(fmha_context_options, kernels_dir),
    FMHA_FIELD(fmha_context_options, device)};

#define FMHA_ARG(name) FMHA_FIELD(fmha_fwd_args, name)
constexpr std::array fwd_args{FMHA_ARG(size),
                              FMHA_ARG(version),
                              FMHA_ARG(data_type),
                              FMHA_ARG(mode),
                              FMHA_ARG(v_layout),
                              FMHA_ARG(mask_type),
                              FMHA_ARG(bias_type),
                              FMHA_ARG(qscale),
                              FMHA_ARG(batch),
                              FMHA_ARG(nhead_q),
                              FMHA_ARG(nhead_k),
                              FMHA_ARG(seqlen_q),
                              FMHA_ARG(seqlen_k),
                              FMHA_ARG(max_seqlen_q),
                              FMHA_ARG(max_seqlen_k),
                              FMHA_ARG(min_seqlen_q),
                              FMHA_ARG(hdim_q),
                              FMHA_ARG(hdim_v),
                              FMHA_ARG(window_left),
                              FMHA_ARG(window_right),
                              FMHA_ARG(sink_size),
                              FMHA_ARG(q),
                              FMHA_ARG(k),
                              FMHA_ARG(v),
                              FMHA_ARG(o),
                              FMHA_ARG(lse),
                              FMHA_ARG(bias),
                              FMHA_ARG(randval),
                              FMHA_ARG(q_descale),
                              FMHA_ARG(k_descale),
                              FMHA_ARG(v_descale),
                              FMHA_ARG(seqstart_q),
                              FMHA_ARG(seqstart_k),
                              FMHA_ARG(seqlen_q_array),
                              FMHA_ARG(seqlen_k_array),
                              FMHA_ARG(cu_seqlen_q),
                              FMHA_ARG(cu_seqlen_k),
                              FMHA_ARG(alibi_slopes),
                              FMHA_ARG(alibi_stride),
                              FMHA_ARG(sink_logit),
                              FMHA_ARG(block_scale_size_q),
                              FMHA_ARG(block_scale_size_k),
                              FMHA_ARG(block_scale_seqstart_q),
                              FMHA_ARG(block_scale_seqstart_k),
                              FMHA_ARG(dropout_seed),
                              FMHA_ARG(dropout_offset),
                              FMHA_ARG(scale_s),
                              FMHA_ARG(scale_o),
                              FMHA_ARG(logits_soft_cap),
                              FMHA_ARG(p_drop)};

constexpr std::array run_info{FMHA_FIELD(fmha_run_info, size), FMHA_FIELD(fmha_run_info, version),
                              FMHA_FIELD(fmha_run_info, workspace_bytes),
                              FMHA_FIELD(fmha_run_info, milliseconds), FMHA_FIELD(fmha_run_info, kernel)};

/// The structures have no padding, so a table that covers every byte has no member missing.
template <class Table>
constexpr bool covers(const Table& table, std::uint64_t size) {
    std::uint64_t end = 0;
    for (const fmha_field_layout& field : table) {
        if (field.offset != end) return false;
        end += field.size;
    }
    return end == size;
}

static_assert(covers(tensor, sizeof(fmha_tensor)));
static_assert(covers(options, sizeof(fmha_context_options)));
static_assert(covers(fwd_args, sizeof(fmha_fwd_args)));
static_assert(covers(run_info, sizeof(fmha_run_info)));

struct Structure {
    const char* name;
    std::span<const fmha_field_layout> fields;
    std::uint64_t size;
};

constexpr std::array structures{Structure{"fmha_tensor", tensor, sizeof(fmha_tensor)},
                                Structure{"fmha_context_options", options, sizeof(fmha_context_options)},
                                Structure{"fmha_fwd_args", fwd_args, sizeof(fmha_fwd_args)},
                                Structure{"fmha_run_info", run_info, sizeof(fmha_run_info)}};

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
