// Each known mistake in where keys are looked for, or which split has them, put into the programs over a cache on the host, turns
// a case of pagedkv/faults and of splitkv/faults red.

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fmha::harness {
namespace {

using targets::CacheFault;

/// A main kernel with the mistake.
class FaultyInstance final : public KernelInstance {
  public:
    FaultyInstance(const KernelConfig& config, CacheFault fault) : config_(config), fault_(fault) {}
    const KernelConfig& config() const override { return config_; }
    std::string name() const override { return "faulty"; }
    void launch(const Invocation& invocation, Stream) const override {
        if (config_.signature.family == KernelFamily::fwd_pagedkv)
            run(kernels::Program<KernelFamily::fwd_pagedkv>{}, std::get<PagedKvArgs>(invocation));
        else
            run(kernels::Program<KernelFamily::fwd_splitkv>{}, std::get<SplitKvArgs>(invocation));
    }

  private:
    template <class Program>
    void run(Program program, const typename Program::Args& args) const {
        host_target::run_blocks(program, config_, args, {.threads = 1}, [&](auto* trace) {
            return targets::FaultyCache<host_target::HostContext>(fault_, config_, trace);
        });
    }

    KernelConfig config_;
    CacheFault fault_;
};

/// The host target with the mistake in every main kernel, or in none.
class FaultyTarget final : public Target {
  public:
    explicit FaultyTarget(std::optional<CacheFault> fault) : fault_(fault) {}
    std::string_view name() const override { return "faulty"; }
    const std::string& arch() const override { return arch_; }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return host_target::cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override {
        const Numerics numerics = host_target::numerics_of(config);
        if (!fault_ || config.signature.family == KernelFamily::fwd_splitkv_combine)
            return {{}, host_target::make_instance(config), numerics};
        return {{}, std::make_shared<FaultyInstance>(config, *fault_), numerics};
    }

  private:
    std::optional<CacheFault> fault_;
    std::string arch_ = "gfx950";
};

/// The first result of `file` that is not green; "" when all are.
std::string noticed_by(const std::string& file, std::optional<CacheFault> fault) {
    const auto cases = load_cases({file}, {.root = FMHA_CASES_DIR});
    EXPECT_GE(cases.size(), 5U);
    EXPECT_LE(cases.size(), 40U);
    const auto source = house_kernels(std::make_shared<FaultyTarget>(fault), {}, kernel_families_of(cases));
    for (const Case& c : cases)
        for (const auto& result : run_case(c, *source, {}))
            if (!is_green(result.outcome)) return result.name + ": " + result.message;
    return {};
}

TEST(CacheFaultSubsets, AreGreenForCorrectKernels) {
    for (const char* file : {"pagedkv/faults", "splitkv/faults"})
        EXPECT_EQ(noticed_by(file, std::nullopt), "");
}

class EveryCacheFault : public testing::TestWithParam<CacheFault> {};

TEST_P(EveryCacheFault, IsCaughtByTheSubsets) {
    EXPECT_NE(noticed_by("splitkv/faults", GetParam()), "") << "no case of splitkv/faults notices it";
    const bool of_splits =
        GetParam() >= CacheFault::split_edge_late || GetParam() == CacheFault::cache_slot_ignored;
    if (of_splits) return; // paged-KV has neither splits nor slots
    EXPECT_NE(noticed_by("pagedkv/faults", GetParam()), "") << "no case of pagedkv/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryCacheFault, testing::ValuesIn([] {
                             std::vector<CacheFault> faults;
                             for (const auto& entry : EnumTable<CacheFault>::names)
                                 faults.push_back(entry.value);
                             return faults;
                         }()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness
