#include "dispatcher/plan/plan.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <algorithm>

namespace fmha {

std::span<const KernelFamily> stages_of(ApiFamily api) {
    return traits_of(api).stages;
}

KernelFamily main_stage(ApiFamily api) {
    return traits_of(api).main;
}

static_assert(std::ranges::all_of(api_table, [](const ApiTraits& api) {
    return api.stages.size() <= ExecutionPlan::most_stages;
}));

void ExecutionPlan::size_workspace(const PackedLengths& lengths) {
    const ApiTraits& api = traits_of(api_family());
    const auto stages = std::span(stages_).first(stage_count_);
    const auto main = std::ranges::find(stages, api.main, &PlanStage::family);
    if (main == stages.end()) return;
    if (api.gradients) {
        BwdWorkspaceInputs inputs = bwd_workspace_inputs(problem_, main->kernel->config);
        inputs.physical_q = lengths.physical_q;
        inputs.physical_k = lengths.physical_k;
        const BwdWorkspaceSize size = bwd_workspace_size(inputs);
        workspace_bytes_ = size.bytes;
        workspace_exact_ = size.exact;
    } else if (api.splits_keys) {
        std::int64_t rows = 0;
        if (__builtin_mul_overflow(problem_.batch, problem_.effective_max_seqlen_q(), &rows))
            throw WorkspaceError("the split-KV workspace exceeds 64-bit sizes");
        workspace_bytes_ =
            splitkv_workspace(rows, problem_.nhead_q, problem_.signature.hdim_v, problem_.num_splits).bytes;
        workspace_exact_ = problem_.signature.mode == Mode::batch;
    }
    main->workspace_bytes = workspace_bytes_;
}

ExecutionPlan with_lengths(ExecutionPlan plan, const PackedLengths& lengths) {
    const bool packed_gradients =
        traits_of(plan.api_family()).gradients && plan.problem().signature.mode == Mode::group;
    if (packed_gradients && lengths.stated()) plan.size_workspace(lengths);
    return plan;
}

bool writes_dq_directly(const KernelConfig& dq_dk_dv) {
    return dq_dk_dv.algorithm.max_seq_len_q > 0;
}

bool needs_stage(KernelFamily stage, const KernelConfig& main) {
    return !traits_of(stage).completes_dq || !writes_dq_directly(main);
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
