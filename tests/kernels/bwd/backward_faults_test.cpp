// The programs of backward with one known mistake on the host: the judgement notices each.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/host/backward_context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace fmha::test {
namespace {

using targets::BackwardFault;

void launch(const KernelConfig& kernel, const BwdArgs& args, BackwardFault fault) {
    using namespace host_target;
    const auto run = [&]<KernelFamily family, class Context>(kernels::Program<family> program,
                                                             const Context*) {
        run_blocks(program, kernel, args, {.threads = 1},
                   [&](auto*) { return Context(fault, args, kernel); });
    };
    switch (kernel.signature.family) {
    case KernelFamily::bwd_dot_do_o:
        return run(kernels::Program<KernelFamily::bwd_dot_do_o>{},
                   static_cast<targets::FaultyDotDoO<DotDoOContext>*>(nullptr));
    case KernelFamily::bwd_dq_dk_dv:
        return run(kernels::Program<KernelFamily::bwd_dq_dk_dv>{},
                   static_cast<targets::FaultyDqDkDv<BackwardContext>*>(nullptr));
    default:
        return run(kernels::Program<KernelFamily::bwd_convert_dq>{},
                   static_cast<targets::FaultyConvertDq<ConvertDqContext>*>(nullptr));
    }
}

/// Kernels that between them have every feature.
const std::vector<BackwardChain>& chains() {
    static const std::vector<BackwardChain> all = [] {
        const auto dots = house_kernels("gfx942", KernelFamily::bwd_dot_do_o),
                   mains = house_kernels("gfx942", KernelFamily::bwd_dq_dk_dv),
                   converts = house_kernels("gfx942", KernelFamily::bwd_convert_dq);
        std::vector<BackwardChain> chosen;
        const auto add = [&](Mode mode, bool deterministic, MaskClass mask, BiasType bias,
                             DropoutVariant dropout) {
            const auto kernel = std::ranges::find_if(mains, [&](const KernelConfig& config) {
                const Signature& s = config.signature;
                return s.data_type == DataType::fp16 && s.hdim_q == 64 && config.algorithm.pad.d != 0 &&
                       s.mode == mode && s.is_deterministic == deterministic && s.mask == mask &&
                       s.bias == bias && s.has_dbias == (bias == BiasType::elementwise) &&
                       config.algorithm.dropout_variant == dropout;
            });
            if (kernel != mains.end()) chosen.push_back(chain_of(*kernel, dots, converts));
        };
        using enum DropoutVariant;
        add(Mode::batch, false, MaskClass::generic, BiasType::elementwise, dropout_wg16);
        add(Mode::group, true, MaskClass::generic, BiasType::alibi, dropout_wg16_storerandval);
        add(Mode::batch, true, MaskClass::none, BiasType::no_bias, none);
        add(Mode::group, true, MaskClass::generic, BiasType::elementwise, none);
        add(Mode::batch, true, MaskClass::generic, BiasType::alibi, dropout_wg16_storerandval);
        return chosen;
    }();
    return all;
}

/// How many problems show that a run with `fault` is wrong, and what they say; stops at `enough`.
int noticed(BackwardFault fault, int enough, std::string& seen) {
    int count = 0;
    for (const BackwardChain& chain : chains())
        for (BackwardSpec spec : specs_for(chain.main)) {
            if (count >= enough) return count;
            spec.sinks = BackwardSinks::normal;
            const BackwardProblem problem(chain, spec);
            problem.run(
                [&](const KernelConfig& kernel, const BwdArgs& args) { launch(kernel, args, fault); });
            const BackwardVerdict verdict = problem.judge(host_target::numerics_of(chain.main));
            if (!verdict.acceptable())
                seen += identifier(chain.main) + "\n" + spec.text() + "\n" + verdict.text() + "\n";
            count += verdict.acceptable() ? 0 : 1;
        }
    return count;
}

class BackwardKernelFaults : public testing::TestWithParam<BackwardFault> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardKernelFaults, testing::ValuesIn([] {
                             std::vector<BackwardFault> all;
                             for (const auto& entry : EnumTable<BackwardFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(BackwardKernelFaults, AreNoticedOnTheHost) {
    ASSERT_EQ(chains().size(), 5U);
    std::string seen;
    EXPECT_GE(noticed(GetParam(), 2, seen), 2);
}

TEST(BackwardKernelFaultsNone, TheSameProblemsAreAcceptedWithoutAFault) {
    std::string seen;
    EXPECT_EQ(noticed(static_cast<BackwardFault>(255), 1, seen), 0) << seen;
}

} // namespace
} // namespace fmha::test
