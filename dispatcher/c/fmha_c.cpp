#include "dispatcher/c/device_side.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/include/fmha/fmha.h"
#include "dispatcher/invocation.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/null_tensors.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <new>

/// Everything that a caller's handle owns. The library has no other state.
struct fmha_context {
    std::unique_ptr<fmha::Registry> registry;
    std::unique_ptr<fmha::Dispatcher> dispatcher;
    fmha::ArchName arch;
    std::map<std::string, std::shared_ptr<const fmha::KernelInstance>>
        instances;                               ///< of the host, by identifier
    std::unique_ptr<fmha::c::DeviceSide> device; ///< null in a context without kernels_dir
    std::string error, rule;
};

namespace {

using fmha::InputError;

/// Runs `body`, turns exceptions into a status and keeps their sentence.
template <class Body>
fmha_status guarded(fmha_context& context, Body&& body) {
    context.error.clear();
    context.rule.clear();
    const auto failed = [&](fmha_status status, const char* sentence) {
        context.error = sentence;
        return status;
    };
    try {
        body();
        return FMHA_OK;
    } catch (const fmha::ProblemError& error) {
        context.rule = error.rule();
        return failed(FMHA_BAD_PROBLEM, error.what());
    } catch (const fmha::NoKernelFound& error) {
        return failed(FMHA_NO_KERNEL, error.what());
    } catch (const fmha::UnsupportedInvocation& error) {
        return failed(FMHA_UNSUPPORTED, error.what());
    } catch (const fmha::DeviceError& error) {
        return failed(FMHA_DEVICE_ERROR, error.what());
    } catch (const InputError& error) {
        return failed(FMHA_BAD_ARGUMENT, error.what());
    } catch (const std::bad_alloc&) {
        return failed(FMHA_NO_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        return failed(FMHA_INTERNAL, error.what());
    }
}

template <class T>
void check_header(const T* object, const char* name) {
    if (object == nullptr) throw InputError(fmt::format("{} is NULL", name));
    if (object->size != sizeof(T))
        throw InputError(fmt::format("{}.size is {}, this library's structure has {} bytes", name,
                                     object->size, sizeof(T)));
    if (object->version != FMHA_ABI_VERSION)
        throw InputError(fmt::format("{}.version is {}, this library implements {}", name, object->version,
                                     FMHA_ABI_VERSION));
}

template <fmha::NamedEnum E>
E enumerator(const char* field, std::int32_t code) {
    for (const auto& entry : fmha::EnumTable<E>::names)
        if (static_cast<std::int32_t>(entry.value) == code) return entry.value;
    throw InputError(fmt::format("{} is {}, which is no code of {}", field, code, fmha::allowed_names<E>()));
}

fmha::TensorView view(const fmha_tensor& tensor, fmha::ElementType type) {
    return {tensor.data, type, tensor.batch_stride, tensor.head_stride, tensor.row_stride, tensor.col_stride};
}

struct Call {
    fmha::Problem problem;
    fmha::FwdArgs args;
};

fmha::FwdArgs arguments(const fmha_fwd_args& in, const fmha::ElementTypes& types) {
    using fmha::ElementType;
    fmha::FwdArgs args;
    args.shape.mode = enumerator<fmha::Mode>("mode", in.mode);
    args.shape.batch = in.batch;
    args.shape.nhead_q = in.nhead_q;
    args.shape.nhead_k = in.nhead_k;
    args.shape.seqlen_q = in.seqlen_q;
    args.shape.seqlen_k = in.seqlen_k;
    args.shape.max_seqlen_q = in.max_seqlen_q;
    args.shape.min_seqlen_q = in.min_seqlen_q;
    args.shape.hdim_q = in.hdim_q;
    args.shape.hdim_v = in.hdim_v;
    args.q = view(in.q, types.q);
    args.k = view(in.k, types.k);
    args.v = view(in.v, types.v);
    args.o = view(in.o, types.o);
    args.lse = view(in.lse, ElementType::fp32);
    args.bias = view(in.bias, types.bias);
    args.randval = view(in.randval, ElementType::uint8);
    args.lengths = {in.seqstart_q,     in.seqstart_k,  in.seqlen_q_array,
                    in.seqlen_k_array, in.cu_seqlen_q, in.cu_seqlen_k};
    args.mask = {enumerator<fmha::MaskType>("mask_type", in.mask_type), in.window_left, in.window_right,
                 in.sink_size};
    args.score.bias_type = enumerator<fmha::BiasType>("bias_type", in.bias_type);
    args.score.alibi_slopes = in.alibi_slopes;
    args.score.alibi_stride = in.alibi_stride;
    args.score.scale_s = in.scale_s != 0.0F ? in.scale_s : 1.0F / std::sqrt(static_cast<float>(in.hdim_q));
    args.score.scale_o = in.scale_o != 0.0F ? in.scale_o : 1.0F;
    args.score.logits_soft_cap = in.logits_soft_cap;
    args.score.sink_logit = in.sink_logit;
    args.dropout.p_drop = in.p_drop;
    args.dropout.seed = in.dropout_seed;
    args.dropout.offset = in.dropout_offset;
    args.quant.qscale = enumerator<fmha::QScale>("qscale", in.qscale);
    const ElementType scale = args.quant.qscale == fmha::QScale::mx ? ElementType::e8m0 : ElementType::fp32;
    args.quant.q_descale = view(in.q_descale, scale);
    args.quant.k_descale = view(in.k_descale, scale);
    args.quant.v_descale = view(in.v_descale, scale);
    if (in.block_scale_size_q != 0) args.quant.block_scale_size_q = in.block_scale_size_q;
    if (in.block_scale_size_k != 0) args.quant.block_scale_size_k = in.block_scale_size_k;
    args.quant.block_scale_seqstart_q = in.block_scale_seqstart_q;
    args.quant.block_scale_seqstart_k = in.block_scale_seqstart_k;
    return args;
}

void require_arrays(const fmha::FwdArgs& args) {
    const auto require = [](bool present, const char* name) {
        if (!present) throw InputError(fmt::format("{} is NULL", name));
    };
    require(args.score.bias_type != fmha::BiasType::alibi || args.score.alibi_slopes != nullptr,
            "alibi_slopes");
    if (args.quant.qscale == fmha::QScale::no_scale) return;
    const bool packed_blocks =
        args.shape.mode == fmha::Mode::group && args.quant.qscale != fmha::QScale::pertensor;
    require(!packed_blocks || args.quant.block_scale_seqstart_k != nullptr, "block_scale_seqstart_k");
    require(!packed_blocks || args.quant.qscale == fmha::QScale::mx ||
                args.quant.block_scale_seqstart_q != nullptr,
            "block_scale_seqstart_q");
}

/// Whose memory the pointers of a call are.
enum class Memory : std::uint8_t { host, device };

/// Before a value of a descale is read. Every launch asks the same, on a device after fetching the lengths.
void require_tensors(const fmha::FwdArgs& args) {
    const auto elements = [&] { return fmha::targets::Elements::of(args.shape, args.lengths); };
    if (const auto reason = fmha::targets::null_tensor(args, elements)) throw InputError(*reason);
}

Call call_of(const fmha_context& context, const fmha_fwd_args* in, Memory memory) {
    check_header(in, "args");
    fmha::Signature traits;
    traits.data_type = enumerator<fmha::DataType>("data_type", in->data_type);
    traits.v_layout = enumerator<fmha::VLayout>("v_layout", in->v_layout);
    Call call;
    call.args = arguments(*in, element_types(traits.data_type, fmha::fp8_flavour(context.arch)));
    call.problem = problem_of(traits, call.args, context.arch);
    call.problem.max_seqlen_k = in->max_seqlen_k;
    fmha::validate(call.problem);
    const fmha::FwdArgs& args = call.args;
    std::span<const std::int32_t> seqstart_k;
    if (memory == Memory::host && args.shape.mode == fmha::Mode::group)
        seqstart_k = {args.lengths.seqstart_k, static_cast<std::size_t>(args.shape.batch) + 1};
    fmha::check_values(traits.data_type, args.score, args.dropout, args.quant, seqstart_k);
    return call;
}

std::shared_ptr<const fmha::KernelEntry> planned(const fmha_context& context, const fmha::Problem& problem,
                                                 fmha_run_info* info) {
    const fmha::ExecutionPlan plan = context.dispatcher->plan(problem);
    if (!plan.valid()) throw fmha::NoKernelFound(to_text(explain(*context.dispatcher, problem)));
    auto kernel = plan.stages().front().kernel;
    if (info != nullptr) {
        info->workspace_bytes = plan.workspace_bytes();
        info->milliseconds = 0.0;
        const std::string name = context.registry->name_of(*kernel);
        const std::size_t length = std::min(name.size(), sizeof info->kernel - 1);
        std::memcpy(info->kernel, name.data(), length);
        info->kernel[length] = '\0';
    }
    return kernel;
}

void check_ready(const fmha_context& context, const fmha_run_info* info) {
    if (context.dispatcher == nullptr) throw InputError("this context was not created successfully");
    if (info != nullptr) check_header(info, "info");
}

void open_catalogue(fmha_context& fresh, const fmha_context_options& options,
                    const fmha::arch::ArchSet& archs) {
    if (options.arch == nullptr) throw InputError("options.arch is NULL");
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

fmha_status fmha_plan_fwd(fmha_context* context, const fmha_fwd_args* args, fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        planned(*context, call_of(*context, args, Memory::device).problem, info);
    });
}

fmha_status fmha_run_fwd_host(fmha_context* context, const fmha_fwd_args* args, fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        const Call call = call_of(*context, args, Memory::host);
        require_arrays(call.args);
        require_tensors(call.args);
        fmha::check_descales(call.args);
        const auto kernel = planned(*context, call.problem, info);
        auto& instance = context->instances[identifier(kernel->config)];
        if (instance == nullptr) instance = fmha::host_target::make_instance(kernel->config);
        const auto start = std::chrono::steady_clock::now();
        instance->launch(call.args, {});
        if (info != nullptr)
            info->milliseconds =
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    });
}

fmha_status fmha_run_fwd_device(fmha_context* context, const fmha_fwd_args* args, void* stream,
                                fmha_run_info* info) {
    if (context == nullptr) return FMHA_BAD_ARGUMENT;
    return guarded(*context, [&] {
        check_ready(*context, info);
        if (context->device == nullptr)
            throw fmha::UnsupportedInvocation(
                "this context was created without kernels_dir and has no device; "
                "use fmha_run_fwd_host");
        const Call call = call_of(*context, args, Memory::device);
        require_arrays(call.args);
        const auto kernel = planned(*context, call.problem, info);
        context->device->launch(kernel->config, call.args, stream);
    });
}

} // extern "C"
