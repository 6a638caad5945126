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

const KernelConfig& main_kernel(const ExecutionPlan& plan) {
    for (const PlanStage& stage : plan.stages())
        if (stage.family == main_stage(plan.api_family())) return stage.kernel->config;
    throw InputError("the plan has no main stage");
}

/// Where the parts of backward's workspace lie, as far as the problem and these lengths say.
BwdWorkspaceLayout layout_of(const ExecutionPlan& plan, const PackedLengths& lengths) {
    BwdWorkspaceInputs inputs = bwd_workspace_inputs(plan.problem(), main_kernel(plan));
    inputs.physical_q = lengths.physical_q;
    inputs.physical_k = lengths.physical_k;
    return bwd_workspace_layout(inputs);
}

/// `starts(array, name)`: batch + 1 offsets of a side of a packed batch, which may lie on a device.
template <class Starts>
PackedLengths lengths_of(const BwdArgs& args, Starts starts) {
    if (args.shape.mode != Mode::group) return {};
    return {packed_lengths(starts(args.lengths.seqstart_q, "seqstart_q"), "seqstart_q"),
            packed_lengths(starts(args.lengths.seqstart_k, "seqstart_k"), "seqstart_k")};
}

/// Throws InputError unless there is memory for a workspace of `needed` bytes, as far as that can be seen. `device` may be null.
void require_workspace(DeviceSide* device, const GivenWorkspace& given, std::int64_t needed) {
    if (given.memory == nullptr)
        throw InputError(
            fmt::format("workspace is NULL; these kernels need {} bytes (fmha_workspace_size)", needed));
    if (const auto fault = misaligned(given.memory)) throw InputError(*fault);
    if (given.bytes < 0)
        throw InputError(
            fmt::format("workspace_bytes is {}; allowed: 0 (not stated) and above", given.bytes));
    if (given.bytes > 0 && given.bytes < needed)
        throw InputError(fmt::format("workspace_bytes is {}; these kernels need {}", given.bytes, needed));
    if (device == nullptr) return;
    const std::int64_t room = device->room_at(given.memory, needed);
    if (room == 0)
        throw InputError(fmt::format("workspace {} is no memory of {}", given.memory, device->text()));
    if (room < needed)
        throw InputError(fmt::format("memory of {} ends {} bytes behind workspace {}; these kernels need {}",
                                     device->text(), room, given.memory, needed));
}

/// Whether kernels read bytes that are put into the workspace before them.
bool needs_preparation(const Call& call, const ExecutionPlan& plan) {
    return plan.workspace_bytes() > 0 && std::holds_alternative<BwdArgs>(call.arguments);
}

} // namespace

GivenWorkspace workspace_of(const void* args) {
    const auto given = [](const auto* of) { return GivenWorkspace{of->workspace, of->workspace_bytes}; };
    // All six begin with size, version and API, which have been read by now.
    switch (static_cast<const fmha_fwd_args*>(args)->api) {
    case FMHA_FWD_SPLITKV:
        return given(static_cast<const fmha_splitkv_args*>(args));
    case FMHA_BWD:
        return given(static_cast<const fmha_bwd_args*>(args));
    default:
        return {};
    }
}

void place_workspace(Invocation& arguments, const ExecutionPlan& plan, void* workspace) {
    if (auto* backward = std::get_if<BwdArgs>(&arguments)) {
        if (backward->shape.mode == Mode::group)
            backward->shape.seqlen_k = plan.problem().effective_max_seqlen_k();
        return;
    }
    auto* args = std::get_if<SplitKvArgs>(&arguments);
    if (args == nullptr) return;
    const Problem& problem = plan.problem();
    args->partials.num_splits = problem.num_splits; // the caller's may have left it to the plan
    if (plan.workspace_bytes() == 0) return;
    const bool group = problem.signature.mode == Mode::group;
    // Packed rows lie within the bound that the plan's size is for.
    const std::int64_t length = problem.effective_max_seqlen_q();
    const std::int64_t rows = group ? problem.batch * length : length;
    const std::int64_t width = problem.signature.hdim_v;
    const std::int64_t heads = problem.nhead_q * problem.num_splits;
    const SplitKvWorkspace offsets =
        splitkv_workspace(problem.batch * length, problem.nhead_q, width, problem.num_splits);
    auto* const base = static_cast<std::byte*>(workspace);
    args->partials.o_acc = {base + offsets.o_acc_offset,
                            ElementType::fp32,
                            group ? 0 : heads * rows * width,
                            rows * width,
                            width,
                            1};
    args->partials.lse_acc = {
        base + offsets.lse_acc_offset, ElementType::fp32, group ? 0 : heads * rows, rows, 1, 1};
}

