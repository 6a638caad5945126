// Each known mistake, put into the batch prefill program on the host, turns a case of batch_prefill/faults red.

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/targets/faulty_prefill.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gtest/gtest.h>

namespace fmha::harness {
namespace {

using targets::PrefillFault;
constexpr auto no_fault = static_cast<PrefillFault>(255);

class FaultyInstance final : public KernelInstance {
  public:
    FaultyInstance(const KernelConfig& config, PrefillFault fault) : config_(config), fault_(fault) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "faulty"; }
    void launch(const Invocation& invocation, Stream) const override {
        host_target::run_blocks(kernels::Program<KernelFamily::batch_prefill>{}, config_,
                                std::get<BatchPrefillArgs>(invocation), {.threads = 1}, [&](auto* trace) {
                                    return targets::FaultyPrefill<host_target::HostContext>(fault_, config_,
                                                                                            trace);
                                });
    }

  private:
    KernelConfig config_;
    PrefillFault fault_;
};

/// The host target with the mistake in every kernel.
class FaultyTarget final : public Target {
  public:
    explicit FaultyTarget(PrefillFault fault) : fault_(fault) {}
    std::string_view name() const override { return "faulty"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        return {{}, std::make_shared<FaultyInstance>(config, fault_), host_target::numerics_of(config)};
    }

  private:
    PrefillFault fault_;
    std::string arch_ = "gfx950";
};

const std::vector<Case>& subset() {
    static const auto cases = load_cases({"batch_prefill/faults"}, {.root = FMHA_CASES_DIR});
    return cases;
}

/// The first result of the subset that is not green; "" when all are.
std::string noticed_by(PrefillFault fault) {
    const auto source =
        house_kernels(std::make_shared<FaultyTarget>(fault), {}, kernel_families_of(subset()));
    for (const Case& c : subset())
        for (const auto& result : run_case(c, *source, {}))
            if (!is_green(result.outcome)) return result.name + ": " + result.message;
    return {};
}

TEST(PrefillFaultSubset, IsSmallAndGreenForACorrectKernel) {
    EXPECT_GE(subset().size(), 5U);
    EXPECT_LE(subset().size(), 40U);
    EXPECT_EQ(noticed_by(no_fault), "");
}

class EveryPrefillFault : public testing::TestWithParam<PrefillFault> {};

TEST_P(EveryPrefillFault, IsCaughtByTheSubset) {
    EXPECT_NE(noticed_by(GetParam()), "") << "no case of batch_prefill/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryPrefillFault, testing::ValuesIn([] {
                             std::vector<PrefillFault> faults;
                             for (const auto& entry : EnumTable<PrefillFault>::names)
                                 faults.push_back(entry.value);
                             return faults;
                         }()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness
