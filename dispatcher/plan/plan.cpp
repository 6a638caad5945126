#include "dispatcher/plan/plan.hpp"

namespace fmha {

std::span<const KernelFamily> stages_of(ApiFamily api) {
    using enum KernelFamily;
    static constexpr std::array forward{fwd};
    static constexpr std::array paged{fwd_pagedkv};
    static constexpr std::array split{fwd_splitkv, fwd_splitkv_combine};
    static constexpr std::array append{fwd_appendkv};
    static constexpr std::array prefill{batch_prefill};
    static constexpr std::array backward{bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq};
    switch (api) {
    case ApiFamily::fwd:
        return forward;
    case ApiFamily::fwd_pagedkv:
        return paged;
    case ApiFamily::fwd_splitkv:
        return split;
    case ApiFamily::fwd_appendkv:
        return append;
    case ApiFamily::batch_prefill:
        return prefill;
    case ApiFamily::bwd:
        return backward;
    }
    return {};
}

KernelFamily main_stage(ApiFamily api) {
    return api == ApiFamily::bwd ? KernelFamily::bwd_dq_dk_dv : stages_of(api).front();
}

ExecutionPlan with_lengths(ExecutionPlan plan, const PackedLengths& lengths) {
    if (plan.api_family() != ApiFamily::bwd || plan.problem().signature.mode != Mode::group) return plan;
    for (PlanStage& stage : std::span(plan.stages_).first(plan.stage_count_)) {
        if (stage.family != main_stage(ApiFamily::bwd)) continue;
        BwdWorkspaceInputs inputs = bwd_workspace_inputs(plan.problem(), stage.kernel->config);
        inputs.physical_q = lengths.physical_q;
        inputs.physical_k = lengths.physical_k;
        const BwdWorkspaceSize size = bwd_workspace_size(inputs);
        stage.workspace_bytes = plan.workspace_bytes_ = size.bytes;
        plan.workspace_exact_ = size.exact;
    }
    return plan;
}

bool writes_dq_directly(const KernelConfig& dq_dk_dv) {
    return dq_dk_dv.algorithm.max_seq_len_q > 0;
}

bool needs_stage(KernelFamily stage, const KernelConfig& main) {
    return stage != KernelFamily::bwd_convert_dq || !writes_dq_directly(main);
}

BwdWorkspaceInputs bwd_workspace_inputs(const Problem& problem, const KernelConfig& dq_dk_dv) {
    const Signature& s = problem.signature;
    BwdWorkspaceInputs inputs;
    inputs.group = s.mode == Mode::group;
    inputs.deterministic = s.is_deterministic;
    inputs.direct_dq = writes_dq_directly(dq_dk_dv);
    inputs.masked = s.mask != MaskClass::none;
    inputs.batch = problem.batch;
    inputs.nhead_q = problem.nhead_q;
    inputs.hdim_q = s.hdim_q;
    inputs.heads_of_job = problem.heads_of_dk_dv();
    inputs.seqlen_q = inputs.group ? problem.max_seqlen_q : problem.seqlen_q;
    inputs.seqlen_k = inputs.group ? problem.effective_max_seqlen_k() : problem.seqlen_k;
    // Whether an entry of a group is padded or empty is known with its lengths only.
    inputs.keys_may_be_shorter = inputs.group || problem.presence.seqlen_k || problem.presence.cu_seqlen_k;
    inputs.key_tile = dq_dk_dv.algorithm.tile.n0;
    inputs.compute_units = problem.compute_units;
    return inputs;
}

} // namespace fmha