void check_workspace(DeviceSide& device, const Call& call, const ExecutionPlan& plan,
                     const GivenWorkspace& given) {
    if (needs_preparation(
            call, plan)) // which knows the lengths of a packed batch, and therefore how much is needed
        require_workspace(nullptr, {given.memory}, plan.workspace_bytes());
    else if (plan.workspace_bytes() > 0)
        require_workspace(&device, given, plan.workspace_bytes());
}

void prepare_on_device(DeviceSide* device, const Call& call, const ExecutionPlan& plan,
                       const GivenWorkspace& given, void* stream) {
    if (plan.workspace_bytes() == 0) return;
    const auto* args = std::get_if<BwdArgs>(&call.arguments);
    if (args == nullptr) { // split-KV's kernels write all of theirs
        require_workspace(device, given, plan.workspace_bytes());
        return;
    }
    require_workspace(nullptr, {given.memory}, plan.workspace_bytes());
    if (device == nullptr)
        throw UnsupportedInvocation(
            "this context was created without kernels_dir and has no device to prepare a workspace on");
    std::vector<std::int32_t> fetched;
    const auto fetch = [&](const std::int32_t* array, const char* name) {
        require(array != nullptr, fmt::format("lengths.{}", name).c_str());
        fetched = device->fetch(array, args->shape.batch + 1, stream);
        return std::span<const std::int32_t>(fetched);
    };
    const BwdWorkspaceLayout layout =
        layout_of(plan, call.lengths.stated() ? call.lengths : lengths_of(*args, fetch));
    if (layout.size.bytes > plan.workspace_bytes())
        throw ProblemError(
            "X-1", "max_seqlen_q", std::to_string(plan.problem().max_seqlen_q),
            fmt::format(
                "the lengths on the device need a workspace of {} bytes, {} were stated for max_seqlen_q "
                "and max_seqlen_k of the call; state host_seqstart_q and host_seqstart_k",
                layout.size.bytes, plan.workspace_bytes()));
    require_workspace(device, given, layout.size.bytes);
    const std::vector<std::byte> image = layout.host_image();
    auto* const base = static_cast<std::byte*>(given.memory);
    // Both platforms have read memory that is not pinned when the call returns.
    device->copy(base, image.data(), static_cast<std::int64_t>(image.size()), Direction::to_device, stream);
    if (layout.size.zero_dq_acc)
        device->clear(base + image.size(), layout.size.bytes - layout.size.host_bytes, stream);
}

void PreparedWorkspaces::add(const void* workspace, const Call& call, const ExecutionPlan& plan) {
    if (needs_preparation(call, plan)) layouts_[workspace] = layout_of(plan, call.lengths);
}

void PreparedWorkspaces::use(const void* workspace, const Call& call, const ExecutionPlan& plan) {
    if (!needs_preparation(call, plan)) return;
    const auto prepared = layouts_.extract(workspace);
    if (prepared.empty())
        throw InputError(fmt::format("workspace {} was not prepared since the last run with it; call "
                                     "fmha_prepare_workspace of this context before every run",
                                     workspace));
    if (prepared.mapped() != layout_of(plan, call.lengths))
        throw InputError(fmt::format(
            "workspace {} was prepared for a call of other lengths, heads or kernels", workspace));
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
        const auto starts = [args](const std::int32_t* array, const char*) {
            return std::span(array, static_cast<std::size_t>(args->shape.batch) + 1);
        };
        const BwdWorkspaceLayout layout = layout_of(plan, lengths_of(*args, starts));
        const std::span<std::byte> memory = allocate(layout.size.bytes);
        layout.prepare(memory);
        workspace = args->workspace = memory.data();
    }
    place_workspace(arguments, plan, workspace);
}

} // namespace fmha::c
