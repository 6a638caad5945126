#include "dispatcher/c/call_workspace.hpp"

#include "dispatcher/c/guarded.hpp"
#include "dispatcher/plan/workspace.hpp"
#include "dispatcher/types/check_lengths.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace fmha::c {
namespace {

/// Physical lengths of a side of a packed batch.
std::vector<std::int64_t> physical_lengths(std::span<const std::int32_t> seqstart, const char* field) {
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 0; b + 1 < seqstart.size(); ++b)
        lengths.push_back(packed_length(seqstart.data(), field, static_cast<std::int64_t>(b)));
    return lengths;
}

const KernelConfig& main_kernel(const ExecutionPlan& plan) {
    for (const PlanStage& stage : plan.stages())
        if (stage.family == main_stage(plan.api_family())) return stage.kernel->config;
    throw InputError("the plan has no main stage");
}

/// `starts(array)`: batch + 1 offsets of a side of a packed batch, which may lie on a device.
template <class Starts>
BwdWorkspaceLayout layout_of(const BwdArgs& args, const ExecutionPlan& plan, Starts starts) {
    BwdWorkspaceInputs inputs = bwd_workspace_inputs(plan.problem(), main_kernel(plan));
    std::vector<std::int64_t> physical_q, physical_k;
    if (inputs.group) {
        physical_q = physical_lengths(starts(args.lengths.seqstart_q, "seqstart_q"), "seqstart_q");
        physical_k = physical_lengths(starts(args.lengths.seqstart_k, "seqstart_k"), "seqstart_k");
        inputs.physical_q = physical_q;
        inputs.physical_k = physical_k;
    }
    return bwd_workspace_layout(inputs);
}

void require_workspace(const ExecutionPlan& plan, const void* workspace) {
    if (workspace == nullptr)
        throw InputError(fmt::format("workspace is NULL; these kernels need {} bytes (fmha_workspace_size)",
                                     plan.workspace_bytes()));
    if (const auto fault = misaligned(workspace)) throw InputError(*fault);
}

} // namespace

void* workspace_of(const void* args) {
    // All six begin with size, version and API, which have been read by now.
    switch (static_cast<const fmha_fwd_args*>(args)->api) {
    case FMHA_FWD_SPLITKV:
        return static_cast<const fmha_splitkv_args*>(args)->workspace;
    case FMHA_BWD:
        return static_cast<const fmha_bwd_args*>(args)->workspace;
    default:
        return nullptr;
    }
}

void place_workspace(Invocation& arguments, const ExecutionPlan& plan, void* workspace) {
    if (auto* backward = std::get_if<BwdArgs>(&arguments)) {
        if (plan.workspace_bytes() > 0) require_workspace(plan, workspace);
        if (backward->shape.mode == Mode::group)
            backward->shape.seqlen_k = plan.problem().effective_max_seqlen_k();
        return;
    }
    auto* args = std::get_if<SplitKvArgs>(&arguments);
    if (args == nullptr || plan.workspace_bytes() == 0) return;
    require_workspace(plan, workspace);
    const Problem& problem = plan.problem();
    const bool group = problem.signature.mode == Mode::group;
    // Packed rows lie within the bound that the plan's size is for.
    const std::int64_t length = problem.effective_max_seqlen_q();
    const std::int64_t rows = group ? problem.batch * length : length;
    const std::int64_t width = problem.signature.hdim_v;
    const std::int64_t heads = problem.nhead_q * problem.num_splits;
    const SplitKvWorkspace offsets =
        splitkv_workspace(problem.batch * length, problem.nhead_q, width, problem.num_splits);
    auto* const base = static_cast<std::byte*>(workspace);
    args->partials.num_splits = problem.num_splits;
    args->partials.o_acc = {base + offsets.o_acc_offset,
                            ElementType::fp32,
                            group ? 0 : heads * rows * width,
                            rows * width,
                            width,
                            1};
    args->partials.lse_acc = {
        base + offsets.lse_acc_offset, ElementType::fp32, group ? 0 : heads * rows, rows, 1, 1};
}

void prepare_on_device(DeviceSide* device, const Invocation& arguments, const ExecutionPlan& plan,
                       void* workspace, void* stream) {
    if (plan.workspace_bytes() == 0) return;
    require_workspace(plan, workspace);
    const auto* args = std::get_if<BwdArgs>(&arguments);
    if (args == nullptr) return; // split-KV's kernels write all of theirs
    if (device == nullptr)
        throw UnsupportedInvocation(
            "this context was created without kernels_dir and has no device to prepare a workspace on");
    std::vector<std::int32_t> fetched;
    const BwdWorkspaceLayout layout =
        layout_of(*args, plan, [&](const std::int32_t* array, const char* name) {
            require(array != nullptr, fmt::format("lengths.{}", name).c_str());
            fetched = device->fetch(array, args->shape.batch + 1, stream);
            return std::span<const std::int32_t>(fetched);
        });
    if (layout.size.bytes > plan.workspace_bytes())
        throw ProblemError(
            "X-1", "max_seqlen_q", std::to_string(plan.problem().max_seqlen_q),
            fmt::format("the lengths on the device need a workspace of {} bytes, {} were stated for "
                        "max_seqlen_q and max_seqlen_k of the call",
                        layout.size.bytes, plan.workspace_bytes()));
    const std::vector<std::byte> image = layout.host_image();
    auto* const base = static_cast<std::byte*>(workspace);
    // Both platforms have read memory that is not pinned when the call returns.
    device->copy(base, image.data(), static_cast<std::int64_t>(image.size()), Direction::to_device, stream);
    if (layout.size.zero_dq_acc)
        device->clear(base + image.size(), layout.size.bytes - layout.size.host_bytes, stream);
}

std::span<std::byte> HostWorkspace::allocate(std::int64_t bytes) {
    memory_.resize(static_cast<std::size_t>(bytes + workspace_alignment));
    void* address = memory_.data();
    std::size_t room = memory_.size();
    std::align(workspace_alignment, static_cast<std::size_t>(bytes), address, room);
    return {static_cast<std::byte*>(address), static_cast<std::size_t>(bytes)};
}

HostWorkspace::HostWorkspace(Invocation& arguments, const ExecutionPlan& plan) {
    void* workspace = nullptr;
    if (std::holds_alternative<SplitKvArgs>(arguments)) workspace = allocate(plan.workspace_bytes()).data();
    if (auto* args = std::get_if<BwdArgs>(&arguments); args != nullptr && plan.workspace_bytes() > 0) {
        const BwdWorkspaceLayout layout =
            layout_of(*args, plan, [args](const std::int32_t* array, const char*) {
                return std::span(array, static_cast<std::size_t>(args->shape.batch) + 1);
            });
        const std::span<std::byte> memory = allocate(layout.size.bytes);
        layout.prepare(memory);
        workspace = args->workspace = memory.data();
    }
    place_workspace(arguments, plan, workspace);
}

} // namespace fmha::c
