// The append program with one known mistake, on the host and on the emulated machine: the judgement notices each.
#include "append_problem.hpp"
#include "append_specs.hpp"
#include "kernels/targets/faulty_append.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/host/append_context.hpp"
#include "kernels/targets/host/executor.hpp"

#include <gtest/gtest.h>

namespace fmha::test {
namespace {

using targets::AppendFault;
using targets::FaultyAppend;
using Append = kernels::Program<KernelFamily::fwd_appendkv>;

KernelConfig kernel_of(std::string_view arch, Rope rope, bool paged) {
    KernelConfig kernel;
    kernel.arch = ArchName(arch);
    Signature& s = kernel.signature;
    s.family = KernelFamily::fwd_appendkv;
    s.data_type = DataType::bf16;
    s.rope = rope;
    s.use_paged_kv = paged;
    s.hdim_q = s.hdim_v = 64;
    kernel.algorithm.tile = {.m0 = 64, .n0 = 64, .k0 = 64, .n1 = 64};
    kernel.algorithm.pipeline = Pipeline::appendkv;
    kernel.algorithm.pad = {.s = true, .sk = true, .d = 1, .dv = 1};
    return kernel;
}

void run_on_host(const KernelConfig& kernel, const AppendKvArgs& args, AppendFault fault) {
    host_target::run_blocks(Append{}, kernel, args, {.threads = 1},
                            [&](auto*) { return FaultyAppend<host_target::AppendContext>(fault, kernel); });
}

void run_emulated(const KernelConfig& kernel, const AppendKvArgs& args, AppendFault fault) {
    using namespace hip_target;
    using Setup = RunTimeOf<KernelFamily::fwd_appendkv>;
    emulate_blocks(
        Append{}, kernel, args, {.threads = 1},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const Setup& setup) {
            return FaultyAppend<AppendContext<EmulatedMachine, Setup>>(fault, machine, setup);
        });
}

class AppendFaults : public testing::TestWithParam<AppendFault> {};
INSTANTIATE_TEST_SUITE_P(All, AppendFaults, testing::ValuesIn([] {
                             std::vector<AppendFault> all;
                             for (const auto& entry : EnumTable<AppendFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

/// How many of the problems for a kernel of `arch` show that a run with `fault` is wrong, until `enough` do.
template <class Run>
int noticed(std::string_view arch, const Run& run, AppendFault fault, int enough) {
    int count = 0;
    for (const Rope rope : {Rope::none, Rope::interleaved, Rope::half_rotated})
        for (const bool paged : {false, true}) {
            const KernelConfig kernel = kernel_of(arch, rope, paged);
            for (const AppendSpec& spec : specs_for(kernel)) {
                if (count == enough) return count;
                const AppendProblem problem(kernel, spec);
                run(kernel, problem.args(), fault);
                count += problem.judge().acceptable() ? 0 : 1;
            }
        }
    return count;
}

TEST_P(AppendFaults, AreNoticedOnTheHost) {
    EXPECT_EQ(noticed("gfx950", run_on_host, GetParam(), 2), 2);
}

TEST_P(AppendFaults, AreNoticedOnTheEmulatedMachine) {
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"})
        EXPECT_EQ(noticed(arch, run_emulated, GetParam(), 2), 2) << arch;
}

TEST(AppendFaultsNone, TheSameProblemsAreAcceptedWithoutAFault) {
    const auto no_fault = static_cast<AppendFault>(255);
    EXPECT_EQ(noticed("gfx950", run_on_host, no_fault, 1), 0);
    for (const char* arch : {"gfx942", "gfx1201", "sm_90"})
        EXPECT_EQ(noticed(arch, run_emulated, no_fault, 1), 0) << arch;
}

} // namespace
} // namespace fmha::test
