// The combine program with one known mistake, on the host and on the emulated machine: the judgement notices each.
#include "combine_problem.hpp"
#include "combine_specs.hpp"
#include "kernels/targets/faulty_combine.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "kernels/targets/host/row_program_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fmha::test {
namespace {

using targets::CombineFault;
using targets::FaultyCombine;
using Combine = kernels::Program<KernelFamily::fwd_splitkv_combine>;

KernelConfig kernel_of(std::string_view arch, Mode mode, DataType type) {
    KernelConfig kernel;
    kernel.arch = ArchName(arch);
    kernel.signature.family = KernelFamily::fwd_splitkv_combine;
    kernel.signature.data_type = type;
    kernel.signature.mode = mode;
    kernel.signature.has_lse = true;
    kernel.signature.do_fp8_static_quant = type == DataType::fp8;
    kernel.signature.hdim_q = kernel.signature.hdim_v = 64;
    kernel.algorithm.tile.n1 = 32;
    kernel.algorithm.pipeline = Pipeline::splitkv_combine;
    kernel.algorithm.pad.s = true;
    kernel.algorithm.pad.dv = 1;
    kernel.algorithm.max_splits_log2 = 7;
    return kernel;
}

void run_on_host(const KernelConfig& kernel, const SplitKvArgs& args, CombineFault fault) {
    host_target::run_blocks(Combine{}, kernel, args, {.threads = 1},
                            [&](auto*) { return FaultyCombine<host_target::CombineContext>(fault, kernel); });
}

void run_emulated(const KernelConfig& kernel, const SplitKvArgs& args, CombineFault fault) {
    using namespace hip_target;
    using Setup = RunTimeOf<KernelFamily::fwd_splitkv_combine>;
    emulate_blocks(
        Combine{}, kernel, args, {.threads = 1},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const Setup& setup) {
            return FaultyCombine<CombineContext<EmulatedMachine, Setup>>(fault, machine, setup);
        });
}

class CombineFaults : public testing::TestWithParam<CombineFault> {};
INSTANTIATE_TEST_SUITE_P(All, CombineFaults, testing::ValuesIn([] {
                             std::vector<CombineFault> all;
                             for (const auto& entry : EnumTable<CombineFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

/// How many of the problems for a kernel of `arch` show that a run with `fault` is wrong.
template <class Run>
int noticed(std::string_view arch, const Run& run, CombineFault fault, auto numerics_of) {
    int count = 0;
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const DataType type : {DataType::fp16, DataType::fp8}) {
            const KernelConfig kernel = kernel_of(arch, mode, type);
            for (const CombineSpec& spec : specs_for(kernel)) {
                const CombineProblem problem(kernel, spec);
                run(kernel, problem.args(), fault);
                count += problem.judge(numerics_of(kernel)).acceptable() ? 0 : 1;
            }
        }
    return count;
}

TEST_P(CombineFaults, AreNoticedOnTheHost) {
    EXPECT_GE(noticed("gfx950", run_on_host, GetParam(), host_target::numerics_of), 2);
}

TEST_P(CombineFaults, AreNoticedOnTheEmulatedMachine) {
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"})
        EXPECT_GE(noticed(arch, run_emulated, GetParam(), hip_target::numerics_of), 2) << arch;
}

TEST(CombineFaultsNone, TheSameProblemsAreAcceptedWithoutAFault) {
    const auto no_fault = static_cast<CombineFault>(255);
    EXPECT_EQ(noticed("gfx950", run_on_host, no_fault, host_target::numerics_of), 0);
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"})
        EXPECT_EQ(noticed(arch, run_emulated, no_fault, hip_target::numerics_of), 0) << arch;
}

} // namespace
} // namespace fmha::test
