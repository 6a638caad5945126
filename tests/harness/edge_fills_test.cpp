// An edge fill that decides nothing must say so, and no shipped case is one.

#include "harness/cases/load.hpp"
#include "harness/data/fwd_fill.hpp"
#include "harness/data/geometry.hpp"
#include "harness/data/storage.hpp"
#include "harness/run/planned_kernels.hpp"
#include "reference/visibility.hpp"
#include "tests/harness/gate_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

Case edge_case(Fill fill) {
    Case c = small_case();
    c.fill = fill;
    return c;
}

TEST(EdgeFills, WithoutACodeAreNotPassedOver) {
    for (const double scale : {1e-9, 1e-30}) { // no weight of a 16-bit type makes a logit of these
        Case c = edge_case(Fill::edge_last);
        c.scale_s = scale;
        const CaseResult result = run_right(c);
        EXPECT_EQ(result.outcome, Outcome::failed);
        EXPECT_THAT(verdict(result, "exact").detail, HasSubstr("no code for this type"));
    }
}

TEST(EdgeFills, ThatDecideNoRowAreNotPassedOver) {
    // e4m3 has 256 ranks at this head dimension; the first 345 keys of 600 share the lowest, and no row sees another.
    Case c = edge_case(Fill::edge_last);
    c.data_type = DataType::fp8bf16;
    c.seqlen_k = {600};
    c.mask = MaskType::top_left;
    c.window_right = 1; // no row of one key
    const CaseResult result = run_right(c);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_THAT(verdict(result, "exact").detail, HasSubstr("decides none of the 280 rows that see a key"));
}

TEST(EdgeFills, UnderWhichNoKeyWinsAloneAreNotPassedOver) {
    Case c = edge_case(Fill::edge_first);
    c.logits_soft_cap = 30.0;
    EXPECT_THAT(verdict(run_right(c), "exact").detail, HasSubstr("soft-cap"));
}

TEST(EdgeFills, HaveNothingToDecideWhereNoRowSeesAKey) {
    Case c = edge_case(Fill::edge_last);
    c.seqlen_k = {0};
    const CaseResult result = run_right(c);
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_TRUE(std::ranges::none_of(result.gates, [](const auto& gate) { return gate.gate == "exact"; }));
}

TEST(EdgeFills, DecideRowsOutsideTheSample) {
    Case c = edge_case(Fill::edge_last);
    c.seqlen_q = {400};
    c.sampled_rows = true;
    const CaseResult result = run_spoiled(c, [](const FwdArgs& a) {
        const auto sample = reference::sampled_rows(a, 1);
        for (const auto& id : reference::all_rows(a)) {
            if (std::ranges::binary_search(sample, id)) continue;
            const std::int64_t at = a.o.offset(id.b, id.h, id.i, 5);
            return store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ 1U);
        }
    });
    EXPECT_FALSE(verdict(result, "exact").passed);
}

/// Whether some row of `c` sees a key, and whether the code decides one of these rows.
std::pair<bool, bool> sees_and_decides(const Case& c, const Geometry& geometry, const EdgeCode& code) {
    const bool last_wins = c.fill == Fill::edge_last;
    bool sees = false;
    for (const EntryGeometry& entry : geometry.entries) {
        reference::AttentionArgs args;
        args.shape.batch = args.shape.nhead_q = args.shape.nhead_k = 1;
        args.shape.seqlen_q = entry.seqlen_q;
        args.shape.seqlen_k = entry.seqlen_k;
        args.mask = {c.mask, c.window_left, c.window_right, c.sink_size};
        for (std::int64_t i = 0; i < entry.seqlen_q && !entry.skipped; ++i) {
            const auto keys = reference::end_keys(args, {0, 0, i});
            if (keys.none()) continue;
            sees = true;
            if (keys.single() || code.decides(last_wins ? keys.last : keys.first, entry.seqlen_k, last_wins))
                return {true, true};
        }
    }
    return {sees, false};
}

TEST(EdgeFills, OfEveryShippedCaseDecideARow) {
    LoadOptions options;
    options.root = FMHA_CASES_DIR;
    options.tier = Tier::nightly;
    options.planned_tile = house_tiles("gfx950");
    std::int64_t edges = 0;
    std::string undecided;
    for (const Case& c : load_cases({}, options)) {
        if ((c.fill != Fill::edge_last && c.fill != Fill::edge_first) || c.expect != Expectation::pass)
            continue;
        ++edges;
        for (const Fp8Flavour flavour : {Fp8Flavour::ocp, Fp8Flavour::fnuz}) {
            const Geometry geometry = geometry_of(c, flavour);
            const FwdFill fill(c, geometry.types);
            if (!fill.edge()) {
                undecided += c.id + ": no code\n";
                continue;
            }
            const auto [sees, decides] = sees_and_decides(c, geometry, *fill.edge());
            if (sees && !decides) undecided += c.id + ": no row\n";
        }
    }
    EXPECT_GT(edges, 100);
    EXPECT_EQ(undecided, "");
}

} // namespace
} // namespace fmha::harness::test
