// Batch prefill with one known mistake, on the host and on the emulated machine: the judgement notices each.
#include "kernels/targets/faulty_prefill.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/context.hpp"
#include "kernels/targets/host/executor.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "prefill_problem.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fmha::test {
namespace {

using host_target::test::Shape;
using targets::FaultyPrefill;
using targets::PrefillFault;
using Program = kernels::Program<KernelFamily::batch_prefill>;
constexpr auto no_fault = static_cast<PrefillFault>(255);

void run_on_host(const KernelConfig& kernel, const BatchPrefillArgs& args, PrefillFault fault) {
    host_target::run_blocks(Program{}, kernel, args, {.threads = 1}, [&](auto* trace) {
        return FaultyPrefill<host_target::HostContext>(fault, kernel, trace);
    });
}

void run_emulated(const KernelConfig& kernel, const BatchPrefillArgs& args, PrefillFault fault) {
    using namespace hip_target;
    using Setup = RunTimeOf<KernelFamily::batch_prefill>;
    emulate_blocks(
        Program{}, kernel, args, {.threads = 1},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const Setup& setup) {
            return FaultyPrefill<BlockContext<EmulatedMachine, Setup>>(fault, machine, setup);
        });
}

/// Entries with keys in several pages that are not those of their numbers: pages smaller and larger than a tile, both layouts
/// and look-ups, descales of pages and of tokens.
std::vector<PrefillSpec> problems() {
    Shape shape;
    shape.data_type = DataType::bf16;
    shape.group = true;
    shape.batch = 3;
    shape.hdim_q = 64;
    shape.hdim_v = 32;
    shape.seqlen_q = {2, 5, 3};
    shape.seqlen_k = {260, 150, 300};
    Shape bytes = shape;
    bytes.data_type = DataType::fp8bf16;
    Shape decode = shape;
    decode.nhead_q = 4;
    decode.nhead_k = 2;
    decode.seqlen_q = {1};
    constexpr auto linear = KvLayout::linear, vectorized = KvLayout::vectorized;
    constexpr auto vllm_2d = KvLookup::vllm_2d, sglang_1d = KvLookup::sglang_1d;
    return {{shape, {linear, vllm_2d, 16, QScale::no_scale, false, 3}},
            {decode, {linear, sglang_1d, 16, QScale::no_scale, false, 8}},
            {shape, {vectorized, sglang_1d, 16, QScale::no_scale, false, 4}},
            {shape, {vectorized, vllm_2d, 128, QScale::no_scale, false, 5}},
            {bytes, {linear, sglang_1d, 64, QScale::kv_blockscale, false, 6}},
            {bytes, {vectorized, vllm_2d, 16, QScale::per_token_head, false, 7}}};
}

/// How many problems show that a run with `fault` is wrong; `worst` tells of the last one.
int noticed(bool emulated, std::string_view arch, PrefillFault fault, std::string& worst) {
    int count = 0;
    for (PrefillSpec spec : problems()) {
        spec.shape.arch = std::string(arch);
        const bool bytes = spec.shape.data_type == DataType::fp8bf16;
        const PrefillProblem problem(spec.shape, spec.pool);
        KernelConfig kernel = problem.config({.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64});
        kernel.arch = ArchName(arch);
        kernel.algorithm.wave = {2, 1, 1, 2, 1, 1, 1, 1, 1};
        const std::int16_t columns = arch == "sm_90" ? 8 : 16, depth = bytes ? 32 : 16;
        kernel.algorithm.warp = {16, columns, depth, 16, columns, depth, 1, 1, 1};
        emulated ? run_emulated(kernel, problem.args(), fault) : run_on_host(kernel, problem.args(), fault);
        const auto distance =
            problem.judge(emulated ? hip_target::numerics_of(kernel) : host_target::numerics_of(kernel));
        if (!distance.acceptable()) worst = spec.pool.text() + ": " + distance.worst;
        count += distance.acceptable() ? 0 : 1;
    }
    return count;
}

class PrefillFaults : public testing::TestWithParam<PrefillFault> {};
INSTANTIATE_TEST_SUITE_P(All, PrefillFaults, testing::ValuesIn([] {
                             std::vector<PrefillFault> all;
                             for (const auto& entry : EnumTable<PrefillFault>::names)
                                 all.push_back(entry.value);
                             return all;
                         }()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(PrefillFaults, AreNoticedOnTheHost) {
    std::string worst;
    EXPECT_GE(noticed(false, "gfx950", GetParam(), worst), 1);
}

TEST_P(PrefillFaults, AreNoticedOnTheEmulatedMachine) {
    std::string worst;
    for (const char* arch : {"gfx942", "sm_90"}) EXPECT_GE(noticed(true, arch, GetParam(), worst), 1) << arch;
}

TEST(PrefillFaultsNone, TheSameProblemsAreAcceptedWithoutAFault) {
    std::string worst;
    for (const char* arch : {"gfx942", "sm_90"})
        for (const bool emulated : {false, true})
            EXPECT_EQ(noticed(emulated, arch, no_fault, worst), 0) << arch << emulated << worst;
}

} // namespace
} // namespace fmha::test
