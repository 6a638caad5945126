// The model can fail: each mistake that a machine, a schedule or the table could make turns a forward case red, by a
// hazard or by its numbers.

#include "kernels/targets/hip/block_plan.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"
#include "tests/hip_target/emulated/faulty_machine.hpp"

#include <gmock/gmock.h>

#include <new>
#include <thread>

namespace fmha::hip_target::test {
namespace {

using harness::Case;
using harness::CaseResult;
using harness::Outcome;
using testing::AnyOf;
using testing::HasSubstr;

struct FaultyRun {
    CaseResult result;
    int hits = 0;
};

FaultyRun run(const Case& c, const KernelConfig& kernel, const Sabotage& sabotage) {
    std::atomic<int> hits{0};
    const FittingKernel source(kernel, [&](const KernelConfig& config, const FwdArgs& args) {
        emulate_on_faulty_machine(config, args, sabotage, hits);
    });
    FaultyRun out{result_of(c, kernel, source), 0};
    out.hits = hits;
    return out;
}

KernelConfig fp16_kernel(const std::string& arch) {
    return smallest_house_kernel(arch, [](const KernelConfig& config) {
        return config.signature.data_type == DataType::fp16 &&
               plan_of(config).staging.async == AsyncCopies::none;
    });
}
KernelConfig async_kernel() {
    return smallest_house_kernel("sm_90", [](const KernelConfig& config) {
        return config.signature.data_type == DataType::fp16 &&
               plan_of(config).staging.async != AsyncCopies::none;
    });
}
KernelConfig kernel_with_one_buffer() {
    return smallest_house_kernel("gfx942", [](const KernelConfig& config) {
        return config.signature.data_type == DataType::fp32 && plan_of(config).key.stage == 0;
    });
}

TEST(Emulation, AThreadWithoutMemoryDoesNotEndTheProcess) {
    const kernels::Program<KernelFamily::fwd> forward;
    const KernelConfig kernel = fp16_kernel("gfx942");
    const auto caller = std::this_thread::get_id();
    const FittingKernel source(kernel, [&](const KernelConfig& config, const FwdArgs& args) {
        const auto make_machine = [&](const MachineShape& shape) {
            if (std::this_thread::get_id() != caller) throw std::bad_alloc();
            return EmulatedMachine(shape);
        };
        const auto make_context = [](EmulatedMachine& machine, const RunTime& setup) {
            return BlockContext<EmulatedMachine, RunTime>(machine, setup);
        };
        EXPECT_THROW(emulate_blocks(forward, config, args, {.threads = 4}, make_machine, make_context),
                     std::bad_alloc);
        emulate_blocks(forward, config, args, {.threads = 1}, make_machine, make_context);
    });
    EXPECT_EQ(result_of(plain_case(kernel), kernel, source).outcome, Outcome::passed);
}

/// Several key tiles for a block of any of these kernels.
Case case_of_several_tiles(const KernelConfig& kernel) {
    Case c = plain_case(kernel);
    c.batch = 1;
    c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {20};
    c.seqlen_k = {3 * kernel.algorithm.tile.n0 - 6};
    return c;
}

/// Leaves out one barrier after the other, from the `first` on, until a block has no more of them.
void expect_every_barrier_is_needed(const KernelConfig& kernel, const Case& c, int first = 0) {
    for (int n = first;; ++n) {
        const FaultyRun faulty = run(c, kernel, {MachineFault::barrier_missing, n});
        if (faulty.hits == 0) {
            EXPECT_EQ(faulty.result.outcome, Outcome::passed) << faulty.result.message;
            EXPECT_GT(n, 5) << "the block has hardly any barriers";
            return;
        }
        EXPECT_EQ(faulty.result.outcome, Outcome::failed) << "barrier " << n << " is not needed";
        EXPECT_THAT(faulty.result.message, AnyOf(HasSubstr("read_after_write"), HasSubstr("write_after_read"),
                                                 HasSubstr("wave_order"), HasSubstr("copy_not_visible")))
            << "barrier " << n;
    }
}

void expect_every_barrier_is_needed(const KernelConfig& kernel, int first = 0) {
    expect_every_barrier_is_needed(kernel, case_of_several_tiles(kernel), first);
}

TEST(MissingBarrier, IsNoticedWithTwoBuffers) {
    expect_every_barrier_is_needed(fp16_kernel("gfx942"));
}
// The barrier before the first tile is written waits for nobody.
TEST(MissingBarrier, IsNoticedWithOneBuffer) {
    expect_every_barrier_is_needed(kernel_with_one_buffer(), 1);
}
TEST(MissingBarrier, IsNoticedOnRdna3) {
    expect_every_barrier_is_needed(fp16_kernel("gfx1100"));
}
TEST(MissingBarrier, IsNoticedWithLdmatrix) {
    expect_every_barrier_is_needed(fp16_kernel("sm_90"));
}
TEST(MissingBarrier, IsNoticedInTheRingOfAsynchronousCopies) {
    expect_every_barrier_is_needed(async_kernel());
}

TEST(MissingWaveBarrier, IsNoticedBehindTheRandomBytes) {
    const KernelConfig kernel = fp16_kernel("gfx942");
    Case c = case_of_several_tiles(kernel);
    c.p_drop = 0.2;
    // The first of a tile's two waits for the bytes of the tile before, which barriers of the block do as well.
    for (const int n : {1, 3, 5}) {
        const FaultyRun faulty = run(c, kernel, {MachineFault::wave_barrier_missing, n});
        EXPECT_GT(faulty.hits, 0);
        EXPECT_EQ(faulty.result.outcome, Outcome::failed);
        EXPECT_THAT(faulty.result.message, HasSubstr("wave_order"));
    }
}

void expect_every_wait_is_needed(const KernelConfig& kernel, const Case& c) {
    for (int n = 0;; ++n) {
        const FaultyRun faulty = run(c, kernel, {MachineFault::copies_not_awaited, n});
        if (faulty.hits == 0) {
            EXPECT_GT(n, 5);
            return;
        }
        EXPECT_EQ(faulty.result.outcome, Outcome::failed) << "wait " << n << " is not needed";
        EXPECT_THAT(faulty.result.message, HasSubstr("copy_not_awaited"));
    }
}

TEST(CopiesNotAwaited, AreNoticed) {
    const KernelConfig kernel = async_kernel();
    expect_every_wait_is_needed(kernel, case_of_several_tiles(kernel));
}

/// Exchanges the weights of the first two bits that count.
void swap_bits(Axis& axis) {
    std::int8_t* first = nullptr;
    const auto visit = [&](std::int8_t& weight) {
        if (weight == 0) return false;
        if (first != nullptr) {
            std::swap(*first, weight);
            return true;
        }
        first = &weight;
        return false;
    };
    for (std::int8_t& weight : axis.lane)
        if (visit(weight)) return;
    for (std::int8_t& weight : axis.reg)
        if (visit(weight)) return;
}

/// Steps that AMD's units copy straight to LDS.
struct StepCopies {
    const char* name;
    const char* arch;
    Pipeline pipeline;
    DataType type;
    VLayout v_layout;
    bool copies_values, reads_transposed;
    int buffers = 2; ///< at least

