#pragma once

#include "dispatcher/c/arguments.hpp"
#include "dispatcher/plan/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace fmha::c {

/// The workspace that a caller's arguments name; null for an API without one.
void* workspace_of(const void* args);

/// Lets the arguments of split-KV find their partial results in `workspace`, in the layout that the plan's size is for. Does
/// nothing for other APIs. Throws InputError for a workspace that is needed and null or not aligned.
void place_partials(Invocation& arguments, const ExecutionPlan& plan, void* workspace);

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
