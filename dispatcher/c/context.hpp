#pragma once

#include "dispatcher/c/arguments.hpp"
#include "dispatcher/c/call_workspace.hpp"
#include "dispatcher/c/device_side.hpp"
#include "dispatcher/c/guarded.hpp"
#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/registry.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

/// Everything that a caller's handle owns. The library has no other state.
struct fmha_context {
    std::unique_ptr<fmha::Registry> registry;
    std::unique_ptr<fmha::Dispatcher> dispatcher;
    fmha::ArchName arch;
    std::unordered_map<fmha::KernelConfig, std::shared_ptr<const fmha::KernelInstance>, fmha::FieldHash>
        instances;                               ///< of the host that have run
    std::unique_ptr<fmha::c::DeviceSide> device; ///< null in a context without kernels_dir
    fmha_heuristic heuristic = nullptr;          ///< the caller's, and its argument
    void* heuristic_user = nullptr;
    const void* asked = nullptr; ///< arguments of the call that is planned, for the caller's heuristic
    bool asking = false; ///< whether that heuristic is running, which needs the context when it is back
    fmha::c::PreparedWorkspaces prepared;
    std::string error, rule;
};

namespace fmha::c {

/// The same, kept in the context.
template <class Body>
fmha_status guarded(fmha_context& context, Body&& body) {
    return guarded(context.error, context.rule, std::forward<Body>(body));
}

/// Throws InputError for a context whose creation failed, and for an `info` that is not of this version.
void check_ready(const fmha_context& context, const fmha_run_info* info);

/// The plan of a call with `args`; `info` gets its workspace and the names of its kernels. Throws NoKernelFound with the
/// explanation.
ExecutionPlan planned(fmha_context& context, const void* args, const Call& call, fmha_run_info* info);

} // namespace fmha::c
