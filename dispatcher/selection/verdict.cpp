#include "dispatcher/selection/verdict.hpp"

#include "dispatcher/selection/constraint.hpp"

#include <fmt/format.h>

namespace fmha {

namespace {

template <NamedEnum E>
std::string name_of_code(std::int64_t code, std::int64_t shift = 0) {
    return std::string(to_string(static_cast<E>(code - shift)));
}

std::string flag(std::int64_t on) {
    return on != 0 ? "true" : "false";
}

/// How a reason is told: the field, the way to print its codes, and the advice to the caller.
struct Telling {
    std::string_view field;
    std::string (*print)(std::int64_t);
    std::string_view fix;
};

std::string number(std::int64_t value) {
    return std::to_string(value);
}

Telling telling(Reason reason) {
    switch (reason) {
    case Reason::accepted:
        return {"", number, ""};
    case Reason::wrong_arch:
        return {"arch", number, "plan for the kernel's architecture, or register kernels of this one"};
    case Reason::wrong_family:
        return {"family", [](std::int64_t v) { return name_of_code<KernelFamily>(v); },
                "ask for another stage, or register kernels of this family"};
    case Reason::data_type_differs:
        return {"data_type", [](std::int64_t v) { return name_of_code<DataType>(v); },
                "convert the tensors, or register kernels of this data type"};
    case Reason::mode_differs:
        return {"mode", [](std::int64_t v) { return name_of_code<Mode>(v); },
                "batch mode takes equal lengths; group mode takes seqstart arrays"};
    case Reason::v_layout_differs:
        return {"v_layout", [](std::int64_t v) { return name_of_code<VLayout>(v); }, "transpose V"};
    case Reason::soft_cap_differs:
        return {"has_logits_soft_cap", flag, "register a kernel with the same soft-cap setting"};
    case Reason::bias_differs:
        return {
            "bias", [](std::int64_t v) { return name_of_code<BiasType>(v); },
            "an elementwise bias of zeros stands for none, ALiBi can be written out as an elementwise bias"};
    case Reason::lse_differs:
        return {"has_lse", flag, "set has_lse as the kernel has it, and drop the LSE if it is not wanted"};
    case Reason::dropout_differs:
        return {"has_dropout", flag, "register a kernel with the same dropout setting"};
    case Reason::qscale_differs:
        return {"qscale", [](std::int64_t v) { return name_of_code<QScale>(v); },
                "quantise with scales of the kernel's kind"};
    case Reason::rope_differs:
        return {"rope", [](std::int64_t v) { return name_of_code<Rope>(v); },
                "apply the rotation outside the kernel, or register kernels with this RoPE"};
    case Reason::paging_differs:
        return {"use_paged_kv", flag, "lay the cache out as the kernel reads it"};
    case Reason::static_quant_differs:
        return {"do_fp8_static_quant", flag, "register a kernel with the same static quantisation"};
    case Reason::dbias_differs:
        return {"has_dbias", flag, "register a kernel with the same bias gradient setting"};
    case Reason::deterministic_differs:
        return {"is_deterministic", flag, "register a kernel with the same determinism"};
    case Reason::store_randval_differs:
        return {"is_store_randval", flag, "register a kernel with the same storing of random values"};
    case Reason::kv_layout_differs:
        return {"kv_layout", [](std::int64_t v) { return name_of_code<KvLayout>(v, 1); },
                "lay the pages out as the kernel reads them"};
    case Reason::kv_lookup_differs:
        return {"kv_lookup", [](std::int64_t v) { return name_of_code<KvLookup>(v, 1); },
                "pass the page table in the kernel's form"};
    case Reason::page_size_differs:
        return {"page_size", number, "use pages of the kernel's size"};
    case Reason::mask_not_representable:
        return {"mask", [](std::int64_t v) { return name_of_code<MaskClass>(v); },
                "register a kernel whose mask class covers this mask"};
    case Reason::no_sink_tokens:
        return {"has_sink", flag, "register a kernel with sink tokens"};
    case Reason::no_sink_logit:
        return {"has_sink_logit", flag, "register a kernel with sink logits"};
    case Reason::no_skip_min_seqlen_q:
        return {"skip_min_seqlen_q", flag,
                "register a kernel that can skip short entries, or leave them out"};
    case Reason::no_randval_store:
        return {"is_store_randval", flag, "register a dropout kernel that can store its random values"};
    case Reason::no_reduced_dk_dv:
        return {"reduce_dk_dv", flag,
                "register a kernel without max_seq_len_q, or add dK and dV of the query heads up"};
    case Reason::hdim_q_too_large:
        return {"hdim_q", number, "register a kernel with a larger head dimension"};
    case Reason::hdim_v_too_large:
        return {"hdim_v", number, "register a kernel with a larger head dimension of V"};
    case Reason::hdim_of_other_stage:
        return {"head dimension of the main stage", number,
                "register this stage for the main kernel's head dimension"};
    case Reason::max_seqlen_q_missing:
        return {"max_seqlen_q", number, "state max_seqlen_q in group mode"};
    case Reason::seqlen_q_not_padded:
        return {"seqlen_q", number, "pad the query length to the multiple, or register a kernel with pad_s"};
    case Reason::seqlen_k_not_padded:
        return {"seqlen_k", number, "pad the key length to the multiple, or register a kernel with pad_sk"};
    case Reason::hdim_q_not_padded:
        return {"hdim_q", number, "pad Q and K to the multiple, or register a kernel with pad_d"};
    case Reason::hdim_v_not_padded:
        return {"hdim_v", number, "pad V to the multiple, or register a kernel with pad_dv"};
    case Reason::tensors_not_aligned:
        return {"tensor_alignment", number,
                "allocate Q, K and V, and pad their strides, at multiples of the kernel's alignment"};
    case Reason::tensors_not_mappable:
        return {"tensors_mappable", flag, "give rows of Q, K and V strides above 0, or copy the tensors"};
    case Reason::seqlen_q_too_long:
        return {"seqlen_q", number, "register a kernel without this limit"};
    case Reason::too_many_splits:
        return {"num_splits", number, "use fewer splits"};
    case Reason::pool_over_32_bits:
        return {"kv_pool_bytes", number, "register a kernel with load mode gload, or use a smaller pool"};
    case Reason::compute_units_unknown:
        return {"compute_units", number, "state arch or compute_units in the problem"};
    case Reason::constraint_fails:
        return {"constraint", number, "register a kernel without this constraint"};
    }
    return {"", number, ""};
}

std::string sentence_for(const Verdict& verdict, const Refusal& told, const Problem& problem,
                         const KernelConfig& config) {
    using enum Reason;
    const bool ragged_q = problem.signature.mode == Mode::group || problem.has_variable_seqlen_q();
    const bool ragged_k = problem.signature.mode == Mode::group || problem.has_variable_seqlen_k();
    switch (verdict.reason) {
    case accepted:
        return "accepted";
    case hdim_q_too_large:
    case hdim_v_too_large:
    case seqlen_q_too_long:
    case too_many_splits:
    case pool_over_32_bits:
        return fmt::format("{} is {}, this kernel takes at most {}", told.field, told.value, told.limit);
    case hdim_of_other_stage:
        return fmt::format("the main stage has head dimension {}, this kernel has {}", told.value,
                           told.limit);
    case max_seqlen_q_missing:
        return "group mode needs max_seqlen_q";
    case seqlen_q_not_padded:
        if (ragged_q) return "query lengths vary and this kernel has no query tail (pad_s off)";
        return fmt::format("seqlen_q is {}, this kernel has no query tail: multiple of {} required",
                           told.value, told.limit);
    case seqlen_k_not_padded:
        if (ragged_k) return "key lengths vary and this kernel has no key tail (pad_sk off)";
        return fmt::format("seqlen_k is {}, this kernel has no key tail: positive multiple of {} required",
                           told.value, told.limit);
    case hdim_q_not_padded:
    case hdim_v_not_padded:
        return fmt::format("{} is {}, this kernel needs a multiple of {}", told.field, told.value,
                           told.limit);
    case tensors_not_aligned:
        return fmt::format("addresses or strides of Q, K and V are multiples of {} bytes only, this kernel "
                           "copies them by tensor maps: multiples of {} required",
                           told.value, told.limit);
    case tensors_not_mappable:
        return "tensor maps, by which this kernel copies Q, K and V, cannot have their strides or extents: "
               "rows "
               "a positive stride, others 0 or more, all below 2^40 bytes";
    case compute_units_unknown:
        return fmt::format("whether {} cannot be known without the number of compute units",
                           constraint_sentence(*parse_constraint(config.algorithm.constraint)));
    case constraint_fails:
        return fmt::format("reserved for problems with {}",
                           constraint_sentence(*parse_constraint(config.algorithm.constraint)));
    default:
        return fmt::format("{} is {}, this kernel has {}", told.field, told.value, told.limit);
    }
}

} // namespace

Refusal describe(const Verdict& verdict, const Problem& problem, const KernelConfig& config) {
    const Telling how = telling(verdict.reason);
    Refusal told;
    told.reason = verdict.reason;
    told.field = how.field;
    told.fix = how.fix;
    if (verdict.reason == Reason::wrong_arch) {
        told.value = problem.arch.str();
        told.limit = config.arch.str();
    } else if (verdict.reason == Reason::constraint_fails) {
        const auto in = ConstraintInputs::of(problem);
        told.field = "constraint " + config.algorithm.constraint.str();
        told.value = fmt::format(
            "batch {}, nhead_q {}, nhead_k {}, max_seqlen_q {}, hdim {}/{}, compute units {}", in.batch,
            in.nhead_q, in.nhead_k, in.max_seqlen_q, in.hdim_q, in.hdim_v, in.compute_units);
        told.limit = constraint_sentence(*parse_constraint(config.algorithm.constraint));
    } else {
        told.value = how.print(verdict.value);
        told.limit = how.print(verdict.limit);
    }
    told.sentence = sentence_for(verdict, told, problem, config);
    return told;
}

} // namespace fmha
