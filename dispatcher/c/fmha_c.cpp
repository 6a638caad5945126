#include "dispatcher/c/call_workspace.hpp"
#include "dispatcher/c/context.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/system/stopwatch.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace fmha::c {

ExecutionPlan planned(fmha_context& context, const void* args, const Call& call, fmha_run_info* info) {
    context.asked = args;
    ExecutionPlan plan = with_lengths(context.dispatcher->plan(call.problem), call.lengths);
    if (!plan.valid()) throw NoKernelFound(to_text(explain(*context.dispatcher, call.problem)));
    if (info == nullptr) return plan;
    info->workspace_bytes = plan.workspace_bytes();
    info->milliseconds = 0.0;
    std::string names;
    for (const PlanStage& stage : plan.stages())
        names += (names.empty() ? "" : " + ") + context.registry->name_of(*stage.kernel);
    const std::size_t length = std::min(names.size(), sizeof info->kernel - 1);
    std::memcpy(info->kernel, names.data(), length);
    info->kernel[length] = '\0';
    return plan;
}

void check_ready(const fmha_context& context, const fmha_run_info* info) {
    if (context.dispatcher == nullptr) throw InputError("this context was not created successfully");
    if (info != nullptr) check_header(info, "info");
}

} // namespace fmha::c

namespace {

using fmha::InputError;
using fmha::c::call_of;
using fmha::c::check_header;
using fmha::c::check_ready;
using fmha::c::check_tensors;
using fmha::c::guarded;
using fmha::c::Memory;
using fmha::c::planned;
using fmha::c::require;

void open_catalogue(fmha_context& fresh, const fmha_context_options& options,
                    const fmha::arch::ArchSet& archs) {
    require(options.arch != nullptr, "options.arch");
    if (options.device != 0)
        throw InputError(fmt::format("options.device is {} without kernels_dir; allowed: 0", options.device));
    fresh.arch = archs.at(options.arch).name();
    fresh.registry =
        fmha::catalogue_registry(archs, fmha::catalog::RuleSet::house, std::span(&fresh.arch, 1));
}

void open_device(fmha_context& fresh, const fmha_context_options& options, const fmha::arch::ArchSet& archs) {
    const std::string_view arch = options.arch != nullptr ? options.arch : "";
    fresh.device = std::make_unique<fmha::c::DeviceSide>(options.kernels_dir, options.device, arch);
    fresh.arch = archs.at(fresh.device->arch().view()).name();
    fresh.registry = std::make_unique<fmha::Registry>("built", [](const fmha::KernelConfig& config) {
        return fmha::catalog::name_of(fmha::catalog::RuleSet::house, config);
    });
    fresh.registry->add(std::span(fresh.device->kernels()));
}

} // namespace

extern "C" {

uint32_t fmha_abi_version(void) {
    return FMHA_ABI_VERSION;
}

fmha_status fmha_create(const fmha_context_options* options, fmha_context** context) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    *context = new (std::nothrow) fmha_context;
    if (*context == nullptr) return FMHA_NO_MEMORY;
    return guarded(**context, [&] {
        check_header(options, "options");
        const auto archs = fmha::arch::ArchSet::built_in();
        fmha_context& fresh = **context;
        if (options->kernels_dir != nullptr)
            open_device(fresh, *options, archs);
        else
            open_catalogue(fresh, *options, archs);
        fresh.dispatcher = std::make_unique<fmha::Dispatcher>(*fresh.registry, fmha::devices_of(archs));
    });
}

void fmha_destroy(fmha_context* context) {
    if (context != nullptr && context->asking) return; // the call that asks still needs it
    delete context;
}

int64_t fmha_kernel_count(const fmha_context* context) {
    return context != nullptr && context->registry ? static_cast<int64_t>(context->registry->size()) : 0;
}

const char* fmha_last_error(const fmha_context* context) {
    return context != nullptr ? context->error.c_str() : "context is NULL";
}

const char* fmha_last_rule(const fmha_context* context) {
    return context != nullptr ? context->rule.c_str() : "";
}

fmha_status fmha_plan(fmha_context* context, const void* args, fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        planned(*context, args, call_of(args, context->arch, Memory::device), info);
    });
}

fmha_status fmha_workspace_size(fmha_context* context, const void* args, int64_t* bytes, int32_t* exact) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        require(bytes != nullptr, "bytes");
        const auto plan = planned(*context, args, call_of(args, context->arch, Memory::device), nullptr);
        *bytes = plan.workspace_bytes();
        if (exact != nullptr) *exact = plan.workspace_exact() ? 1 : 0;
    });
}

fmha_status fmha_prepare_workspace(fmha_context* context, const void* args, void* workspace, void* stream) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, nullptr);
        const fmha::c::Call call = call_of(args, context->arch, Memory::device);
        const auto plan = planned(*context, args, call, nullptr);
        context->prepared.forget(workspace);
        fmha::c::prepare_on_device(context->device.get(), call, plan,
                                   {workspace, fmha::c::workspace_of(args).bytes}, stream);
        context->prepared.add(workspace, call, plan);
    });
}

fmha_status fmha_run_host(fmha_context* context, const void* args, fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        fmha::c::Call call = call_of(args, context->arch, Memory::host);
        check_tensors(call, Memory::host);
        const auto plan = planned(*context, args, call, info);
        const fmha::c::HostWorkspace workspace(call.arguments, plan);
        const fmha::system::Stopwatch watch;
        for (const fmha::PlanStage& stage : plan.stages()) {
            auto& instance = context->instances[stage.kernel->config];
            if (instance == nullptr) instance = fmha::host_target::make_instance(stage.kernel->config);
            instance->launch(call.arguments, {});
        }
        if (info != nullptr) info->milliseconds = watch.seconds() * 1e3;
    });
}

fmha_status fmha_run_device(fmha_context* context, const void* args, void* stream, fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        if (context->device == nullptr)
            throw fmha::UnsupportedInvocation(
                "this context was created without kernels_dir and has no device; use fmha_run_host");
        fmha::c::Call call = call_of(args, context->arch, Memory::device);
        check_tensors(call, Memory::device);
        context->device->check_starts(call.problem.signature.data_type, call.arguments, stream);
        const auto plan = planned(*context, args, call, info);
        const auto given = fmha::c::workspace_of(args);
        fmha::c::check_workspace(*context->device, call, plan, given);
        context->prepared.use(given.memory, call, plan);
        fmha::c::place_workspace(call.arguments, plan, given.memory);
        for (const fmha::PlanStage& stage : plan.stages())
            context->device->launch(stage.kernel->config, call.arguments, stream);
    });
}

} // extern "C"
