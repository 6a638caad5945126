// The backward kernels of a checkout on a call that `fmha compare` hands over; see forward.cpp.

#include "dispatcher/upstream/ck/backward.hpp"
#include "parity/side_by_side/checkout/program.hpp"

namespace {

using namespace fmha;
using namespace fmha::parity;

/// Upstream's workspace is prepared in one of two ways, by release: at once, or on a stream.
template <class Launcher, class Config>
void prepare(Launcher& launcher, void* workspace, const fmha_bwd_args& args, const Config& config) {
    if constexpr (requires { launcher.prepare_workspace(workspace); }) {
        launcher.prepare_workspace(workspace);
    } else {
        // No owner frees pinned memory, because the last one may not call HIP. The end of the program gives it back.
        const auto pinned = [](std::size_t bytes) {
            void* memory = nullptr;
            require(hipHostMalloc(&memory, bytes, 0), "allocating pinned memory");
            return std::shared_ptr<void>(memory, [](void*) {});
        };
        launcher.prepare_workspace_async(workspace, static_cast<const int*>(args.seqstart_q_ptr),
                                         static_cast<const int*>(args.seqstart_k_ptr), config, pinned);
    }
}

float launch(const CallText& call, const CallMemory& memory) {
    if (call.problem().api_family != ApiFamily::bwd)
        throw InputError("call: this program computes backward only");
    auto theirs = theirs_of<BwdArgs>(call, memory);
    const auto config = once<ck_tile::stream_config>();
    fmha_bwd_launcher launcher(theirs.traits);
    const DeviceMemory workspace(launcher.workspace_size);
    theirs.args.workspace_ptr = workspace.data();
    if (workspace.bytes() > 0) prepare(launcher, workspace.data(), theirs.args, config);
    const float milliseconds = launcher.run(theirs.args, config);
    require(hipDeviceSynchronize(), "running the kernels"); // before the workspace goes
    return milliseconds;
}

} // namespace

int main(int count, char** words) {
    return make_call(count, words, launch);
}
