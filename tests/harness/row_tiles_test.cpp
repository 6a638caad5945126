// Large shapes of a matrix: the host computes the tiles of sampled rows alone, and a mistake in any of them is seen.

#include "harness/data/fwd_tensors.hpp"
#include "harness/families/all_families.hpp"
#include "harness/families/few_rows.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/run_cases.hpp"
#include "reference/attention_args.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"
#include "tests/harness/run_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <set>

namespace fmha::harness::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The host's kernels, of which those of forward compute single tiles; `spoil` changes their results.
class TilesOfHost final : public KernelSource {
  public:
    explicit TilesOfHost(std::function<void(const FwdArgs&)> spoil = [](const FwdArgs&) {})
        : spoil_(std::move(spoil)) {}
    StageKernel planned(const Problem& problem, const KernelConfig* main) const override {
        const StageKernel fitting = FittingHostKernel().planned(problem, main);
        StageKernel kernel = make_target("host", {})->make(fitting.instance->config());
        kernel.name = "tiles";
        kernel.run_rows = [run = kernel.run_rows, spoil = spoil_](const Invocation& invocation,
                                                                  std::span<const reference::RowId> rows) {
            run(invocation, rows);
            spoil(std::get<FwdArgs>(invocation));
        };
        return kernel;
    }
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override {
        return {planned(problem, main)};
    }

  private:
    std::function<void(const FwdArgs&)> spoil_;
};

/// A shape that a matrix marks as large, and which is not.
Case shape_of_matrix() {
    Case c = small_case();
    c.batch = 2;
    c.nhead_q = 8;
    c.nhead_k = 2;
    c.seqlen_q = c.seqlen_k = {500};
    c.sampled_rows = true;
    c.repeats = 1;
    c.id = "dir/matrix.yaml/Large[…]@1";
    return c;
}

TEST(TilesOfRows, OnlySampledOnesOfALargeShapeAreComputedAndAllOfThemJudged) {
    std::int64_t written = 0, all = 0;
    const TilesOfHost source([&](const FwdArgs& args) {
        written = all = 0;
        for (std::int64_t b = 0; b < args.shape.batch; ++b)
            for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
                for (std::int64_t i = 0; i < args.shape.seqlen_q; ++i, ++all)
                    // Elements that a kernel has not written are NaN.
                    written +=
                        std::isnan(reference::decode(
                            args.o.type, load_code(args.o.data, args.o.type, args.o.offset(b, h, i, 0))))
                            ? 0
                            : 1;
    });
    const auto results = run({shape_of_matrix()}, source, {.jobs = 0});
    ASSERT_THAT(outcomes(results), ElementsAre(Outcome::passed)) << results.front().message;
    // Rows of at least eight heads, in tiles of 64 rows.
    EXPECT_GE(results.front().rows, 6 * 6 + 2 * 9);
    EXPECT_GT(written, results.front().rows);
    EXPECT_LT(2 * written, all);

    // The same case in a file of cases is computed whole.
    Case of_file = shape_of_matrix();
    of_file.id = "fwd/large[…]@1";
    EXPECT_GT(run({of_file}, source, {.jobs = 0}).front().rows, results.front().rows);
}

TEST(TilesOfRows, AMistakeInASampledRowIsSeen) {
    const Case c = shape_of_matrix();
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const auto rows = few_rows(reference::attention_of(tensors.args()), c.seed);
    ASSERT_GE(rows.size(), 54U);
    for (const std::size_t n : {std::size_t{0}, rows.size() / 2, rows.size() - 1}) {
        const auto [b, h, i] = rows[n];
        const TilesOfHost wrong([&, b = b, h = h, i = i](const FwdArgs& args) {
            store_code(args.o.data, args.o.type, args.o.offset(b, h, i, 3),
                       load_code(args.o.data, args.o.type, args.o.offset(b, h, i, 3)) ^ 0x0400U);
        });
        const auto results = run({c}, wrong, {.jobs = 0});
        ASSERT_THAT(outcomes(results), ElementsAre(Outcome::failed)) << b << ' ' << h << ' ' << i;
        EXPECT_THAT(results.front().message, HasSubstr(fmt::format("b{} h{} row {} ", b, h, i)));
    }
}

/// Whether an element is a number, not the NaN of memory that nobody has filled.
bool is_number(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t row) {
    return !std::isnan(
        reference::decode(view.type, load_code(view.data, view.type, view.offset(b, h, row, 0))));
}

TEST(TilesOfRows, InputsThatNoneOfThemReadsAreNotFilled) {
    Case c = shape_of_matrix();
    c.batch = 6;
    c.nhead_q = c.nhead_k = 8;
    const FwdTensors whole(c, Fp8Flavour::ocp);
    const auto rows = few_rows(reference::attention_of(whole.args()), c.seed);
    std::set<std::pair<std::int64_t, std::int64_t>> heads;
    for (const auto& [b, h, i] : rows) heads.emplace(b, h);
    ASSERT_LT(heads.size(), 40U);

    const auto data = fwd_family().allocate_few_rows(c, Fp8Flavour::ocp, {.rows = 64});
    EXPECT_TRUE(std::ranges::equal(data->few_rows(), rows));
    const Invocation invocation = data->invocation();
    const auto& args = std::get<FwdArgs>(invocation);
    std::int64_t queries = 0;
    for (std::int64_t b = 0; b < 6; ++b)
        for (std::int64_t h = 0; h < 8; ++h) {
            EXPECT_EQ(is_number(args.k, b, h, 7), heads.contains({b, h})) << b << ' ' << h;
            EXPECT_EQ(is_number(args.v, b, h, 499), heads.contains({b, h})) << b << ' ' << h;
            for (std::int64_t i = 0; i < 500; ++i) queries += is_number(args.q, b, h, i) ? 1 : 0;
        }
    EXPECT_GE(queries, 6 * 64);
    EXPECT_LT(queries, 6 * 8 * 500 / 4);
    // The tensors there hold the values of the case.
    for (const auto& [b, h, i] : rows)
        EXPECT_EQ(load_code(args.q.data, args.q.type, args.q.offset(b, h, i, 3)),
                  load_code(whole.args().q.data, args.q.type, whole.args().q.offset(b, h, i, 3)));
}

TEST(TilesOfRows, ARowThatIsInNoneOfThemMayNotBeWritten) {
    const Case c = shape_of_matrix();
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const auto rows = few_rows(reference::attention_of(tensors.args()), c.seed);
    for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 8; ++h) {
            if (std::ranges::any_of(rows, [&](const auto& row) { return row.b == b && row.h == h; }))
                continue;
            const TilesOfHost wrong([&](const FwdArgs& args) {
                store_code(args.o.data, args.o.type, args.o.offset(b, h, 70, 3), 0x3C00U);
            });
            const auto results = run({c}, wrong, {.jobs = 0});
            ASSERT_THAT(outcomes(results), ElementsAre(Outcome::failed));
            EXPECT_THAT(results.front().message, AllOf(HasSubstr("G5.5"), HasSubstr("o: element")));
            return;
        }
    FAIL() << "every head has a sampled row";
}

TEST(TilesOfRows, OfSeveralHeadsAreRunWithAllOfThem) {
    TargetOptions hopper;
    hopper.arch = "sm_90";
    const auto planned = house_kernels(make_target("host", hopper));
    RunOptions options;
    options.jobs = 0;
    options.of_case.arch = hopper.arch;
    Case c = shape_of_matrix();
    c.hdim_q = c.hdim_v = 128;
    c.lse = false;
    c.expect_kernel = "*_even_head_groups*";
    for (const std::int64_t heads : {8, 12}) // of two KV heads: four and two heads a tile
        for (const std::int64_t rows : {3, 40}) {
            c.nhead_q = heads;
            c.seqlen_q = {rows};
            const auto results = run({c}, *planned, options);
            ASSERT_THAT(outcomes(results), ElementsAre(Outcome::passed)) << results.front().message;
        }
}

TEST(TilesOfRows, OnlyThemselvesAreCountedAsCopied) {
    Case c = shape_of_matrix();
    c.seqlen_q = {20'000};
    const Family& family = fwd_family();
    const CaseBytes whole = family.bytes(c, Fp8Flavour::ocp, 1),
                    few = family.bytes_of_few_rows(c, Fp8Flavour::ocp, 1);
    EXPECT_EQ(few.tensors, whole.tensors);
    EXPECT_LT(100 * few.copies, whole.copies);

    // For every seed, no sample is larger than the counted one.
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const reference::AttentionArgs args = reference::attention_of(tensors.args());
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
        EXPECT_LE(static_cast<std::int64_t>(few_rows(args, seed).size()), most_few_rows(c.batch, c.nhead_q));

    CaseRunOptions options;
    options.memory_limit = few.total();
    EXPECT_EQ(run_case(c, TilesOfHost(), options).front().outcome, Outcome::passed);
    options.memory_limit = few.total() - 1;
    EXPECT_EQ(run_case(c, TilesOfHost(), options).front().not_run_reason, NotRunReason::no_memory);
    // A target that computes all rows keeps copies of them all.
    options.memory_limit = few.total();
    EXPECT_EQ(run_case(c, FittingHostKernel(), options).front().not_run_reason, NotRunReason::no_memory);
}

TEST(TilesOfRows, EveryHeadEntryAndKindOfPlaceIsInTheSample) {
    Case c = shape_of_matrix();
    c.batch = 5;
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const reference::AttentionArgs args = reference::attention_of(tensors.args());
    std::set<std::int64_t> entries, heads, places;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const auto rows = few_rows(args, seed);
        ASSERT_TRUE(std::ranges::is_sorted(rows));
        ASSERT_TRUE(std::ranges::adjacent_find(rows) == rows.end());
        entries.clear();
        heads.clear();
        for (const auto& [b, h, i] : rows) {
            ASSERT_TRUE(i >= 0 && i < 500);
            entries.insert(b);
            heads.insert(h);
            places.insert(i / 64);
        }
        EXPECT_EQ(entries.size(), 5U);
        EXPECT_EQ(heads.size(), 8U);
        EXPECT_EQ(rows, few_rows(args, seed));
    }
    EXPECT_EQ(places.size(), 8U);
    EXPECT_NE(few_rows(args, 1), few_rows(args, 2));
}

} // namespace
} // namespace fmha::harness::test
