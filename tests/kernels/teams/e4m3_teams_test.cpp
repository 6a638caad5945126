// Warp-specialised forward of e4m3, V by column: by the host's one team and by emulated teams in every schedule, against the reference;
// what its weights look like, and what its sums of few bits need.

#include "judge.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/hip/ws_maps.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_agreement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

namespace fmha::hip_target::test {
namespace {

/// A problem whose tensors have maps: lines of rows and of keys are whole units with what lies behind them, which is NaN.
Shape e4m3_shape(DataType type, std::int64_t channels) {
    Shape shape = team_shape(type, channels);
    shape.v_layout = VLayout::column;
    shape.extra = 0;
    shape.padding = 16;
    shape.seqlen_k = {336};
    return shape;
}

const TeamVariant e4m3_variants[] = {
    {"plain", 2, 128, 64, DataType::fp8bf16, changes::none},
    {"128 channels, the last keys within a unit", 2, 128, 128, DataType::fp8fp32,
     [](Shape& s) {
         s.hdim_q = s.hdim_v = 125;
         s.seqlen_k = {333};
         s.padding = 19;
     }},
    {"three teams, causal, query heads in groups, descales", 3, 64, 64, DataType::fp8bf16,
     [](Shape& s) {
         changes::causal_in_groups_of_heads(s);
         s.qscale = QScale::pertensor;
     }},
    {"96 keys, window and sink tokens, 8-bit output", 2, 96, 128, DataType::fp8,
     changes::window_and_sink_tokens<704>},
    {"160 keys in two blocks of a line, soft cap, sink logits", 2, 160, 64, DataType::fp8fp32,
     changes::soft_cap_and_sink_logits},
    {"sink logits beside products alone, causal", 2, 64, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.sink_logit = true;
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"96 channels, elementwise bias", 2, 64, 96, DataType::fp8bf16, changes::elementwise_bias},
    {"ALiBi, one tile of keys", 2, 128, 64, DataType::fp8bf16, changes::alibi_in_one_tile<80>},
    {"three entries, causal from the bottom right", 2, 64, 64, DataType::fp8bf16,
     [](Shape& s) {
         s.batch = 3;
         s.seqlen_q = {70};
         s.seqlen_k = {144};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
};

Shape e4m3_shape_of(const TeamVariant& variant) {
    Shape shape = e4m3_shape(variant.type, variant.channels);
    variant.change(shape);
    return shape;
}

class E4m3EverySchedule : public testing::TestWithParam<int> {};

TEST_P(E4m3EverySchedule, AgreesWithTheReference) {
    expect_agreement(e4m3_variants, GetParam(), e4m3_shape_of, team_kernel);
}
INSTANTIATE_TEST_SUITE_P(Teams, E4m3EverySchedule, testing::Range(0, schedules));

TEST(E4m3OneTeam, AgreesWithTheReferenceOnTheHost) {
    expect_agreement_on_host(e4m3_variants, e4m3_shape_of, team_kernel);
}

/// What a run differs in from a right one.
enum class KeyMistake : std::uint8_t {
    none,
    keys_in_order,    ///< all of the keys come in their order to both halves of a tile
    odd_keys_first,   ///< the halves change places
    lines_of_depth,   ///< the right operand of the second product begins a line further on
    bound_one_short,  ///< lines of V end before the last key
    bound_one_long,   ///< … behind it, where NaN lies
    channels_shifted, ///< boxes of V begin at the next channel
};

class MistakenKeys : public EmulatedTeamMachine {
  public:
    MistakenKeys(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent, KeyMistake mistake)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(mistake) {}

    void copy_box(int number, BoxCorner corner, int address, int barrier) {
        TensorMapSpec spec = map(number);
        constexpr int keys = 1, values = 2;
        if (number == keys && mistake_ == KeyMistake::keys_in_order) {
            spec.box[1] /= spec.steps[1];
            spec.steps[1] = 1;
        }
        if (number == keys && mistake_ == KeyMistake::odd_keys_first) corner.at[1] ^= 1;
        if (number == values && mistake_ == KeyMistake::bound_one_short) --spec.extents[0];
        if (number == values && mistake_ == KeyMistake::bound_one_long) ++spec.extents[0];
        if (number == values && mistake_ == KeyMistake::channels_shifted) ++corner.at[1];
        EmulatedTeamMachine::copy_box(spec, corner, address, barrier);
    }
    void multiply_registers(ElementType type, EmulatedRegisters<float>& d,
                            const EmulatedRegisters<std::uint32_t>& a, int a0, MatrixDescriptor b,
                            bool accumulate) {
        if (mistake_ == KeyMistake::lines_of_depth) b = b + SwizzledTile::line_bytes;
        EmulatedTeamMachine::multiply_registers(type, d, a, a0, b, accumulate);
    }

  private:
    KeyMistake mistake_;
};

TEST(E4m3Mistakes, AreSeen) {
    const auto right = [](KeyMistake mistake) {
        Shape shape = e4m3_shape(DataType::fp8fp32, 64);
        shape.hdim_q = shape.hdim_v = 61;
        shape.seqlen_k = {13}; // each of them counts
        shape.padding = 19;
        FwdProblem problem(shape);
        const KernelConfig kernel = team_kernel(problem, 2, 128, 64);
        try {
            emulate_teams(kernel, problem.args(), 1, Schedule::in_turn,
                          [mistake](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                              return MistakenKeys(block, unit, maps, agent, mistake);
                          });
        } catch (const EmulationError&) {
            return false;
        }
        return judge(problem, numerics_of(kernel)).acceptable();
    };
    using enum KeyMistake;
    EXPECT_TRUE(right(none));
    for (const KeyMistake mistake :
         {keys_in_order, odd_keys_first, lines_of_depth, bound_one_short, bound_one_long, channels_shifted})
        EXPECT_FALSE(right(mistake)) << static_cast<int>(mistake);
}

// What no maximum may be taken of becomes a logit first.
TEST(E4m3Scale, MayBeBelowZeroOrVerySmall) {
    for (const float scale : {-0.25F, 0.0F, 0x1p-70F}) {
        Shape shape = e4m3_shape(DataType::fp8fp32, 64);
        shape.sink_logit = true;
        FwdProblem problem(shape);
        problem.args().score.scale_s = scale;
        const KernelConfig kernel = team_kernel(problem, 2, 128, 64);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = Schedule::in_turn});
        EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "") << scale;
    }
}

/// Adds all products of an item in one sum of the matrix unit, whose weights do not shrink.
template <class Context>
class OneSum : public Context {
  public:
    using Context::Context;
    using Context::start;

