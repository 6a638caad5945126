// Warp-specialised forward with the query heads of a KV head as rows of one tile: against the reference on the host and by an emulated team in
// every schedule; and mistakes in where rows, heads and results lie.

#include "judge.hpp"
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "mistaken_rows.hpp"
#include "team_agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

namespace fmha::hip_target::test {
namespace {

constexpr std::int64_t most_rows = 64;

const TeamVariant variants[] = {
    {"four heads of 16 rows, causal, rows in three tiles", 1, 96, 128, DataType::bf16,
     [](Shape& s) {
         s.batch = 2;
         s.nhead_q = 8;
         s.nhead_k = 2;
         s.extra = 0;
         s.seqlen_q = {37};
         s.seqlen_k = {210};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"eight heads a KV head in two tiles, lengths by entry", 1, 96, 128, DataType::fp16,
     [](Shape& s) {
         s.batch = 3;
         s.nhead_q = 16;
         s.nhead_k = 2;
         s.extra = 0;
         s.seqlen_q = {16, 3, 9};
         s.seqlen_k = {97, 1, 200};
     }},
    {"six heads a KV head, two of 32 rows a tile, window, sink tokens and logits", 1, 128, 64, DataType::bf16,
     [](Shape& s) {
         s.batch = 2;
         s.nhead_q = 12;
         s.nhead_k = 2;
         s.seqlen_q = {61};
         s.seqlen_k = {300};
         s.mask = {MaskType::top_left, 20, 3, 4};
         s.sink_logit = true;
     }},
    {"sink logits, soft cap, causal", 1, 128, 64, DataType::fp16,
     [](Shape& s) {
         s.nhead_q = 4;
         s.soft_cap = 2.0F;
         s.sink_logit = true;
         s.seqlen_q = {50};
         s.mask = {MaskType::top_left, -1, 0, 0};
     }},
    {"an odd number of heads, which have tiles of their own", 1, 128, 64, DataType::bf16,
     [](Shape& s) {
         s.nhead_q = 3;
         s.seqlen_q = {33};
     }},
    {"one query, head dimensions below those of the tile", 1, 96, 128, DataType::bf16,
     [](Shape& s) {
         s.nhead_q = 4;
         s.hdim_q = 79;
         s.hdim_v = 71;
         s.padding = 9;
         s.seqlen_q = {1};
     }},
    {"more rows than the list gives it", 1, 128, 64, DataType::fp16, [](Shape& s) { s.nhead_q = 4; }},
};

KernelConfig kernel_of(const FwdProblem& problem, const TeamVariant& variant) {
    KernelConfig kernel = team_kernel(problem, variant);
    kernel.algorithm.max_seq_len_q = most_rows;
    kernel.algorithm.block_per_cu = 2;
    return kernel;
}

class PackedSchedule : public testing::TestWithParam<int> {};

TEST_P(PackedSchedule, AgreesWithTheReference) {
    expect_agreement(variants, GetParam(), shape_of, kernel_of);
}
INSTANTIATE_TEST_SUITE_P(Teams, PackedSchedule, testing::Range(0, schedules));

TEST(PackedTeam, AgreesWithTheReferenceOnTheHost) {
    expect_agreement_on_host(variants, shape_of, kernel_of);
}

// Heads of an expanded tensor lie at one place, and a map of such has no dimension for them.
TEST(PackedTeam, TakesHeadsApartThatShareMemory) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, variants[0]);
    FwdArgs args = problem.args();
    EXPECT_EQ(kernels::HeadRows::of(kernel, args).heads(64), 4);
    args.q.head_stride = 0;
    EXPECT_EQ(kernels::HeadRows::of(kernel, args).heads(64), 1);
    EXPECT_EQ(ws_maps_of(kernel, args).problem, std::nullopt);
}

TEST(PackedTeam, HasAPlanWhereOneTeamHasNoBiasInBatchMode) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, variants[0]);
    ASSERT_EQ(cannot_execute(kernel), std::nullopt);
    KernelConfig other = team_kernel(problem, 2, 96, 128);
    other.algorithm.max_seq_len_q = most_rows;
    const auto says = [&other](std::string_view text) {
        const std::string reason = cannot_execute(other).value_or("nothing");
        EXPECT_NE(reason.find(text), std::string::npos) << reason;
    };
    says("one to three teams of 64 rows (one where query heads share a tile)");
    other = kernel;
    other.signature.mode = Mode::group;
    says("in batch mode");
    says("mode group");
    other = kernel;
    other.signature.bias = BiasType::elementwise;
    says("bias elementwise");
    other.algorithm.max_seq_len_q = 0;
    EXPECT_EQ(cannot_execute(other), std::nullopt) << "not packed";
}