    KernelConfig kernel() const {
        return smallest_house_kernel(arch, [&](const KernelConfig& config) {
            return config.signature.data_type == type && config.algorithm.pipeline == pipeline &&
                   plan_of(config).staging.buffers >= buffers;
        });
    }
    Case problem() const {
        Case c = case_of_several_tiles(kernel());
        c.v_layout = v_layout;
        if (v_layout == VLayout::column) c.seqlen_k.front() &= ~7;
        return c;
    }
};
class EveryStepCopy : public testing::TestWithParam<StepCopies> {};

TEST_P(EveryStepCopy, IsWhatTheTestSaysAndGreen) {
    KernelConfig kernel = GetParam().kernel();
    kernel.signature.v_layout = GetParam().v_layout;
    const BlockPlan plan = plan_of(kernel);
    EXPECT_EQ(plan.staging.async, AsyncCopies::steps);
    EXPECT_EQ(plan.value.copy_words > 0, GetParam().copies_values);
    EXPECT_EQ(plan.value.reads_transposed, GetParam().reads_transposed);
    EXPECT_GE(plan.staging.buffers, GetParam().buffers);
    const FaultyRun whole = run(GetParam().problem(), kernel, {});
    EXPECT_EQ(whole.result.outcome, Outcome::passed) << whole.result.message;
}

TEST_P(EveryStepCopy, NeedsEveryBarrier) {
    expect_every_barrier_is_needed(GetParam().kernel(), GetParam().problem());
}

TEST_P(EveryStepCopy, NeedsEveryWait) {
    expect_every_wait_is_needed(GetParam().kernel(), GetParam().problem());
}

TEST_P(EveryStepCopy, FetchesWhatItsPlaceIsFor) {
    const FaultyRun faulty = run(GetParam().problem(), GetParam().kernel(), {MachineFault::copies_misplaced});
    EXPECT_GT(faulty.hits, 0);
    EXPECT_EQ(faulty.result.outcome, Outcome::failed);
}

TEST_P(EveryStepCopy, GathersWhatIsNotAligned) {
    Case c = GetParam().problem();
    c.nhead_q = c.nhead_k = 2; // of odd row strides in either layout
    c.stride_padding = 7;
    const FaultyRun odd = run(c, GetParam().kernel(), {MachineFault::copies_misplaced});
    EXPECT_EQ(odd.result.outcome, Outcome::passed) << odd.result.message;
    EXPECT_EQ(odd.hits, 0) << "nothing is copied in whole units";
}

class EveryReadOfColumns : public EveryStepCopy {};

TEST_P(EveryReadOfColumns, GoesByTheMapOfTheTable) {
    struct Spoil {
        const char* what;
        void (*spoil)(TransposingRead&);
    };
    for (const auto& [what, spoil] :
         {Spoil{"rows that lanes name", [](TransposingRead& read) { swap_bits(read.source_row); }},
          Spoil{"columns that lanes name",
                [](TransposingRead& read) { std::swap(read.source_col.lane[0], read.source_col.reg[0]); }},
          Spoil{"rows that lanes receive", [](TransposingRead& read) { swap_bits(read.row); }},
          Spoil{"columns that lanes receive", [](TransposingRead& read) { swap_bits(read.col); }}}) {
        const FaultyRun faulty =
            run(GetParam().problem(), GetParam().kernel(), {MachineFault::read_map_wrong, 0, nullptr, spoil});
        EXPECT_GT(faulty.hits, 0) << what;
        EXPECT_EQ(faulty.result.outcome, Outcome::failed) << what;
    }
}

const std::vector<StepCopies> through_registers{
    {"gfx90a", "gfx90a", Pipeline::qr_async, DataType::fp16, VLayout::row, false, false},
    {"gfx942_fp8", "gfx942", Pipeline::qr_async, DataType::fp8bf16, VLayout::row, false, false}};
const std::vector<StepCopies> by_channel{
    {"gfx942_column", "gfx942", Pipeline::qr_async, DataType::bf16, VLayout::column, true, false},
    {"gfx950_column", "gfx950", Pipeline::qr_async, DataType::fp16, VLayout::column, true, false}};
const std::vector<StepCopies> transposed{
    {"gfx950", "gfx950", Pipeline::qr_async, DataType::bf16, VLayout::row, true, true},
    {"gfx950_trload", "gfx950", Pipeline::qr_async_trload, DataType::bf16, VLayout::row, true, true},
    {"gfx950_trload_v3", "gfx950", Pipeline::qr_async_trload_v3, DataType::fp8bf16, VLayout::row, true, true},
    {"gfx950_four", "gfx950", Pipeline::qr_async, DataType::fp16, VLayout::row, true, true, 4},
    {"gfx950_eight", "gfx950", Pipeline::qr_async_trload, DataType::fp16, VLayout::row, true, true, 8},
    {"gfx950_alone", "gfx950", Pipeline::qr, DataType::bf16, VLayout::row, true, true, 3}};
std::string name_of(const testing::TestParamInfo<StepCopies>& copies) {
    return copies.param.name;
}

INSTANTIATE_TEST_SUITE_P(ThroughRegisters, EveryStepCopy, testing::ValuesIn(through_registers), name_of);
INSTANTIATE_TEST_SUITE_P(ByChannel, EveryStepCopy, testing::ValuesIn(by_channel), name_of);
INSTANTIATE_TEST_SUITE_P(Transposed, EveryStepCopy, testing::ValuesIn(transposed), name_of);
INSTANTIATE_TEST_SUITE_P(Transposed, EveryReadOfColumns, testing::ValuesIn(transposed), name_of);

class EveryArchitecture : public testing::TestWithParam<const char*> {};

TEST_P(EveryArchitecture, NoticesAWrongExchange) {
    const KernelConfig kernel = fp16_kernel(GetParam());
    const FaultyRun faulty = run(plain_case(kernel), kernel, {MachineFault::exchange_mask_wrong});
    EXPECT_GT(faulty.hits, 0);
    EXPECT_EQ(faulty.result.outcome, Outcome::failed);
}

/// Values by row, because those by column may be written word by word; gfx950 copies those of 16 bits straight to LDS.
TEST_P(EveryArchitecture, NoticesSwappedWords) {
    const DataType type = GetParam() == std::string("gfx950") ? DataType::fp32 : DataType::fp16;
    const KernelConfig kernel = smallest_house_kernel(GetParam(), [type](const KernelConfig& config) {
        if (config.signature.data_type != type) return false;
        const BlockPlan plan = plan_of(config);
        return plan.staging.async == AsyncCopies::none && !plan.value.stored_by_column;
    });
    const FaultyRun faulty = run(plain_case(kernel), kernel, {MachineFault::words_swapped});
    EXPECT_GT(faulty.hits, 0);
    EXPECT_EQ(faulty.result.outcome, Outcome::failed);
}

TEST_P(EveryArchitecture, NoticesAWrongRowOfTheTable) {
    const KernelConfig kernel = fp16_kernel(GetParam());
    struct Spoil {
        const char* what;
        void (*spoil)(InstructionInfo&);
    };
    for (const auto& [what, spoil] :
         {Spoil{"rows of A", [](InstructionInfo& row) { swap_bits(row.a_row); }},
          Spoil{"depth of A", [](InstructionInfo& row) { swap_bits(row.a_k); }},
          Spoil{"columns of B", [](InstructionInfo& row) { swap_bits(row.b_col); }},
          Spoil{"depth of B", [](InstructionInfo& row) { swap_bits(row.b_k); }},
          Spoil{"rows of C", [](InstructionInfo& row) { swap_bits(row.c_row); }},
          Spoil{"columns of C", [](InstructionInfo& row) { swap_bits(row.c_col); }}}) {
        const FaultyRun faulty = run(plain_case(kernel), kernel, {MachineFault::lane_map_wrong, 0, spoil});
        EXPECT_GT(faulty.hits, 0) << what;
        EXPECT_EQ(faulty.result.outcome, Outcome::failed) << what;
    }
}

/// Numbers k anew: every bit of it has the weight of the next one, the last one 1.
void renumber(Axis& depth, int k) {
    const auto next = [&](std::int8_t& weight) {
        weight = static_cast<std::int8_t>(2 * weight == k ? 1 : 2 * weight);
    };
    for (std::int8_t& weight : depth.lane) next(weight);
    for (std::int8_t& weight : depth.reg) next(weight);
}

TEST_P(EveryArchitecture, TakesAnyNumberingOfDepthThatTheOperandsShare) {
    const KernelConfig kernel = fp16_kernel(GetParam());
    const FaultyRun of_both =
        run(plain_case(kernel), kernel, {MachineFault::lane_map_wrong, 0, [](InstructionInfo& row) {
                                             renumber(row.a_k, row.k);
                                             renumber(row.b_k, row.k);
                                         }});
    EXPECT_GT(of_both.hits, 0);
    EXPECT_EQ(of_both.result.outcome, Outcome::passed) << of_both.result.message;
    const FaultyRun of_one =
        run(plain_case(kernel), kernel,
            {MachineFault::lane_map_wrong, 0, [](InstructionInfo& row) { renumber(row.a_k, row.k); }});
    EXPECT_EQ(of_one.result.outcome, Outcome::failed);
}

TEST(Rdna4, ComputesTheSameWithTheNumberingOfAmdsCalculator) {
    const KernelConfig kernel = fp16_kernel("gfx1201");
    const FaultyRun numbered =
        run(plain_case(kernel), kernel, {MachineFault::lane_map_wrong, 0, [](InstructionInfo& row) {
                                             row.a_k = row.b_k = {{0, 0, 0, 0, 4}, {1, 2, 8}};
                                         }});
    EXPECT_GT(numbered.hits, 0);
    EXPECT_EQ(numbered.result.outcome, Outcome::passed) << numbered.result.message;
}

class ScaledOperands : public testing::TestWithParam<DataType> {};

TEST_P(ScaledOperands, AWrongRowOfTheTableIsNoticed) {
    const KernelConfig kernel = smallest_house_kernel(
        "gfx950", [](const KernelConfig& config) { return config.signature.data_type == GetParam(); });
    const Case c = plain_case(kernel);
    struct Spoil {
        const char* what;
        void (*spoil)(InstructionInfo&);
    };
    EXPECT_EQ(run(c, kernel, {}).result.outcome, Outcome::passed);
    for (const auto& [what, spoil] :
         {Spoil{"depth of A", [](InstructionInfo& row) { std::swap(row.a_k.reg[4], row.a_k.lane[5]); }},
          Spoil{"depth of B", [](InstructionInfo& row) { std::swap(row.b_k.reg[4], row.b_k.lane[5]); }},
          Spoil{"rows of A's scales", [](InstructionInfo& row) { swap_bits(row.a_scale.outer); }},
          Spoil{"blocks of A's scales", [](InstructionInfo& row) { row.a_scale.k = {}; }},
          Spoil{"columns of B's scales", [](InstructionInfo& row) { swap_bits(row.b_scale.outer); }},
          Spoil{"blocks of B's scales", [](InstructionInfo& row) { row.b_scale.k = {}; }}}) {
        const FaultyRun faulty = run(c, kernel, {MachineFault::lane_map_wrong, 0, spoil});
        EXPECT_GT(faulty.hits, 0) << what;
        EXPECT_EQ(faulty.result.outcome, Outcome::failed) << what;
    }
}

TEST_P(ScaledOperands, EveryBarrierIsNeeded) {
    expect_every_barrier_is_needed(smallest_house_kernel(
        "gfx950", [](const KernelConfig& config) { return config.signature.data_type == GetParam(); }));
}

INSTANTIATE_TEST_SUITE_P(Machine, ScaledOperands, testing::Values(DataType::mxfp8, DataType::mxfp4),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST_P(EveryArchitecture, IsGreenWithoutAFault) {
    const KernelConfig kernel = fp16_kernel(GetParam());
    const FaultyRun run_without = run(plain_case(kernel), kernel, {});
    EXPECT_EQ(run_without.result.outcome, Outcome::passed) << run_without.result.message;
}

INSTANTIATE_TEST_SUITE_P(Machine, EveryArchitecture,
                         testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"),
                         [](const auto& arch) { return std::string(arch.param); });

} // namespace
} // namespace fmha::hip_target::test
