// The programs of backward with one known mistake, on the host and on the emulated machine: the judgement notices each.
#include "backward_problem.hpp"
#include "backward_specs.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/backward_context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/row_program_context.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace fmha::test {
namespace {

using targets::BackwardFault;

/// run(program, faulty) with the program of a kernel and a value that names its faulty context over another.
template <template <class> class Wrong>
struct Faulty {
    template <class Context>
    using Of = Wrong<Context>;
};
template <class Run>
void with_stage(const KernelConfig& kernel, Run run) {
    switch (kernel.signature.family) {
    case KernelFamily::bwd_dot_do_o:
        return run(kernels::Program<KernelFamily::bwd_dot_do_o>{}, Faulty<targets::FaultyDotDoO>{});
    case KernelFamily::bwd_dq_dk_dv:
        return run(kernels::Program<KernelFamily::bwd_dq_dk_dv>{}, Faulty<targets::FaultyDqDkDv>{});
    default:
        return run(kernels::Program<KernelFamily::bwd_convert_dq>{}, Faulty<targets::FaultyConvertDq>{});
    }
}

/// The host's context of a stage.
template <KernelFamily family>
struct HostContextOf;
template <>
struct HostContextOf<KernelFamily::bwd_dot_do_o> {
    using Type = host_target::DotDoOContext;
};
template <>
struct HostContextOf<KernelFamily::bwd_dq_dk_dv> {
    using Type = host_target::BackwardContext;
};
template <>
struct HostContextOf<KernelFamily::bwd_convert_dq> {
    using Type = host_target::ConvertDqContext;
};

void run_on_host(const KernelConfig& kernel, const BwdArgs& args, BackwardFault fault) {
    with_stage(kernel, [&]<KernelFamily family, class Wrong>(kernels::Program<family> program, Wrong) {
        using Context = typename Wrong::template Of<typename HostContextOf<family>::Type>;
        host_target::run_blocks(program, kernel, args, {.threads = 1},
                                [&](auto*) { return Context(fault, args, kernel); });
    });
}

void run_emulated(const KernelConfig& kernel, const BwdArgs& args, BackwardFault fault) {
    using namespace hip_target;
    with_stage(kernel, [&]<KernelFamily family, class Wrong>(kernels::Program<family> program, Wrong) {
        using Setup = RunTimeOf<family>;
        using Right = typename FamilyContext<family>::template Type<EmulatedMachine, Setup>;
        using Context = typename Wrong::template Of<Right>;
        emulate_blocks(
            program, kernel, args, {.threads = 1},
            [](const MachineShape& shape) { return EmulatedMachine(shape); },
            [&](EmulatedMachine& machine, const Setup& setup) {
                return Context(fault, args, machine, setup);
            });
    });
}

/// Kernels that between them have every feature.
const std::vector<BackwardChain>& chains(const std::string& arch) {
    static std::map<std::string, std::vector<BackwardChain>> known;
    const auto choose = [&arch] {
        const auto dots = catalog::test::working_list(arch, KernelFamily::bwd_dot_do_o),
                   mains = catalog::test::working_list(arch, KernelFamily::bwd_dq_dk_dv),
                   converts = catalog::test::working_list(arch, KernelFamily::bwd_convert_dq);
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
        add(Mode::group, true, MaskClass::none, BiasType::no_bias, none); // its splits are not cleared
        add(Mode::group, true, MaskClass::generic, BiasType::elementwise, none);
        add(Mode::batch, true, MaskClass::generic, BiasType::alibi, dropout_wg16_storerandval);
        return chosen;
    };
    const auto found = known.find(arch);
    return found != known.end() ? found->second : known.emplace(arch, choose()).first->second;
}

/// The number of problems that show that a run with `fault` is wrong, and their messages; stops at `enough`.
template <class Run>
int noticed(const std::string& arch, const Run& run, auto numerics_of, BackwardFault fault, int enough,
            std::string& seen) {
    int count = 0;
    for (const BackwardChain& chain : chains(arch))
        for (BackwardSpec spec : specs_for(chain.main)) {
            if (count >= enough) return count;
            spec.sinks = BackwardSinks::normal;
            const BackwardProblem problem(chain, spec);
            problem.run([&](const KernelConfig& kernel, const BwdArgs& args) { run(kernel, args, fault); });
            const BackwardVerdict verdict = problem.judge(numerics_of(chain.main));
            if (!verdict.acceptable())
                seen += identifier(chain.main) + "\n" + spec.text() + "\n" + verdict.text() + "\n";
            count += verdict.acceptable() ? 0 : 1;
        }
    return count;
}

/// Each mistake is emulated on one of them, in turn.
constexpr std::array emulated{"gfx942", "sm_90", "gfx1100", "gfx950", "gfx1201", "gfx90a"};

class BackwardKernelFaults : public testing::TestWithParam<BackwardFault> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardKernelFaults, testing::ValuesIn([] {
                             std::vector<BackwardFault> all;
                             for (const auto& entry : EnumTable<BackwardFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(BackwardKernelFaults, AreNoticedOnTheHost) {
    ASSERT_EQ(chains("gfx942").size(), 6U);
    std::string seen;
    EXPECT_GE(noticed("gfx942", run_on_host, host_target::numerics_of, GetParam(), 2, seen), 2);
}

TEST_P(BackwardKernelFaults, AreNoticedOnTheEmulatedMachine) {
    const std::string arch = emulated[static_cast<std::size_t>(GetParam()) % emulated.size()];
    ASSERT_EQ(chains(arch).size(), 6U);
    std::string seen;
    EXPECT_GE(noticed(arch, run_emulated, hip_target::numerics_of, GetParam(), 1, seen), 1) << arch;
}

constexpr auto no_fault = static_cast<BackwardFault>(255);

TEST(BackwardKernelFaultsNone, TheSameProblemsAreAcceptedOnTheHostWithoutAFault) {
    std::string seen;
    EXPECT_EQ(noticed("gfx942", run_on_host, host_target::numerics_of, no_fault, 1, seen), 0) << seen;
}

TEST(BackwardKernelFaultsNone, TheSameProblemsAreAcceptedOnTheEmulatedMachineWithoutAFault) {
    for (const char* arch : emulated) {
        std::string seen;
        EXPECT_EQ(noticed(arch, run_emulated, hip_target::numerics_of, no_fault, 1, seen), 0) << seen;
    }
}

} // namespace
} // namespace fmha::test
