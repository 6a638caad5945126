// Warp-specialised forward of e4m3, V by row: tiles of values are transposed in LDS on their way to the teams. By the host's one team and
// by emulated teams in every schedule, against the reference, and with mistakes.

#include "judge.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "named_mistakes.hpp"
#include "team_agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

const TeamVariant by_row_variants[] = {
    {"plain", 2, 128, 64, DataType::fp8bf16, changes::none},
    {"128 channels, causal, query heads in groups, descales", 2, 128, 128, DataType::fp8bf16,
     [](Shape& s) {
         changes::causal_in_groups_of_heads(s);
         s.qscale = QScale::pertensor;
     }},
    {"125 channels, a few keys, 8-bit output", 2, 128, 128, DataType::fp8,
     [](Shape& s) {
         s.hdim_q = s.hdim_v = 125;
         s.seqlen_k = {13};
         s.padding = 19;
     }},
    {"three teams of 64 keys, lengths by entry, sink logits", 3, 64, 64, DataType::fp8fp32,
     [](Shape& s) {
         s.batch = 2;
         s.extra = 5;
         s.sink_logit = true;
     }},
    {"group mode, window", 2, 96, 96, DataType::fp8bf16,
     [](Shape& s) {
         s.batch = 3;
         s.seqlen_q = {70, 150, 1};
         s.seqlen_k = {333, 1, 128};
         s.extra = 5;
         s.mask = {MaskType::top_left, 40, 10, 0};
     }},
    {"ALiBi, soft cap, group mode", 2, 128, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.batch = 2;
         s.group = true;
         s.bias = BiasType::alibi;
         s.soft_cap = 2.0F;
     }},
    {"elementwise bias", 2, 32, 64, DataType::fp8bf16, changes::elementwise_bias},
};

/// Rows are whole units with what lies behind them, which is NaN.
Shape by_row(const TeamVariant& variant) {
    Shape shape = team_shape(variant.type, variant.channels);
    shape.extra = 0;
    shape.padding = 16;
    variant.change(shape);
    return shape;
}

class TransposedInEverySchedule : public testing::TestWithParam<int> {};

TEST_P(TransposedInEverySchedule, AgreesWithTheReference) {
    expect_agreement(by_row_variants, GetParam(), by_row, team_kernel);
}
INSTANTIATE_TEST_SUITE_P(Teams, TransposedInEverySchedule, testing::Range(0, schedules));

TEST(TransposedOnTheHost, AgreesWithTheReference) {
    expect_agreement_on_host(by_row_variants, by_row, team_kernel);
}

TEST(TransposedPlan, HasWavesAndStagesOfItsOwn) {
    const FwdProblem problem(by_row(by_row_variants[1]));
    const WsPlan plan = ws_plan_of(team_kernel(problem, 2, 128, 128));
    ASSERT_EQ(plan.problem, PlanProblem::none);
    EXPECT_EQ(plan.arriving.stages, 2);
    EXPECT_EQ(plan.arriving.takers, plan.transposers);
    EXPECT_EQ(plan.values.fillers, plan.transposers);
    EXPECT_EQ(plan.values.takers, 8);
    EXPECT_EQ(plan.lds_bytes, 8 * 128 * 128 + 8 * 16);
    FwdProblem by_column(by_row(by_row_variants[1]));
    KernelConfig kernel = team_kernel(by_column, 2, 128, 128);
    kernel.signature.v_layout = VLayout::column;
    EXPECT_EQ(ws_plan_of(kernel).transposers, 0);
    EXPECT_EQ(cannot_execute(team_kernel(problem, 2, 128, 128)), std::nullopt);
    EXPECT_NE(cannot_execute(team_kernel(problem, 2, 160, 128)), std::nullopt) << "lines of two blocks";
    EXPECT_NE(cannot_execute(team_kernel(problem, 2, 128, 112)), std::nullopt) << "channels by 32";
}

enum class Mistake : std::uint8_t {
    none,
    before_full,     ///< a tile is transposed before copies have brought it
    over_products,   ///< … to a stage that teams have not given back
    given_early,     ///< the arriving stage is given back before it is read
    never_published, ///< no fence of the copy engine's way to LDS
    published_late,  ///< … after the waves have arrived
    lanes_apart,     ///< a lane arrives for others that may still write
    half_twice,      ///< both waves transpose the same half of the keys
    not_given,       ///< the arriving stage is not given back
    not_filled,      ///< the waves do not arrive at "full" of the values
    not_transposed,  ///< pairs of channels stay together
    pairs_swapped,   ///< lanes take the pairs of keys in the order in which they come
    bound_one_short, ///< the map of V ends before the last key
    bound_one_long,  ///< … behind it, where NaN lies
};

