#include "tests/harness/faulty_kernels.hpp"

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/targets/host/append_context.hpp"
#include "kernels/targets/host/backward_context.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/row_program_context.hpp"

#include <utility>

namespace fmha::harness::test {
namespace {

using namespace host_target;
using namespace targets;
using enum KernelFamily;
using kernels::Program;

/// Runs the program of `family` in contexts that `make` returns for a trace.
template <KernelFamily family>
void run(const KernelConfig& config, const Invocation& invocation, auto make) {
    using Args = typename Program<family>::Args;
    run_blocks(Program<family>{}, config, std::get<Args>(invocation), {.threads = 1}, make);
}

/// A host kernel that is run by a function.
class LaunchedInstance final : public KernelInstance {
  public:
    LaunchedInstance(const KernelConfig& config, Launch launch)
        : config_(config), launch_(std::move(launch)) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "faulty"; }
    void launch(const Invocation& invocation, Stream) const override { launch_(config_, invocation); }

  private:
    KernelConfig config_;
    Launch launch_;
};

/// The host target, whose kernels are run by a function.
class LaunchedTarget final : public Target {
  public:
    LaunchedTarget(Launch launch, std::string arch) : launch_(std::move(launch)), arch_(std::move(arch)) {}
    std::string_view name() const override { return "faulty"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, std::make_shared<LaunchedInstance>(config, launch_), numerics_of(config)};
    }

  private:
    Launch launch_;
    std::string arch_;
};

} // namespace

Launch launch_with(AppendFault fault) {
    return [fault](const KernelConfig& config, const Invocation& invocation) {
        run<fwd_appendkv>(config, invocation,
                          [&](auto*) { return FaultyAppend<AppendContext>(fault, config); });
    };
}

Launch launch_with(CombineFault fault) {
    return [fault](const KernelConfig& config, const Invocation& invocation) {
        run<fwd_splitkv_combine>(config, invocation,
                                 [&](auto*) { return FaultyCombine<CombineContext>(fault, config); });
    };
}

Launch launch_with(PrefillFault fault) {
    return [fault](const KernelConfig& config, const Invocation& invocation) {
        run<batch_prefill>(config, invocation,
                           [&](auto* trace) { return FaultyPrefill<HostContext>(fault, config, trace); });
    };
}

Launch launch_with(CacheFault fault) {
    return [fault](const KernelConfig& config, const Invocation& invocation) {
        const auto make = [&](auto* trace) { return FaultyCache<HostContext>(fault, config, trace); };
        if (config.signature.family == fwd_pagedkv)
            run<fwd_pagedkv>(config, invocation, make);
        else if (config.signature.family == fwd_splitkv)
            run<fwd_splitkv>(config, invocation, make);
        else
            make_instance(config)->launch(invocation, {}); // the combine stage reads no cache
    };
}

Launch launch_with(BackwardFault fault) {
    return [fault](const KernelConfig& config, const Invocation& invocation) {
        const auto& args = std::get<BwdArgs>(invocation);
        if (config.signature.family == bwd_dot_do_o)
            run<bwd_dot_do_o>(config, invocation,
                              [&](auto*) { return FaultyDotDoO<DotDoOContext>(fault, args, config); });
        else if (config.signature.family == bwd_dq_dk_dv)
            run<bwd_dq_dk_dv>(config, invocation,
                              [&](auto*) { return FaultyDqDkDv<BackwardContext>(fault, args, config); });
        else
            run<bwd_convert_dq>(config, invocation, [&](auto*) {
                return FaultyConvertDq<ConvertDqContext>(fault, args, config);
            });
    };
}

std::unique_ptr<KernelSource> kernels_that(Launch launch, const std::vector<Case>& cases, std::string arch) {
    return house_kernels(std::make_shared<LaunchedTarget>(std::move(launch), std::move(arch)), {},
                         kernel_families_of(cases));
}

std::vector<Case> cases_of(std::string_view file) {
    return load_cases({std::string(file)}, {.root = FMHA_CASES_DIR});
}

std::string first_red(const std::vector<Case>& cases, Launch launch, const std::string& arch) {
    const auto source = kernels_that(std::move(launch), cases, arch);
    CaseRunOptions options;
    options.arch = arch;
    for (const Case& c : cases)
        for (const auto& result : run_case(c, *source, options))
            if (!is_green(result.outcome)) return result.name + ": " + result.message;
    return {};
}

} // namespace fmha::harness::test