    template <class Acc, class Weights, class Values>
    void start(Acc& acc, Weights& weights, const Values& values, bool) {
        if (first_) Context::fill(acc, 0.0F);
        first_ = false;
        Context::start(acc, weights, values, true);
    }
    template <class Acc, class Rows, class Tile>
    void scale_and_add(Acc& acc, const Rows& factor, const Tile& tile) {
        Context::fill(acc, 0.0F);
        Context::scale_and_add(acc, factor, tile);
    }

  private:
    bool first_ = true;
};

/// The largest relative error of O where all of 2048 keys weigh the same, and the outputs are of the context that `wrap` makes.
template <template <class> class Wrap>
double error_of_mean() {
    Shape shape = e4m3_shape(DataType::fp8fp32, 32);
    shape.nhead_q = 1;
    shape.seqlen_q = {8};
    shape.seqlen_k = {2048};
    shape.positive_values = true;
    FwdProblem problem(shape);
    problem.args().score.scale_s = 0.0F;
    const KernelConfig kernel = team_kernel(problem, 2, 128, 32);
    emulate_wrapped<Wrap>(kernel, problem.args());
    const TensorView& v = problem.args().v;
    double worst = 0.0;
    for (std::int64_t c = 0; c < 32; ++c) {
        double sum = 0.0;
        for (std::int64_t key = 0; key < 2048; ++key)
            sum += double{kernels::decode(static_cast<const std::uint8_t*>(v.data)[v.offset(0, 0, key, c)],
                                          kernels::format_of(v.type))};
        worst = std::max(worst, std::abs(problem.o(0, 0, 0, c) * 2048.0 / sum - 1.0));
    }
    return worst;
}

// Weights of 1 are exact, so that nothing but sums errs. Those of one tile err by less than 2^-10; those of all keys lose that in every tile.
TEST(E4m3Sums, AreOfOneTileEach) {
    EXPECT_LT(error_of_mean<std::type_identity_t>(), 0x1p-10);
    EXPECT_GT(error_of_mean<OneSum>(), 0x1p-9);
}

TEST(E4m3Sums, AreDeclared) {
    const FwdProblem problem(e4m3_shape(DataType::fp8bf16, 128));
    for (const auto& [keys, interval] : {std::pair{96, 128}, {160, 160}}) {
        const Numerics numerics = numerics_of(team_kernel(problem, 2, keys, 128));
        EXPECT_EQ(numerics.u_a, 0x1p-13);
        EXPECT_TRUE(numerics.truncating);
        EXPECT_EQ(numerics.promotion_interval, interval);
    }
    KernelConfig warps = team_kernel(problem, 2, 128, 128);
    warps.algorithm.pipeline = Pipeline::qr; // multiplies by 16-bit instructions
    EXPECT_EQ(numerics_of(warps).u_a, 0x1p-23);
    EXPECT_EQ(numerics_of(warps).promotion_interval, 0);
}

TEST(E4m3Plan, WeightsHaveTheirKeysInOrder) {
    const FwdProblem problem(e4m3_shape(DataType::fp8bf16, 128));
    const WsPlan plan = ws_plan_of(team_kernel(problem, 2, 128, 128));
    ASSERT_EQ(plan.problem, PlanProblem::none);
    for (int e = 0; e < plan.second.right_elements; ++e)
        EXPECT_EQ(plan.value.order.element[e], plan.second.right_k.of_reg(e)) << e;
    std::set<int> registers;
    for (int operand = 0; operand < 64; ++operand) registers.insert(interleaved_register(operand, 64));
    EXPECT_EQ(registers.size(), 64U);
    EXPECT_EQ(*registers.rbegin(), 63);
}

TEST(E4m3Plan, RefusesWhatHasNoRegistersOrNoLines) {
    FwdProblem problem(e4m3_shape(DataType::fp8bf16, 128));
    EXPECT_EQ(cannot_execute(team_kernel(problem, 2, 128, 128)), std::nullopt);
    EXPECT_NE(cannot_execute(team_kernel(problem, 2, 112, 128)), std::nullopt) << "keys by 32";
    EXPECT_NE(cannot_execute(team_kernel(problem, 2, 64, 256)), std::nullopt);
    KernelConfig in_blocks = team_kernel(problem, 2, 128, 128);
    in_blocks.signature.qscale = QScale::blockscale;
    const std::string reason = cannot_execute(in_blocks).value_or("");
    EXPECT_NE(reason.find("fp8bf16 or fp8fp32 with qscale none or pertensor"), std::string::npos) << reason;
    EXPECT_NE(reason.find("qscale blockscale"), std::string::npos) << reason;
}

// Lines of keys can end where a tensor does, not where a sequence does that only the device knows.
TEST(E4m3Maps, EndWithTheTensorAlone) {
    FwdProblem problem(e4m3_shape(DataType::fp8bf16, 64));
    const KernelConfig kernel = team_kernel(problem, 2, 128, 64);
    FwdArgs args = problem.args();
    const WsMaps maps = ws_maps_of(kernel, args);
    ASSERT_FALSE(maps.problem) << to_sentence(*maps.problem);
    EXPECT_EQ(maps.specs[1].steps[1], 2);
    EXPECT_EQ(maps.specs[1].box_bytes(), 64 * 128);
    EXPECT_EQ(maps.specs[2].extents[0], 336);
    const std::int32_t lengths[] = {300};
    args.lengths.seqlen_k = lengths;
    EXPECT_EQ(ws_maps_of(kernel, args).problem->problem, MapProblem::ends_in_line);
    args.lengths.seqlen_k = nullptr;
    args.shape.mode = Mode::group;
    const auto refused = ws_maps_of(kernel, args).problem;
    ASSERT_TRUE(refused);
    EXPECT_NE(to_sentence(*refused).find("v lies by column"), std::string::npos) << to_sentence(*refused);
}

} // namespace
} // namespace fmha::hip_target::test
