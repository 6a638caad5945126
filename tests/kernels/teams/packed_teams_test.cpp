// Warp-specialised forward with the query heads of a KV head as rows of one tile: against the reference on the host and by an emulated team in
// every schedule; and mistakes in where rows, heads and results lie.

#include "judge.hpp"
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_kernels.hpp"

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

KernelConfig kernel_of(const FwdProblem& problem, int keys, int channels) {
    KernelConfig kernel = team_kernel(problem, 1, keys, channels);
    kernel.algorithm.max_seq_len_q = most_rows;
    kernel.algorithm.block_per_cu = 2;
    return kernel;
}

class PackedSchedule : public testing::TestWithParam<int> {};

TEST_P(PackedSchedule, AgreesWithTheReference) {
    for (const TeamVariant& variant : variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant.keys, variant.channels);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
        EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "") << variant.name;
    }
}
INSTANTIATE_TEST_SUITE_P(Teams, PackedSchedule, testing::Range(0, schedules));

TEST(PackedTeam, AgreesWithTheReferenceOnTheHost) {
    for (const TeamVariant& variant : variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant.keys, variant.channels);
        host_target::run_kernel(kernel, problem.args());
        EXPECT_EQ(host_target::test::judge(problem, kernel).complaint(true), "") << variant.name;
    }
}

// Heads of an expanded tensor lie at one place, and a map of such has no dimension for them.
TEST(PackedTeam, TakesHeadsApartThatShareMemory) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, 96, 128);
    FwdArgs args = problem.args();
    EXPECT_EQ(kernels::HeadRows::of(kernel, args).heads(64), 4);
    args.q.head_stride = 0;
    EXPECT_EQ(kernels::HeadRows::of(kernel, args).heads(64), 1);
    EXPECT_EQ(ws_maps_of(kernel, args).problem, std::nullopt);
}

TEST(PackedTeam, HasAPlanWhereOneTeamHasNoBiasInBatchMode) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, 96, 128);
    ASSERT_EQ(cannot_execute(kernel), std::nullopt);
    KernelConfig other = team_kernel(problem, 2, 96, 128);
    other.algorithm.max_seq_len_q = most_rows;
    EXPECT_NE(cannot_execute(other), std::nullopt) << "two teams";
    other = kernel;
    other.signature.mode = Mode::group;
    EXPECT_NE(cannot_execute(other), std::nullopt) << "group mode";
    other = kernel;
    other.signature.bias = BiasType::elementwise;
    EXPECT_NE(cannot_execute(other), std::nullopt) << "bias";
    other.algorithm.max_seq_len_q = 0;
    EXPECT_EQ(cannot_execute(other), std::nullopt) << "not packed";
}

// Two tiles of a KV head's eight heads, of one tile of rows each.
TEST(PackedTeam, HasAnItemForEachTileOfHeads) {
    FwdProblem problem(shape_of(variants[1]));
    const KernelConfig kernel = kernel_of(problem, 96, 128);
    const kernels::WsGrid grid(kernel, problem.args());
    EXPECT_EQ(grid.size(), 3 * 4);
    EXPECT_EQ(kernels::FwdGrid(kernel, problem.args()).size(), grid.size());
    const WsMaps maps = ws_maps_of(kernel, problem.args());
    ASSERT_EQ(maps.problem, std::nullopt);
    EXPECT_EQ(maps.specs[0].box, (std::array<std::int32_t, map_rank>{64, 16, 4, 1, 1}));
    EXPECT_EQ(maps.specs[1].box, (std::array<std::int32_t, map_rank>{64, 96, 1, 1, 1}));
}

enum class Mistake : std::uint8_t {
    none,
    rows_of_one_head, ///< the box of the queries has as many lines, all of the first head
    a_head_too_few,   ///< … the rows of all heads but the last half
    heads_before,     ///< … those of the heads before
    rows_late,        ///< … begins a row late
    masked_by_tile,   ///< masks count rows of the tile
    stored_as_rows,   ///< rows of all heads go below each other to the first one
    stored_to_one,    ///< rows of all heads go to those of the first one
};

class MistakenMachine : public EmulatedTeamMachine {
  public:
    MistakenMachine(TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent, Mistake mistake)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(mistake) {}

    void copy_box(int number, BoxCorner corner, int address, int barrier) {
        TensorMapSpec spec = map(number);
        if (number == 0) {
            if (mistake_ == Mistake::rows_of_one_head) {
                spec.box[1] *= spec.box[2];
                spec.box[2] = 1;
            }
            if (mistake_ == Mistake::a_head_too_few) spec.box[2] /= 2;
            if (mistake_ == Mistake::heads_before) --corner.at[2];
            if (mistake_ == Mistake::rows_late) ++corner.at[1];
        }
        EmulatedTeamMachine::copy_box(spec, corner, address, barrier);
    }

  private:
    Mistake mistake_;
};

template <class Context>
class MistakenContext : public Context {
  public:
    template <class Machine, class Setup>
    MistakenContext(Machine& machine, const Setup& setup, Mistake mistake)
        : Context(machine, setup), mistake_(mistake) {}

    kernels::HeadRows scored_rows(const kernels::HeadRows& heads) const {
        return mistake_ == Mistake::masked_by_tile ? kernels::HeadRows{} : heads;
    }
    kernels::HeadRows stored_rows(const kernels::HeadRows& heads) const {
        constexpr int all_bits = 31;
        if (mistake_ == Mistake::stored_as_rows) return {};
        return mistake_ == Mistake::stored_to_one ? kernels::HeadRows{heads.mask, all_bits} : heads;
    }

  private:
    Mistake mistake_;
};

/// "right", "wrong", or the name of the hazard.
std::string verdict_of(Mistake mistake, Schedule schedule) {
    FwdProblem problem(shape_of(variants[0]));
    const KernelConfig kernel = kernel_of(problem, 96, 128);
    try {
        emulate_teams(
            kernel, problem.args(), 1, schedule,
            [mistake](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                return MistakenMachine(block, unit, maps, agent, mistake);
            },
            [mistake](auto& machine, const auto& setup) {
                using Context = WsContext<std::remove_cvref_t<decltype(machine)>, RunTimePlan<WsPlan>>;
                return MistakenContext<Context>(machine, setup, mistake);
            });
    } catch (const EmulationError& error) {
        return std::string(to_string(error.hazard()));
    }
    return judge(problem, numerics_of(kernel)).acceptable() ? "right" : "wrong";
}

TEST_P(PackedSchedule, NamesEveryMistake) {
    const auto schedule = static_cast<Schedule>(GetParam());
    const std::pair<Mistake, std::string_view> table[]{
        {Mistake::none, "right"},
        {Mistake::rows_of_one_head, "wrong"},
        {Mistake::a_head_too_few, "deadlock"},
        {Mistake::heads_before, "wrong"},
        {Mistake::rows_late, "wrong"},
        {Mistake::masked_by_tile, "wrong"},
        {Mistake::stored_as_rows, "wrong"},
        {Mistake::stored_to_one, "wrong"},
    };
    for (const auto& [mistake, expected] : table)
        EXPECT_EQ(verdict_of(mistake, schedule), expected) << static_cast<int>(mistake);
}

} // namespace
} // namespace fmha::hip_target::test
