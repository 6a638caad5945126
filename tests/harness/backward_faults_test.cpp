// Each known mistake, put into one of the kernels of backward on the host, turns a case of bwd/faults red.

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/host/backward_context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gtest/gtest.h>

namespace fmha::harness {
namespace {

using targets::BackwardFault;
constexpr auto no_fault = static_cast<BackwardFault>(255);

template <KernelFamily family, class Context>
void run_faulty(const KernelConfig& config, const BwdArgs& args, BackwardFault fault) {
    host_target::run_blocks(kernels::Program<family>{}, config, args, {.threads = 1},
                            [&](auto*) { return Context(fault, args, config); });
}

class FaultyInstance final : public KernelInstance {
  public:
    FaultyInstance(const KernelConfig& config, BackwardFault fault) : config_(config), fault_(fault) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "faulty"; }
    void launch(const Invocation& invocation, Stream) const override {
        using namespace host_target;
        using enum KernelFamily;
        const auto& args = std::get<BwdArgs>(invocation);
        if (config_.signature.family == bwd_dot_do_o)
            run_faulty<bwd_dot_do_o, targets::FaultyDotDoO<DotDoOContext>>(config_, args, fault_);
        else if (config_.signature.family == bwd_dq_dk_dv)
            run_faulty<bwd_dq_dk_dv, targets::FaultyDqDkDv<BackwardContext>>(config_, args, fault_);
        else
            run_faulty<bwd_convert_dq, targets::FaultyConvertDq<ConvertDqContext>>(config_, args, fault_);
    }

  private:
    KernelConfig config_;
    BackwardFault fault_;
};

/// The host target with the mistake in every kernel.
class FaultyTarget final : public Target {
  public:
    explicit FaultyTarget(BackwardFault fault) : fault_(fault) {}
    std::string_view name() const override { return "faulty"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, std::make_shared<FaultyInstance>(config, fault_), host_target::numerics_of(config)};
    }

  private:
    BackwardFault fault_;
    std::string arch_ = "gfx942";
};

const std::vector<Case>& subset() {
    static const auto cases = load_cases({"bwd/faults"}, {.root = FMHA_CASES_DIR});
    return cases;
}

/// The first result of the subset that is not green; "" when all are.
std::string noticed_by(BackwardFault fault) {
    const auto source =
        house_kernels(std::make_shared<FaultyTarget>(fault), {}, kernel_families_of(subset()));
    CaseRunOptions options;
    options.arch = "gfx942";
    for (const Case& c : subset())
        for (const auto& result : run_case(c, *source, options))
            if (!is_green(result.outcome)) return result.name + ": " + result.message;
    return {};
}

TEST(BackwardFaultSubset, IsSmallAndGreenForCorrectKernels) {
    EXPECT_GE(subset().size(), 4U);
    EXPECT_LE(subset().size(), 40U);
    EXPECT_EQ(noticed_by(no_fault), "");
}

class EveryBackwardFault : public testing::TestWithParam<BackwardFault> {};

TEST_P(EveryBackwardFault, IsCaughtByTheSubset) {
    EXPECT_NE(noticed_by(GetParam()), "") << "no case of bwd/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryBackwardFault, testing::ValuesIn([] {
                             std::vector<BackwardFault> faults;
                             for (const auto& entry : EnumTable<BackwardFault>::names)
                                 faults.push_back(entry.value);
                             return faults;
                         }()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness
