// Every known mistake in the forward program, on fragments: the case that has what the mistake needs is green without it
// and red with it.

#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/faults.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include <gtest/gtest.h>

namespace fmha::hip_target::test {
namespace {

using harness::FwdCase;
using harness::Outcome;
using targets::Fault;

void emulate_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault) {
    emulate_blocks(
        config, args, {}, [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const RunTime& setup) {
            using Right = BlockContext<EmulatedMachine, RunTime>;
            return FaultyContext<Right, RunTimeFault>(machine, setup, {fault});
        });
}

/// A case on which the fault acts.
FwdCase case_for(Fault fault, const KernelConfig& kernel) {
    FwdCase c = plain_case(kernel);
    c.nhead_q = 4;
    c.nhead_k = 2;
    switch (fault) {
    case Fault::mask_right_too_wide:
        c.mask = MaskType::top_left;
        c.window_right = 0;
        break;
    case Fault::mask_left_too_narrow:
        c.mask = MaskType::bottom_right;
        c.window_left = 20;
        c.window_right = 0;
        break;
    case Fault::dropout_byte_off_by_one:
    case Fault::dropout_scale_omitted:
        c.p_drop = 0.2;
        break;
    case Fault::bias_row_stride_wrong:
        c.bias = BiasType::elementwise;
        break;
    case Fault::alibi_neighbour_slope:
        c.bias = BiasType::alibi;
        c.bias_rank = 0;
        break;
    case Fault::sink_added_twice:
        c.sink_logits = harness::SinkLogits::normal;
        break;
    case Fault::group_offset_off_by_one:
        c.mode = Mode::group;
        c.seqlen_q = {33, 70};
        c.seqlen_k = {97, 64};
        break;
    case Fault::soft_cap_after_mask:
        c.logits_soft_cap = 2.0;
        c.mask = MaskType::top_left;
        c.window_right = 0;
        break;
    case Fault::weights_truncated:
        // Truncation is a bias, which adds up over values of one sign.
        c.fill = harness::Fill::uniform;
        c.seqlen_k = {400};
        break;
    case Fault::rescale_missed:
        c.seqlen_k = {3 * kernel.algorithm.tile.n0};
        c.fill = harness::Fill::rising;
        break;
    case Fault::padding_read:
        c.hdim_q = 40;
        break;
    default:
        break;
    }
    return c;
}

KernelConfig kernel_of(const char* name) {
    const std::string_view arch(name);
    const bool async = arch == "sm_90";
    return smallest_house_kernel(std::string(arch), [async](const KernelConfig& config) {
        return config.signature.data_type == DataType::fp16 && plan_of(config).async == async;
    });
}

using FaultOn = std::tuple<const char*, Fault>;
class EveryFault : public testing::TestWithParam<FaultOn> {};

TEST_P(EveryFault, IsCaught) {
    const auto [arch, fault] = GetParam();
    const KernelConfig kernel = kernel_of(arch);
    const FwdCase c = case_for(fault, kernel);
    const auto right = result_of(c, kernel, FittingKernel(kernel));
    ASSERT_EQ(right.outcome, Outcome::passed) << right.message;
    const FittingKernel faulty(kernel, [fault = fault](const KernelConfig& config, const FwdArgs& args) {
        emulate_with_fault(config, args, fault);
    });
    const auto wrong = result_of(c, kernel, faulty);
    EXPECT_EQ(wrong.outcome, Outcome::failed);
    RecordProperty("gate", wrong.message);
}

std::vector<Fault> all_faults() {
    std::vector<Fault> faults;
    for (const auto& entry : EnumTable<Fault>::names) faults.push_back(entry.value);
    return faults;
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryFault,
                         testing::Combine(testing::Values("gfx942", "sm_90"),
                                          testing::ValuesIn(all_faults())),
                         [](const auto& param) {
                             return std::string(std::get<0>(param.param)) + "_" +
                                    std::string(to_string(std::get<1>(param.param)));
                         });

} // namespace
} // namespace fmha::hip_target::test