// Two tiles of a KV head's eight heads, of one tile of rows each.
TEST(PackedTeam, HasAnItemForEachTileOfHeads) {
    FwdProblem problem(shape_of(variants[1]));
    const KernelConfig kernel = kernel_of(problem, variants[1]);
    const kernels::WsGrid grid(kernel, problem.args());
    EXPECT_EQ(grid.size(), 3 * 4);
    EXPECT_EQ(kernels::FwdGrid(kernel, problem.args()).size(), grid.size());
    const WsMaps maps = ws_maps_of(kernel, problem.args());
    ASSERT_EQ(maps.problem, std::nullopt);
    EXPECT_EQ(maps.specs[0].box, (std::array<std::int32_t, map_rank>{64, 16, 4, 1, 1}));
    EXPECT_EQ(maps.specs[1].box, (std::array<std::int32_t, map_rank>{64, 96, 1, 1, 1}));
}

/// What the box of the queries may have that it should not.
enum class BoxMistake : std::uint8_t {
    none,
    rows_of_one_head, ///< as many lines, all of the first head
    a_head_too_few,   ///< the rows of all heads but the last half
    heads_before,     ///< those of the heads before
    rows_late,        ///< a first row that is the second one
};

class MistakenMachine : public EmulatedTeamMachine {
  public:
    MistakenMachine(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent, BoxMistake mistake)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(mistake) {}

    void copy_box(int number, BoxCorner corner, int address, int barrier) {
        TensorMapSpec spec = map(number);
        if (number == 0) {
            if (mistake_ == BoxMistake::rows_of_one_head) {
                spec.box[1] *= spec.box[2];
                spec.box[2] = 1;
            }
            if (mistake_ == BoxMistake::a_head_too_few) spec.box[2] /= 2;
            if (mistake_ == BoxMistake::heads_before) --corner.at[2];
            if (mistake_ == BoxMistake::rows_late) ++corner.at[1];
        }
        EmulatedTeamMachine::copy_box(spec, corner, address, barrier);
    }

  private:
    BoxMistake mistake_;
};

/// "right", "wrong", or the name of the hazard.
std::string verdict_of(BoxMistake box, fmha::test::RowMistake rows, Schedule schedule) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, variants[0]);
    try {
        emulate_teams(
            kernel, problem.args(), 1, schedule,
            [box](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                return MistakenMachine(block, unit, maps, agent, box);
            },
            [rows](auto& machine, const auto& setup) {
                using Context = WsContext<std::remove_cvref_t<decltype(machine)>, RunTimePlan<WsPlan>>;
                return fmha::test::MistakenRows<Context>(rows, machine, setup);
            });
    } catch (const EmulationError& error) {
        return std::string(to_string(error.hazard()));
    }
    return judge(problem, numerics_of(kernel)).acceptable() ? "right" : "wrong";
}

TEST_P(PackedSchedule, NamesEveryMistake) {
    using fmha::test::RowMistake;
    const auto schedule = static_cast<Schedule>(GetParam());
    EXPECT_EQ(verdict_of(BoxMistake::none, RowMistake::none, schedule), "right");
    const std::pair<BoxMistake, std::string_view> boxes[]{
        {BoxMistake::rows_of_one_head, "wrong"},
        {BoxMistake::a_head_too_few, "deadlock"},
        {BoxMistake::heads_before, "wrong"},
        {BoxMistake::rows_late, "wrong"},
    };
    for (const auto& [mistake, expected] : boxes)
        EXPECT_EQ(verdict_of(mistake, RowMistake::none, schedule), expected) << static_cast<int>(mistake);
    for (const RowMistake mistake :
         {RowMistake::masked_by_tile, RowMistake::stored_as_rows, RowMistake::stored_to_one})
        EXPECT_EQ(verdict_of(BoxMistake::none, mistake, schedule), "wrong") << static_cast<int>(mistake);
}

} // namespace
} // namespace fmha::hip_target::test
