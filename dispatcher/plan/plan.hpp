#pragma once

#include "dispatcher/plan/workspace.hpp"
#include "dispatcher/registry/entry.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fmha {

/// One stage of a plan. The kernel keeps the snapshot that it comes from alive.
struct PlanStage {
    KernelFamily family = KernelFamily::fwd;
    std::shared_ptr<const KernelEntry> kernel;
    std::int64_t workspace_bytes = 0; ///< of the plan's workspace, first written by this stage
};

/// Physical lengths of the entries of a packed batch, which `seqstart` arrays state; empty = not stated.
struct PackedLengths {
    std::vector<std::int64_t> physical_q, physical_k;
    bool stated() const { return !physical_q.empty() || !physical_k.empty(); }
};

/// The kernels that compute a problem, in launch order (dispatcher-api section 9). Holds at most three stages
/// in place, so that planning allocates nothing.
class ExecutionPlan {
  public:
    static constexpr std::size_t most_stages = 3;

    /// The problem as planned: architecture defaults and the number of splits filled in.
    const Problem& problem() const { return problem_; }
    ApiFamily api_family() const { return problem_.api_family; }
    std::span<const PlanStage> stages() const { return {stages_.data(), stage_count_}; }
    /// Stages that the API needs and no kernel takes.
    std::span<const KernelFamily> missing() const { return {missing_.data(), missing_count_}; }
    bool valid() const { return missing_count_ == 0 && stage_count_ > 0; }
    /// Bytes of the one workspace of the plan, aligned to 16; 0 = none needed. A plan of another stage than the main one alone does not
    /// say how much that stage finds there.
    std::int64_t workspace_bytes() const { return workspace_bytes_; }
    /// False when sizes depend on group-mode lengths or on compute units that the problem does not state. The size is an upper
    /// bound then, as long as no entry is physically longer than the problem's max_seqlen_q and max_seqlen_k; `with_lengths`
    /// makes it exact.
    bool workspace_exact() const { return workspace_exact_; }

  private:
    friend class Dispatcher;
    friend ExecutionPlan with_lengths(ExecutionPlan plan, const PackedLengths& lengths);

    /// Sets the sizes that follow from the problem, the kernel of the main stage and these lengths; leaves a plan without that stage as it is.
    /// Throws WorkspaceError for a size beyond 64 bits and for lengths of another number of entries.
    void size_workspace(const PackedLengths& lengths);

    Problem problem_;
    std::array<PlanStage, most_stages> stages_;
    std::array<KernelFamily, most_stages> missing_{};
    std::size_t stage_count_ = 0, missing_count_ = 0;
    std::int64_t workspace_bytes_ = 0;
    bool workspace_exact_ = true;
};

/// `plan` with the workspace that backward needs for these lengths. Other plans, those of a batch that is not packed, and all where none
/// are stated stay as they are. Throws WorkspaceError for lengths of another number of entries.
ExecutionPlan with_lengths(ExecutionPlan plan, const PackedLengths& lengths);

/// The stages of an API in launch order, whether or not a plan needs all of them.
std::span<const KernelFamily> stages_of(ApiFamily api);

/// The stage that the other ones follow.
KernelFamily main_stage(ApiFamily api);

/// True when the kernel writes dQ itself, so that there is no convert_dq stage and no workspace.
bool writes_dq_directly(const KernelConfig& dq_dk_dv);

/// False for a stage that the plan's main kernel makes superfluous.
bool needs_stage(KernelFamily stage, const KernelConfig& main);

/// Backward workspace inputs of a planned problem, without group-mode lengths. max_seqlen_q and max_seqlen_k stand for these, although
/// they bound logical lengths only (N-2).
BwdWorkspaceInputs bwd_workspace_inputs(const Problem& problem, const KernelConfig& dq_dk_dv);

} // namespace fmha
