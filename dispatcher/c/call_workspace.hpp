#pragma once

#include "dispatcher/c/arguments.hpp"
#include "dispatcher/c/device_side.hpp"
#include "dispatcher/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace fmha::c {

/// A workspace as the caller describes it.
struct GivenWorkspace {
    void* memory = nullptr;
    std::int64_t bytes = 0; ///< 0 = not stated
};

/// The workspace that a caller's arguments name; none for an API without one.
GivenWorkspace workspace_of(const void* args);

/// Throws InputError before a run for a workspace that the plan needs and that is null, not aligned, said or seen to be too small, or no
/// memory of the device. The size of one that has to be prepared is looked at then.
void check_workspace(DeviceSide& device, const Call& call, const ExecutionPlan& plan,
                     const GivenWorkspace& given);

/// Lets the arguments of split-KV find their partial results in `workspace`, in the layout that the plan's size is for, and those
/// of backward know how many blocks share the keys of a packed entry. Does nothing for other APIs.
void place_workspace(Invocation& arguments, const ExecutionPlan& plan, void* workspace);

/// Puts into `workspace`, memory of the device, the content that the plan's first stage expects there, in the order of the stream.
/// Lengths of a packed batch that the call does not state are fetched, which waits for the stream. Throws ProblemError for lengths that
/// decrease or need more than the plan's size, InputError for memory that check_workspace refuses, and UnsupportedInvocation where there is something to
/// put there and no `device`.
void prepare_on_device(DeviceSide* device, const Call& call, const ExecutionPlan& plan,
                       const GivenWorkspace& given, void* stream);

/// The workspaces of backward that are ready for a run. They are remembered here, and not by a mark in them, because a launch that looked
/// into memory of the device would wait for it.
class PreparedWorkspaces {
  public:
    void add(const void* workspace, const Call& call, const ExecutionPlan& plan);
    /// Throws InputError for a workspace that a kernel would use as the last run left it, or that is ready for another call. It has to be
    /// prepared again after that.
    void use(const void* workspace, const Call& call, const ExecutionPlan& plan);
    void forget(const void* workspace) { layouts_.erase(workspace); }

  private:
    std::map<const void*, BwdWorkspaceLayout> layouts_;
};

/// Memory of the host beside the tensors that a plan needs, ready for its first stage. The arguments that it was made for point
/// into it. Throws ProblemError for lengths that decrease.
class HostWorkspace {
  public:
    HostWorkspace(Invocation& arguments, const ExecutionPlan& plan);
    HostWorkspace(const HostWorkspace&) = delete;
    HostWorkspace& operator=(const HostWorkspace&) = delete;
    ~HostWorkspace() = default;

  private:
    std::span<std::byte> allocate(std::int64_t bytes);
    std::vector<std::byte> memory_;
};

} // namespace fmha::c
