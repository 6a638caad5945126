// Warp-specialised attention over pages: by the host's one team and by emulated teams and their feed, in every schedule, and with mistakes in
// what the feed looks up and brings. What no key needs is NaN in the pool and out of bounds in the table.

#include "cached_problem.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/numerics.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <type_traits>

namespace fmha::hip_target::test {
namespace {

using fmha::test::Cache;
using fmha::test::CachedProblem;
using fmha::test::CacheSpec;
using targets::CacheFault;

struct Variant {
    const char* name;
    int teams, keys, channels;
    CacheSpec cache;
    void (*change)(Shape&);
};

const Variant variants[] = {
    {"plain", 2, 128, 64, {.cache = Cache::pages, .order = 2}, [](Shape&) {}},
    {"tiles of half a page, grouped heads, causal from the bottom right",
     2,
     64,
     128,
     {.cache = Cache::pages, .page_size = 256, .order = 3},
     [](Shape& s) {
         s.nhead_q = 4;
         s.nhead_k = 2;
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"gappy pages, a window and sink tokens",
     2,
     128,
     64,
     {.cache = Cache::gappy_pages, .order = 4},
     [](Shape& s) {
         s.seqlen_q = {200};
         s.seqlen_k = {700, 390};
         s.mask = {MaskType::top_left, 100, 0, 4};
     }},
    {"gappy pages, groups, ALiBi",
     2,
     64,
     64,
     {.cache = Cache::gappy_pages, .order = 6},
     [](Shape& s) {
         s.group = true;
         s.batch = 3;
         s.seqlen_q = {70, 3, 0};
         s.seqlen_k = {261, 129, 64};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
         s.bias = BiasType::alibi;
     }},
    {"three teams, one key, no keys",
     3,
     128,
     64,
     {.cache = Cache::pages, .share_first_page = true, .order = 7},
     [](Shape& s) {
         s.group = true;
         s.batch = 3;
         s.seqlen_q = {193, 65, 5};
         s.seqlen_k = {256, 0, 1};
     }},
    {"256 channels, elementwise bias, head dimensions below those of the tile",
     2,
     64,
     256,
     {.cache = Cache::pages, .order = 8},
     [](Shape& s) {
         s.hdim_q = 200;
         s.hdim_v = 136;
         s.bias = BiasType::elementwise;
         s.seqlen_q = {70};
     }},
    {"e4m3, tiles of half a page, a window",
     2,
     64,
     128,
     {.cache = Cache::gappy_pages, .order = 9},
     [](Shape& s) {
         s.data_type = DataType::fp8;
         s.padding = 16;
         s.seqlen_k = {333, 129};
         s.mask = {MaskType::top_left, 90, 0, 0};
     }},
    {"e4m3, groups, no keys and one key",
     2,
     128,
     64,
     {.cache = Cache::pages, .share_first_page = true, .order = 10},
     [](Shape& s) {
         s.data_type = DataType::fp8;
         s.padding = 16;
         s.group = true;
         s.batch = 3;
         s.seqlen_q = {130, 65, 5};
         s.seqlen_k = {261, 0, 1};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
};

Shape shape_of(const Variant& variant) {
    return paged_team_shape(variant.teams, variant.channels, variant.change);
}

KernelConfig kernel_of(const CachedProblem& problem, const Variant& variant) {
    return team_config(variant.teams, variant.keys, variant.channels,
                       [&](const Tile& tile) { return problem.config(KernelFamily::fwd_pagedkv, tile); });
}

class EveryScheduleOfPages : public testing::TestWithParam<int> {};

TEST_P(EveryScheduleOfPages, AgreesWithTheReference) {
    for (const Variant& variant : variants) {
        const CachedProblem problem(shape_of(variant), variant.cache);
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_kernel(kernel, problem.paged(),
                       {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
        EXPECT_EQ(problem.judge(numerics_of(kernel)).complaint(true), "") << variant.name;
    }
}
INSTANTIATE_TEST_SUITE_P(PagedTeams, EveryScheduleOfPages, testing::Range(0, schedules));

TEST(OneTeam, AgreesWithTheReferenceOverPagesOnTheHost) {
    for (const Variant& variant : variants) {
        const CachedProblem problem(shape_of(variant), variant.cache);
        const KernelConfig kernel = kernel_of(problem, variant);
        host_target::run_kernel(kernel, problem.paged());
        EXPECT_EQ(problem.judge(host_target::numerics_of(kernel)).complaint(true), "") << variant.name;
    }
}

TEST(TeamPlan, RefusesTilesThatPagesDoNotHold) {
    const CachedProblem problem(shape_of(variants[0]), variants[0].cache);
    Variant variant = variants[0];
    EXPECT_EQ(cannot_execute(kernel_of(problem, variant)), std::nullopt);
    variant.keys = 80;
    const auto reason = cannot_execute(kernel_of(problem, variant));
    ASSERT_NE(reason, std::nullopt);
    EXPECT_NE(reason->find("over pages of paged-KV a divisor of 128"), std::string::npos) << *reason;
}

/// Whether a variant shows that teams whose contexts `make(machine, setup)` makes are wrong.
template <class MakeContext>
bool noticed(Schedule schedule, MakeContext make) {
    return std::ranges::any_of(variants, [&](const Variant& variant) {
        const CachedProblem problem(shape_of(variant), variant.cache);
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_teams(
            kernel, problem.paged(), 1, schedule,
            [](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                return EmulatedTeamMachine(block, unit, maps, agent);
            },
            make);
        return !problem.judge(numerics_of(kernel)).acceptable();
    });
}

using TeamSetup = RunTimePlan<WsPlan>;
using TeamContext = WsContext<EmulatedTeamMachine, TeamSetup>;

bool noticed(Schedule schedule, CacheFault fault) {
    return noticed(schedule, [fault](EmulatedTeamMachine& machine, const TeamSetup& setup) {
        return targets::FaultyCache<TeamContext>(fault, machine, setup);
    });
}

/// What a feed may get wrong about pages.
enum class Mistake : std::uint8_t {
    values_of_the_page_of_keys, ///< that were filled in last, which are those of the next tile
    keys_of_the_page_before,    ///< the page is looked up a tile late
    page_of_the_tile_behind,    ///< … or early
    tiles_begin_pages,          ///< the slot in the page is forgotten
    tails_are_brought,          ///< tiles end with the page, not with the last key
    tails_are_a_key_short,
};
constexpr Mistake mistakes[] = {Mistake::values_of_the_page_of_keys, Mistake::keys_of_the_page_before,
                                Mistake::page_of_the_tile_behind,    Mistake::tiles_begin_pages,
                                Mistake::tails_are_brought,          Mistake::tails_are_a_key_short};

class MistakenFeed : public TeamContext {
  public:
    MistakenFeed(Mistake mistake, EmulatedTeamMachine& machine, const TeamSetup& setup)
        : TeamContext(machine, setup), mistake_(mistake) {}

    kernels::Entry cached_entry(const fmha::Shape& shape, const LengthArrays& lengths, const KvPlace& place,
                                std::int64_t b) {
        const kernels::Entry entry = TeamContext::cached_entry(shape, lengths, place, b);
        keys_ = entry.seqlen_k;
        return entry;
    }
    kernels::KeyPlace key_place(const kernels::Pages& pages, std::int64_t j) const {
        kernels::KeyPlace place = TeamContext::key_place(pages, j);
        const std::int64_t behind = j + cfg().algorithm.tile.n0;
        if (mistake_ == Mistake::page_of_the_tile_behind && behind < keys_)
            place.page = TeamContext::key_place(pages, behind).page;
        return place;
    }
    template <class Stream>
    void fill_stage(const Stream& stream, kernels::Matrix matrix, kernels::MatrixPlace place,
                    std::int64_t row0, std::int64_t col0) {
        using enum Mistake;
        const std::int64_t page = place.entry;
        if constexpr (std::is_same_v<Stream, decltype(key_stream())>) {
            if (mistake_ == keys_of_the_page_before && page_ >= 0) place.entry = page_;
            page_ = page;
        }
        if constexpr (std::is_same_v<Stream, decltype(value_stream())>) {
            if (mistake_ == values_of_the_page_of_keys) place.entry = page_;
            // The first tile may begin inside of what the others are.
            if (mistake_ == tails_are_brought && row0 > 0) matrix.rows.size = row0 + cfg().algorithm.tile.n0;
            if (mistake_ == tails_are_a_key_short) --matrix.rows.size;
        }
        const bool of_pages = !std::is_same_v<Stream, decltype(query_stream())>;
        if (mistake_ == tiles_begin_pages && of_pages) place.first_row = -row0;
        TeamContext::fill_stage(stream, matrix, place, row0, col0);
    }

  private:
    Mistake mistake_;
    std::int64_t keys_ = 0, page_ = -1;
};

class PagedTeamFaults : public testing::TestWithParam<int> {
  protected:
    const Schedule schedule = static_cast<Schedule>(GetParam());
};

TEST_P(PagedTeamFaults, AreNoticed) {
    EXPECT_FALSE(noticed(schedule, static_cast<CacheFault>(255)));
    for (const auto& [fault, name] : EnumTable<CacheFault>::names) {
        using enum CacheFault;
        const bool of_others = fault >= split_edge_late || fault == cache_slot_ignored ||
                               fault == packed_heads_are_one || fault == last_packed_head_missing;
        EXPECT_TRUE(of_others || noticed(schedule, fault)) << name;
    }
}

TEST_P(PagedTeamFaults, OfTheFeedAreNoticed) {
    for (const Mistake mistake : mistakes)
        EXPECT_TRUE(noticed(schedule, [mistake](EmulatedTeamMachine& machine, const TeamSetup& setup) {
            return MistakenFeed(mistake, machine, setup);
        })) << static_cast<int>(mistake);
}

INSTANTIATE_TEST_SUITE_P(PagedTeams, PagedTeamFaults, testing::Range(0, schedules));

} // namespace
} // namespace fmha::hip_target::test
