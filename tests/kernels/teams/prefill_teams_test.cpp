// Warp-specialised attention over pages smaller than a tile: by the host's one team and by emulated teams and
// their feed, in every schedule, and with mistakes in which pages the feed looks up and where their boxes go. What no key needs is NaN in the pool
// and out of bounds in the table.

#include "kernels/targets/faulty_prefill.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/emulation_error.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "prefill_problem.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

using fmha::test::PoolSpec;
using fmha::test::PrefillProblem;
using targets::PrefillFault;

constexpr auto rows_of_a_table = KvLookup::vllm_2d, lists = KvLookup::sglang_1d;

struct SmallPages {
    const char* name;
    int teams, keys, channels;
    PoolSpec pool;
    void (*change)(Shape&);
};

const SmallPages small_pages[] = {
    {"pages of 16", 2, 128, 64, {.lookup = rows_of_a_table, .page_size = 16, .order = 2}, [](Shape&) {}},
    {"lists of pages of 16, grouped heads, causal from the bottom right",
     2,
     128,
     128,
     {.lookup = lists, .page_size = 16, .order = 3},
     [](Shape& s) {
         s.nhead_q = 4;
         s.nhead_k = 2;
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"pages of 32, a window and sink tokens",
     2,
     64,
     64,
     {.lookup = rows_of_a_table, .page_size = 32, .share_first_page = true, .order = 4},
     [](Shape& s) {
         s.seqlen_q = {200};
         s.seqlen_k = {700, 390};
         s.mask = {MaskType::top_left, 100, 0, 4};
     }},
    {"pages of 8, ALiBi, one key and no keys",
     2,
     64,
     64,
     {.lookup = lists, .page_size = 8, .order = 6},
     [](Shape& s) {
         s.batch = 4;
         s.seqlen_q = {70, 3, 0, 5};
         s.seqlen_k = {161, 0, 64, 1};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
         s.bias = BiasType::alibi;
     }},
    {"three teams, pages of 64",
     3,
     128,
     64,
     {.lookup = rows_of_a_table, .page_size = 64, .order = 7},
     [](Shape& s) {
         s.batch = 2;
         s.seqlen_q = {193, 65};
         s.seqlen_k = {256, 129};
     }},
    {"tiles of 80 keys, elementwise bias, head dimensions below those of the tile",
     2,
     80,
     256,
     {.lookup = lists, .page_size = 16, .order = 8},
     [](Shape& s) {
         s.hdim_q = 200;
         s.hdim_v = 136;
         s.bias = BiasType::elementwise;
         s.seqlen_q = {70};
         s.seqlen_k = {300, 261};
     }},
    {"e4m3, pages of 16, grouped heads, descales",
     2,
     128,
     128,
     {.lookup = lists, .page_size = 16, .order = 10},
     [](Shape& s) {
         s.data_type = DataType::fp8bf16;
         s.padding = 16;
         s.qscale = QScale::pertensor;
         s.nhead_q = 4;
         s.nhead_k = 2;
         s.seqlen_k = {333, 1};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"e4m3, pages of whole tiles, a window",
     2,
     64,
     128,
     {.lookup = rows_of_a_table, .page_size = 128, .order = 11},
     [](Shape& s) {
         s.data_type = DataType::fp8;
         s.padding = 16;
         s.seqlen_k = {300, 129};
         s.mask = {MaskType::top_left, 90, 0, 0};
     }},
    {"pages of whole tiles",
     2,
     128,
     64,
     {.lookup = rows_of_a_table, .page_size = 256, .order = 9},
     [](Shape& s) {
         s.seqlen_k = {400, 257};
     }},
};

Shape shape_of(const SmallPages& variant) {
    return paged_team_shape(variant.teams, variant.channels, variant.change);
}

KernelConfig kernel_of(const PrefillProblem& problem, const SmallPages& variant) {
    return team_config(variant.teams, variant.keys, variant.channels,
                       [&](const Tile& tile) { return problem.config(tile); });
}

void expect_right(const PrefillProblem& problem, const Numerics& numerics, const SmallPages& variant) {
    EXPECT_EQ(problem.judge(numerics).complaint(true), "") << variant.name;
}

class EveryScheduleOfSmallPages : public testing::TestWithParam<int> {};

TEST_P(EveryScheduleOfSmallPages, AgreesWithTheReference) {
    for (const SmallPages& variant : small_pages) {
        const PrefillProblem problem(shape_of(variant), variant.pool);
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
        expect_right(problem, numerics_of(kernel), variant);
    }
}
INSTANTIATE_TEST_SUITE_P(PrefillTeams, EveryScheduleOfSmallPages, testing::Range(0, schedules));

TEST(OneTeam, AgreesWithTheReferenceOverSmallPagesOnTheHost) {
    for (const SmallPages& variant : small_pages) {
        const PrefillProblem problem(shape_of(variant), variant.pool);
        const KernelConfig kernel = kernel_of(problem, variant);
        host_target::run_kernel(kernel, problem.args());
        expect_right(problem, host_target::numerics_of(kernel), variant);
    }
}

TEST(TeamPlan, RefusesPagesThatNoBoxBrings) {
    const SmallPages& variant = small_pages[0];
    const auto reason = [&](KvLayout layout, std::int64_t page_size) {
        PoolSpec pool = variant.pool;
        pool.layout = layout;
        pool.page_size = page_size;
        const PrefillProblem problem(shape_of(variant), pool);
        return cannot_execute(kernel_of(problem, variant)).value_or("");
    };
    EXPECT_EQ(reason(KvLayout::linear, 8), "");
    EXPECT_NE(reason(KvLayout::linear, 4).find("pages of 8 keys or more"), std::string::npos)
        << reason(KvLayout::linear, 4);
    EXPECT_NE(reason(KvLayout::vectorized, 16).find("linear"), std::string::npos)
        << reason(KvLayout::vectorized, 16);
}

/// The problem of a variant, which its test makes once, with nothing in its outputs.
const PrefillProblem& cleared_problem(const SmallPages& variant) {
    static std::map<const SmallPages*, PrefillProblem> problems;
    PrefillProblem& problem = problems.try_emplace(&variant, shape_of(variant), variant.pool).first->second;
    problem.poison_outputs();
    return problem;
}

/// Whether a variant shows that teams whose machines `machine(block, unit, maps, agent)` makes, and whose contexts `context(machine, setup)`, are
/// wrong: by its results, or because the emulated machine met a hazard.
template <class MakeMachine, class MakeContext>
bool noticed(Schedule schedule, MakeMachine machine, MakeContext context) {
    return std::ranges::any_of(small_pages, [&](const SmallPages& variant) {
        const PrefillProblem& problem = cleared_problem(variant);
        const KernelConfig kernel = kernel_of(problem, variant);
        try {
            emulate_teams(kernel, problem.args(), 1, schedule, machine, context);
        } catch (const EmulationError&) {
            return true;
        }
        return !problem.judge(numerics_of(kernel)).acceptable();
    });
}

using TeamSetup = RunTimePlan<WsPlan>;

constexpr auto right_machine = [](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
    return EmulatedTeamMachine(block, unit, maps, agent);
};

/// What a feed may get wrong about boxes.
enum class Mistake : std::uint8_t {
    none,
    first_page_for_all,   ///< the pages of a tile are that of its first box
    page_behind,          ///< each is that of the next box
    pages_of_tile_before, ///< they are looked up a tile late
    pages_of_tile_behind, ///< … or early
    tails_are_brought,    ///< the last box ends with its page, not with the last key
    tails_are_a_key_short,
    boxes_trade_places, ///< every second box goes where the one before belongs
    box_a_page_on,      ///< boxes go to the lines of the next one
    boxes_a_slot_late,
    head_of_first_entry, ///< boxes are those of head 0
};

class MistakenMachine : public EmulatedTeamMachine {
  public:
    MistakenMachine(Mistake mistake, TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent)
        : EmulatedTeamMachine(block, unit, maps, agent), mistake_(mistake) {}

    void copy_box(int number, BoxCorner corner, int address, int barrier) {
        using enum Mistake;
        const int bytes = static_cast<int>(map(number).box_bytes());
        const bool is_part = number > 0 && number_of_boxes(bytes) > 1;
        if (is_part && mistake_ == boxes_trade_places) address ^= bytes;
        if (is_part && mistake_ == box_a_page_on) address += bytes;
        if (is_part && corner.at[3] > 0 && mistake_ == boxes_a_slot_late) ++corner.at[3];
        EmulatedTeamMachine::copy_box(number, corner, address, barrier);
    }

  private:
    static constexpr int least_tile_bytes = 64 * SwizzledTile::line_bytes;

    static int number_of_boxes(int bytes) { return least_tile_bytes / bytes; }

    Mistake mistake_;
};

class MistakenBoxes : public WsContext<MistakenMachine, TeamSetup> {
    using Base = WsContext<MistakenMachine, TeamSetup>;

  public:
    MistakenBoxes(Mistake mistake, MistakenMachine& machine, const TeamSetup& setup)
        : Base(machine, setup), mistake_(mistake) {}

    template <class Stream>
    void fill_stage(const Stream& stream, kernels::Matrix matrix, kernels::MatrixPlace place,
                    std::int64_t row0, std::int64_t col0) {
        using enum Mistake;
        kernels::PagedRows& paged = matrix.paged;
        if (paged.table == nullptr) return Base::fill_stage(stream, matrix, place, row0, col0);
        const std::int64_t page_size = std::int64_t{1} << paged.page_bits, keys = cfg().algorithm.tile.n0;
        const std::int64_t pages = (matrix.rows.size + page_size - 1) / page_size;
        const std::int64_t of_tile = std::max<std::int64_t>(1, keys / page_size);
        wrong_.resize(static_cast<std::size_t>(pages));
        for (std::int64_t n = 0; n < pages; ++n) {
            std::int64_t from = n;
            if (mistake_ == first_page_for_all) from = std::max(row0 >> paged.page_bits, std::int64_t{0});
            if (mistake_ == page_behind) from = n + 1;
            if (mistake_ == pages_of_tile_before) from = n - of_tile;
            if (mistake_ == pages_of_tile_behind) from = n + of_tile;
            from = std::clamp<std::int64_t>(from, 0, pages - 1);
            wrong_[static_cast<std::size_t>(n)] = paged.table[from];
        }
        paged.table = wrong_.data();
        if (mistake_ == tails_are_brought) matrix.rows.size = pages * page_size;
        if (mistake_ == tails_are_a_key_short) --matrix.rows.size;
        if (mistake_ == head_of_first_entry) place.head = 0;
        Base::fill_stage(stream, matrix, place, row0, col0);
    }

  private:
    Mistake mistake_;
    std::vector<std::int32_t> wrong_;
};

class PrefillTeamFaults : public testing::TestWithParam<int> {
  protected:
    const Schedule schedule = static_cast<Schedule>(GetParam());
};

TEST_P(PrefillTeamFaults, AreNoticed) {
    const auto makes = [&](PrefillFault fault) {
        return noticed(schedule, right_machine,
                       [fault](EmulatedTeamMachine& machine, const TeamSetup& setup) {
                           return targets::FaultyPrefill<WsContext<EmulatedTeamMachine, TeamSetup>>(
                               fault, machine, setup);
                       });
    };
    EXPECT_FALSE(makes(static_cast<PrefillFault>(255)));
    for (const auto& [fault, name] : EnumTable<PrefillFault>::names) {
        using enum PrefillFault;
        // Of the other layout, of descales, of packed heads; and tensor copies are told a slot by coordinates, not by an origin.
        const bool of_others = fault >= layout_ignored || fault == next_slot;
        EXPECT_TRUE(of_others || makes(fault)) << name;
    }
}

TEST_P(PrefillTeamFaults, OfBoxesAreNoticed) {
    for (int number = 0; number <= static_cast<int>(Mistake::head_of_first_entry); ++number) {
        const auto mistake = static_cast<Mistake>(number);
        const bool seen = noticed(
            schedule,
            [mistake](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                return MistakenMachine(mistake, block, unit, maps, agent);
            },
            [mistake](MistakenMachine& machine, const TeamSetup& setup) {
                return MistakenBoxes(mistake, machine, setup);
            });
        EXPECT_EQ(seen, mistake != Mistake::none) << number;
    }
}

INSTANTIATE_TEST_SUITE_P(PrefillTeams, PrefillTeamFaults, testing::Range(0, schedules));

} // namespace
} // namespace fmha::hip_target::test