class MistakenTransposition : public EmulatedTeamMachine {
  public:
    MistakenTransposition(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent, Mistake mistake)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(transposes(0, 0) ? mistake : Mistake::none),
          of_feed_(mistake) {}

    /// The first wait is for the arriving tile, the second one for a stage to be empty.
    void wait(int address, int parity) {
        const bool first = ++waits_ % 2 == 1;
        if ((mistake_ == Mistake::before_full && first) || (mistake_ == Mistake::over_products && !first))
            return;
        EmulatedTeamMachine::wait(address, parity);
        // "empty" of a stage lies behind "full" of both.
        if (mistake_ == Mistake::given_early && first) EmulatedTeamMachine::arrive_wave(address + 16, true);
    }
    void arrive_wave(int address, bool arrives) {
        const bool gives = mistake_ != Mistake::none && ++arrivals_ % 2 == 1;
        if (gives && (mistake_ == Mistake::given_early || mistake_ == Mistake::not_given)) return;
        if (!gives && mistake_ == Mistake::not_filled) return;
        EmulatedTeamMachine::arrive_wave(address, arrives);
        if (!gives && mistake_ == Mistake::published_late) EmulatedTeamMachine::publish();
    }
    void publish() {
        if (mistake_ != Mistake::never_published && mistake_ != Mistake::published_late)
            EmulatedTeamMachine::publish();
    }
    void wave_barrier() {
        if (mistake_ != Mistake::lanes_apart) EmulatedTeamMachine::wave_barrier();
    }
    int transposer(int thread, int feeders) const {
        return mistake_ == Mistake::half_twice ? 0 : EmulatedTeamMachine::transposer(thread, feeders);
    }
    template <class Address>
    void load_matrix(EmulatedRegisters<std::uint32_t>& out, int r0, Address address, bool transposed) {
        EmulatedTeamMachine::load_matrix(out, r0, address, transposed && mistake_ != Mistake::not_transposed);
    }
    std::uint32_t select_bytes(std::uint32_t high, std::uint32_t low, std::uint32_t selector) const {
        if (mistake_ == Mistake::pairs_swapped) selector &= 0x03030303U, selector |= 0x04040000U;
        return EmulatedTeamMachine::select_bytes(high, low, selector);
    }
    void copy_box(int number, const BoxCorner& corner, int address, int barrier) {
        TensorMapSpec spec = map(number);
        BoxCorner at = corner;
        constexpr int values = 2;
        const int moved = number != values                       ? 0
                          : of_feed_ == Mistake::bound_one_short ? 1
                          : of_feed_ == Mistake::bound_one_long  ? -1
                                                                 : 0;
        at.at[1] += moved;
        at.at[3] -= moved;
        EmulatedTeamMachine::copy_box(spec, at, address, barrier);
    }

  private:
    Mistake mistake_, of_feed_;
    int waits_ = 0, arrivals_ = 0;
};

Verdict verdict_of(Mistake mistake, Schedule schedule) {
    Shape shape = by_row(by_row_variants[0]);
    shape.batch = 2;
    shape.seqlen_k = {333, 13};
    shape.extra = 5;
    FwdProblem problem(shape);
    const KernelConfig kernel = team_kernel(problem, 2, 64, 64);
    return verdict_on<MistakenTransposition>(problem, kernel, mistake, schedule);
}

class EveryTransposition : public testing::TestWithParam<int> {};

TEST_P(EveryTransposition, NamesItsMistake) {
    using enum Mistake;
    using enum Hazard;
    const std::vector<Named<Mistake>> table{
        {before_full, {stage_not_full, unwritten_read, unwritten_read, unwritten_read}},
        always(over_products, stage_in_use),
        {given_early, {stage_not_full, stage_in_use, stage_in_use, stage_in_use}},
        always(never_published, not_published),
        always(published_late, not_published),
        always(lanes_apart, wave_order),
        always(half_twice, unwritten_read),
        always(not_given, deadlock),
        always(not_filled, deadlock),
        always(not_transposed),
        always(pairs_swapped),
        always(bound_one_short),
        always(bound_one_long),
    };
    expect_named(table, GetParam(), verdict_of);
}
INSTANTIATE_TEST_SUITE_P(Teams, EveryTransposition, testing::Range(0, schedules));

} // namespace
} // namespace fmha::hip_target::test
