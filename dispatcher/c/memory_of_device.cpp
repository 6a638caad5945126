#include "dispatcher/c/call_workspace.hpp"
#include "dispatcher/c/context.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

namespace {

using fmha::InputError;
using fmha::c::guarded;
using fmha::c::require;

/// The device of a context. Throws UnsupportedInvocation where there is none, InputError for a negative size.
fmha::c::DeviceSide& device_of(const fmha_context& context, int64_t bytes = 0) {
    fmha::c::check_ready(context, nullptr);
    if (context.device == nullptr)
        throw fmha::UnsupportedInvocation("this context was created without kernels_dir and has no device");
    if (bytes < 0) throw InputError(fmt::format("bytes is {}; allowed: 0 and above", bytes));
    return *context.device;
}

} // namespace

extern "C" {

fmha_status fmha_device_allocate(fmha_context* context, int64_t bytes, void** memory) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        require(memory != nullptr, "memory");
        *memory = nullptr;
        *memory = device_of(*context, bytes).allocate(bytes);
    });
}

fmha_status fmha_device_release(fmha_context* context, void* memory) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] { device_of(*context).release(memory); });
}

fmha_status fmha_device_upload(fmha_context* context, void* device, const void* host, int64_t bytes,
                               void* stream) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        auto& side = device_of(*context, bytes);
        // An empty array of the caller may be NULL.
        require(device != nullptr || bytes == 0, "device");
        require(host != nullptr || bytes == 0, "host");
        side.copy(device, host, bytes, fmha::c::Direction::to_device, stream);
    });
}

fmha_status fmha_device_download(fmha_context* context, void* host, const void* device, int64_t bytes,
                                 void* stream) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        auto& side = device_of(*context, bytes);
        require(host != nullptr || bytes == 0, "host");
        require(device != nullptr || bytes == 0, "device");
        side.copy(host, device, bytes, fmha::c::Direction::to_host, stream);
    });
}

fmha_status fmha_device_wait(fmha_context* context, void* stream) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] { device_of(*context).wait(stream); });
}

fmha_status fmha_time_device(fmha_context* context, const void* args, void* stream, int32_t warm_up,
                             int32_t repeats, double* milliseconds) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        auto& side = device_of(*context);
        require(milliseconds != nullptr, "milliseconds");
        if (warm_up < 0) throw InputError(fmt::format("warm_up is {}; allowed: 0 and above", warm_up));
        if (repeats < 1) throw InputError(fmt::format("repeats is {}; allowed: 1 and above", repeats));
        fmha::c::Call call = fmha::c::call_of(args, context->arch, fmha::c::Memory::device);
        fmha::c::check_tensors(call, fmha::c::Memory::device);
        side.check_starts(call.problem.signature.data_type, call.arguments, stream);
        const auto plan = fmha::c::planned(*context, args, call, nullptr);
        const auto given = fmha::c::workspace_of(args);
        fmha::c::check_workspace(side, call, plan, given);
        context->prepared.forget(given.memory);
        fmha::c::place_workspace(call.arguments, plan, given.memory);
        const auto launch = [&] {
            if (fmha::traits_of(call.problem.api_family).gradients)
                fmha::c::prepare_on_device(&side, call, plan, given, stream);
            for (const fmha::PlanStage& stage : plan.stages())
                side.launch(stage.kernel->config, call.arguments, stream);
        };
        for (int32_t i = 0; i < warm_up; ++i) launch();
        *milliseconds = side.seconds_of(repeats, launch, stream) * 1e3 / repeats;
    });
}

} // extern "C"
