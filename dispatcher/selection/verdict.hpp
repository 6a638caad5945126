#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/problem.hpp"

#include <string>

namespace fmha {

/// Why a kernel does not take a problem, in the order in which the conditions are tested.
enum class Reason : std::uint8_t {
    accepted,
    wrong_arch,
    wrong_family,
    data_type_differs,
    mode_differs,
    v_layout_differs,
    soft_cap_differs,
    bias_differs,
    lse_differs,
    dropout_differs,
    qscale_differs,
    rope_differs,
    paging_differs,
    static_quant_differs,
    dbias_differs,
    deterministic_differs,
    store_randval_differs,
    kv_layout_differs,
    kv_lookup_differs,
    page_size_differs,
    mask_not_representable,
    no_sink_tokens,
    no_sink_logit,
    no_skip_min_seqlen_q,
    no_randval_store,
    no_reduced_dk_dv,
    hdim_q_too_large,
    hdim_v_too_large,
    hdim_of_other_stage,
    max_seqlen_q_missing,
    seqlen_q_not_padded,
    seqlen_k_not_padded,
    hdim_q_not_padded,
    hdim_v_not_padded,
    tensors_not_aligned,
    tensors_not_mappable,
    seqlen_q_too_long,
    too_many_splits,
    pool_over_32_bits,
    compute_units_unknown,
    constraint_fails,
};

template <>
struct EnumTable<Reason> {
    using enum Reason;
    static constexpr std::array<EnumName<Reason>, 41> names{
        {{accepted, "accepted"},
         {wrong_arch, "wrong_arch"},
         {wrong_family, "wrong_family"},
         {data_type_differs, "data_type_differs"},
         {mode_differs, "mode_differs"},
         {v_layout_differs, "v_layout_differs"},
         {soft_cap_differs, "soft_cap_differs"},
         {bias_differs, "bias_differs"},
         {lse_differs, "lse_differs"},
         {dropout_differs, "dropout_differs"},
         {qscale_differs, "qscale_differs"},
         {rope_differs, "rope_differs"},
         {paging_differs, "paging_differs"},
         {static_quant_differs, "static_quant_differs"},
         {dbias_differs, "dbias_differs"},
         {deterministic_differs, "deterministic_differs"},
         {store_randval_differs, "store_randval_differs"},
         {kv_layout_differs, "kv_layout_differs"},
         {kv_lookup_differs, "kv_lookup_differs"},
         {page_size_differs, "page_size_differs"},
         {mask_not_representable, "mask_not_representable"},
         {no_sink_tokens, "no_sink_tokens"},
         {no_sink_logit, "no_sink_logit"},
         {no_skip_min_seqlen_q, "no_skip_min_seqlen_q"},
         {no_randval_store, "no_randval_store"},
         {no_reduced_dk_dv, "no_reduced_dk_dv"},
         {hdim_q_too_large, "hdim_q_too_large"},
         {hdim_v_too_large, "hdim_v_too_large"},
         {hdim_of_other_stage, "hdim_of_other_stage"},
         {max_seqlen_q_missing, "max_seqlen_q_missing"},
         {seqlen_q_not_padded, "seqlen_q_not_padded"},
         {seqlen_k_not_padded, "seqlen_k_not_padded"},
         {hdim_q_not_padded, "hdim_q_not_padded"},
         {hdim_v_not_padded, "hdim_v_not_padded"},
         {tensors_not_aligned, "tensors_not_aligned"},
         {tensors_not_mappable, "tensors_not_mappable"},
         {seqlen_q_too_long, "seqlen_q_too_long"},
         {too_many_splits, "too_many_splits"},
         {pool_over_32_bits, "pool_over_32_bits"},
         {compute_units_unknown, "compute_units_unknown"},
         {constraint_fails, "constraint_fails"}}};
    static constexpr auto& aliases = no_aliases<Reason>;
};

/// The answer of the one predicate that selection, explanation and audits share. A plain value: sentences are
/// made from it by `describe` only when somebody reads them.
struct Verdict {
    Reason reason = Reason::accepted;
    std::int64_t value = 0; ///< the problem's value of the field that decided
    std::int64_t limit = 0; ///< the kernel's limit

    explicit operator bool() const { return reason == Reason::accepted; }
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// A verdict for people: the problem's field, its value, the kernel's limit and advice.
struct Refusal {
    Reason reason = Reason::accepted;
    std::string field;
    std::string value;
    std::string limit;
    std::string sentence;
    std::string fix;
};

/// `verdict` must come from matching `problem` with `config`.
Refusal describe(const Verdict& verdict, const Problem& problem, const KernelConfig& config);

} // namespace fmha
