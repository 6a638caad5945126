#pragma once

#include "dispatcher/c/arguments.hpp"
#include "dispatcher/c/device_side.hpp"
#include "dispatcher/plan/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace fmha::c {

/// The workspace that a caller's arguments name; null for an API without one.
void* workspace_of(const void* args);

/// Lets the arguments of split-KV find their partial results in `workspace`, in the layout that the plan's size is for, and those
/// of backward know how many blocks share the keys of a packed entry. Does nothing for other APIs. Throws InputError for a
/// workspace that is needed and null or not aligned.
void place_workspace(Invocation& arguments, const ExecutionPlan& plan, void* workspace);

/// Puts into `workspace`, memory of the device, the content that the plan's first stage expects there, in the order of the stream.
/// Lengths of a packed batch are fetched, which waits for the stream. Throws ProblemError for lengths that decrease or need more
/// than the plan's size, InputError for a workspace that is null or not aligned, and UnsupportedInvocation where there is something
/// to put there and no `device`.
void prepare_on_device(DeviceSide* device, const Invocation& arguments, const ExecutionPlan& plan,
                       void* workspace, void* stream);

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
