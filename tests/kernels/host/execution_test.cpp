// The executor's work beside arithmetic: the tiles that it visits, padding flags, threads, refusals.
#include "fwd_problem.hpp"
#include "judge.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "kernels/targets/host/row_tiles.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace fmha::host_target::test {
namespace {

constexpr Tile tile_64x32{.m0 = 64, .n0 = 32, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};
constexpr Tile tile_32x64{.m0 = 32, .n0 = 64, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};
constexpr Tile tile_128x128{.m0 = 128, .n0 = 128, .k0 = 32, .n1 = 32, .k1 = 32, .k0max = 64};

/// Tiles that hold a pair (i, j) for which `visible`, in the order of the program.
std::vector<TileVisit> tiles_with(const Shape& shape, const Tile& tile,
                                  const std::function<bool(std::int64_t, std::int64_t)>& visible) {
    std::vector<TileVisit> visits;
    const std::int64_t sq = shape.seqlen_q[0], sk = shape.seqlen_k[0];
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.nhead_q; ++h)
            for (std::int64_t q = 0; q * tile.m0 < sq; ++q)
                for (std::int64_t k = 0; k * tile.n0 < sk; ++k) {
                    bool any = false;
                    for (std::int64_t i = q * tile.m0; i < std::min<std::int64_t>(sq, (q + 1) * tile.m0); ++i)
                        for (std::int64_t j = k * tile.n0; j < std::min<std::int64_t>(sk, (k + 1) * tile.n0);
                             ++j)
                            any = any || visible(i, j);
                    if (any) visits.push_back({b, h, q, k});
                }
    return visits;
}

std::vector<TileVisit> trace_of(const Shape& shape, const Tile& tile) {
    FwdProblem problem(shape);
    std::vector<TileVisit> trace;
    run_kernel(problem.config(tile), problem.args(), {.trace = &trace});
    return trace;
}

TEST(Trace, WithoutMaskEveryTileOfTheConfigurationIsVisited) {
    Shape shape;
    shape.seqlen_q = {130};
    shape.seqlen_k = {200};
    for (const Tile& tile : {tile_64x32, tile_32x64, tile_128x128})
        EXPECT_EQ(trace_of(shape, tile), tiles_with(shape, tile, [](auto, auto) { return true; }));
}

/// Every byte of the outputs after tiles with these rows have run.
std::vector<std::uint8_t> bytes_of_tiles(FwdProblem& problem, const KernelConfig& config,
                                         const std::vector<QueryRow>& rows) {
    problem.poison_outputs();
    run_row_tiles(config, problem.args(), rows);
    return problem.output_bytes();
}

TEST(RowTiles, HoldWhatTheWholeLaunchStoresThereAndTouchNothingElse) {
    for (const bool group : {false, true}) {
        Shape shape;
        shape.group = group;
        shape.seqlen_q = group ? std::vector<std::int64_t>{70, 150} : std::vector<std::int64_t>{150};
        shape.seqlen_k = group ? std::vector<std::int64_t>{83, 200} : std::vector<std::int64_t>{200};
        shape.mask = {MaskType::bottom_right, -1, 0, 0};
        FwdProblem problem(shape);
        // Two tiles of channels, which belong to every tile of rows.
        const KernelConfig config =
            problem.config({.m0 = 64, .n0 = 32, .k0 = 32, .n1 = 16, .k1 = 32, .k0max = 64});
        std::vector<QueryRow> rows;
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t h = 0; h < 4; ++h)
                for (std::int64_t i = 0; i < (group && b == 0 ? 70 : 150); ++i) rows.push_back({b, h, i});
        const auto stored = [&] {
            std::vector<std::vector<double>> values;
            for (const auto& [b, h, i] : rows) {
                values.push_back({problem.lse(b, h, i)});
                for (std::int64_t c = 0; c < shape.hdim_v; ++c)
                    values.back().push_back(problem.o(b, h, i, c));
            }
            return values;
        };
        EXPECT_EQ(bytes_of_tiles(problem, config, {}), (problem.poison_outputs(), problem.output_bytes()));
        const auto before = stored();
        run_kernel(config, problem.args());
        const auto whole = stored();
        EXPECT_EQ(bytes_of_tiles(problem, config, rows),
                  (problem.poison_outputs(), run_kernel(config, problem.args()), problem.output_bytes()));

        // The ragged tile of one head and the first one of another.
        static_cast<void>(bytes_of_tiles(problem, config, {{1, 3, 149}, {0, 2, 5}, {0, 2, 6}}));
        const auto some = stored();
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const auto [b, h, i] = rows[n];
            ASSERT_NE(whole[n], before[n]);
            const bool ran = (b == 1 && h == 3 && i >= 128) || (b == 0 && h == 2 && i < 64);
            ASSERT_EQ(some[n], ran ? whole[n] : before[n]) << b << ' ' << h << ' ' << i;
        }
    }
}

TEST(RowTiles, AreThoseOfForward) {
    FwdProblem problem(Shape{});
    KernelConfig config = problem.config(tile_64x32);
    EXPECT_TRUE(has_row_tiles(config));
    config.signature.family = KernelFamily::fwd_pagedkv;
    EXPECT_FALSE(has_row_tiles(config));
    EXPECT_THAT([&] { run_row_tiles(config, problem.args(), {}); },
                testing::ThrowsMessage<UnsupportedInvocation>(
                    testing::HasSubstr("kernels of fwd_pagedkv are run whole")));
}

TEST(Trace, CausalMaskSkipsTilesAboveTheDiagonal) {
    Shape shape;
    shape.seqlen_q = {200};
    shape.seqlen_k = {260};
    shape.mask = {MaskType::bottom_right, -1, 0, 0};
    for (const Tile& tile : {tile_64x32, tile_32x64, tile_128x128}) {
        const auto want = tiles_with(shape, tile, [](auto i, auto j) { return j <= i + 60; });
        ASSERT_LT(want.size(), tiles_with(shape, tile, [](auto, auto) { return true; }).size());
        EXPECT_EQ(trace_of(shape, tile), want);
    }
}

TEST(Trace, WindowWithSinkTokensVisitsThePrefixAndThenTheWindow) {
    Shape shape;
    shape.seqlen_q = {300};
    shape.seqlen_k = {300};
    shape.mask = {MaskType::top_left, 30, 5, 40};
    for (const Tile& tile : {tile_64x32, tile_32x64}) {
        const auto want =
            tiles_with(shape, tile, [](auto i, auto j) { return j <= i + 5 && (j >= i - 30 || j < 40); });
        EXPECT_EQ(trace_of(shape, tile), want);
    }
}

TEST(Threads, TheirNumberDoesNotChangeABit) {
    Shape shape;
    shape.p_drop = 0.2F;
    shape.mask = {MaskType::top_left, 40, 0, 0};
    shape.seqlen_q = {200};
    shape.seqlen_k = {210};
    FwdProblem problem(shape);
    const KernelConfig config = problem.config(tile_32x64);
    run_kernel(config, problem.args(), {.threads = 1});
    const auto once = problem.output_bytes();
    for (const int threads : {2, 5, 64}) {
        problem.poison_outputs();
        run_kernel(config, problem.args(), {.threads = threads});
        EXPECT_EQ(problem.output_bytes(), once) << threads;
    }
}

struct Unpadded {
    std::string name;
    std::function<void(Padding&)> clear;
    Shape ragged, whole;
};

class WithoutPadding : public testing::TestWithParam<Unpadded> {};

std::vector<Unpadded> unpadded_axes() {
    Shape whole;
    whole.seqlen_q = {128};
    whole.seqlen_k = {128};
    whole.hdim_q = 64;
    whole.hdim_v = 32;
    const auto with = [&](auto change) {
        Shape s = whole;
        change(s);
        return s;
    };
    return {
        {"seqlen_q", [](Padding& pad) { pad.s = false; }, with([](Shape& s) { s.seqlen_q = {100}; }), whole},
        {"seqlen_k", [](Padding& pad) { pad.sk = false; }, with([](Shape& s) { s.seqlen_k = {100}; }), whole},
        {"hdim_q", [](Padding& pad) { pad.d = 0; }, with([](Shape& s) { s.hdim_q = 56; }), whole},
        {"hdim_v", [](Padding& pad) { pad.dv = 0; }, with([](Shape& s) { s.hdim_v = 24; }), whole},
        {"hdim_q_multiple_of_8", [](Padding& pad) { pad.d = 8; }, with([](Shape& s) { s.hdim_q = 60; }),
         with([](Shape& s) { s.hdim_q = 56; })},
        {"hdim_v_multiple_of_8", [](Padding& pad) { pad.dv = 8; }, with([](Shape& s) { s.hdim_v = 28; }),
         with([](Shape& s) { s.hdim_v = 24; })}};
}

TEST_P(WithoutPadding, WholeTilesAreRightAndRaggedOnesAreNot) {
    for (const bool is_ragged : {false, true}) {
        FwdProblem problem(is_ragged ? GetParam().ragged : GetParam().whole);
        KernelConfig config = problem.config(tile_64x32);
        config.signature.hdim_v = 32;
        GetParam().clear(config.algorithm.pad);
        run_kernel(config, problem.args());
        const Distance distance = judge(problem, config);
        EXPECT_EQ(distance.acceptable(), !is_ragged) << "O " << distance.o << " " << distance.worst;
        EXPECT_TRUE(distance.only_logical_elements_written);
    }
}

INSTANTIATE_TEST_SUITE_P(All, WithoutPadding, testing::ValuesIn(unpadded_axes()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(Refusal, SaysWhatTheKernelLacks) {
    const auto reason = [](const std::function<void(Shape&)>& change,
                           const std::function<void(KernelConfig&)>& edit) {
        Shape shape;
        change(shape);
        FwdProblem problem(shape);
        KernelConfig config = problem.config(tile_64x32);
        edit(config);
        try {
            run_kernel(config, problem.args());
        } catch (const UnsupportedInvocation& error) {
            return std::string(error.what());
        }
        return std::string("ran");
    };
    const auto as_is = [](auto&) {};
    using testing::HasSubstr;
    EXPECT_THAT(reason(as_is, as_is), "ran");
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.signature.family = KernelFamily::batch_prefill; }),
                HasSubstr("batch_prefill takes packed queries"));
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.signature.data_type = DataType::bf16; }),
                HasSubstr("tensor q is fp16, the kernel takes bf16"));
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.signature.qscale = QScale::mx; }), HasSubstr("mx"));
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.algorithm.tile.n0 = 0; }), HasSubstr("n0=0"));
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.signature.hdim_q = 96; }), HasSubstr("k0max=64"));
    EXPECT_THAT(reason(as_is, [](KernelConfig& c) { c.signature.has_lse = false; }), HasSubstr("LSE"));
    EXPECT_THAT(reason(
                    [](Shape& s) {
                        s.mask = {MaskType::top_left, 3, 0, 0};
                    },
                    [](KernelConfig& c) { c.signature.mask = MaskClass::causal; }),
                HasSubstr("window_left=3"));
    EXPECT_THAT(reason(
                    [](Shape& s) {
                        s.mask = {MaskType::top_left, 3, 0, 2};
                    },
                    [](KernelConfig& c) { c.signature.has_sink = false; }),
                HasSubstr("sink_size=2"));
    EXPECT_THAT(
        reason([](Shape& s) { s.p_drop = 0.5F; }, [](KernelConfig& c) { c.signature.has_dropout = false; }),
        HasSubstr("p_drop=0.5"));
    EXPECT_THAT(reason([](Shape& s) { s.bias = BiasType::alibi; },
                       [](KernelConfig& c) { c.signature.bias = BiasType::no_bias; }),
                HasSubstr("bias is alibi"));
    EXPECT_THAT(
        reason([](Shape& s) { s.group = true; }, [](KernelConfig& c) { c.signature.mode = Mode::batch; }),
        HasSubstr("mode is group"));
}

TEST(Refusal, CountsBlocks) {
    Shape shape;
    shape.group = true;
    FwdProblem problem(shape);
    const KernelConfig config = problem.config(tile_64x32);
    for (const int bits : {38, 39, 50}) {
        problem.args().shape.max_seqlen_q = std::int64_t{1} << bits;
        EXPECT_THAT([&] { run_kernel(config, problem.args()); },
                    testing::ThrowsMessage<UnsupportedInvocation>(
                        testing::HasSubstr("blocks; allowed: at most 2147483647")))
            << bits;
    }
}

// Places of keys have 32 bits in a kernel.
TEST(Mask, SidesBeyondAllKeysShowAllOfThem) {
    for (const MaskType type : {MaskType::top_left, MaskType::bottom_right})
        for (const BiasType bias : {BiasType::no_bias, BiasType::alibi}) {
            Shape shape;
            shape.bias = bias;
            shape.mask = {type, 5000, 5000, 0};
            FwdProblem problem(shape);
            const KernelConfig config = problem.config(tile_64x32);
            run_kernel(config, problem.args());
            const std::vector<std::uint8_t> near = problem.output_bytes();
            for (const int bits : {31, 32, 40, 62}) {
                problem.args().mask.left = problem.args().mask.right = std::int64_t{1} << bits;
                problem.poison_outputs();
                run_kernel(config, problem.args());
                EXPECT_EQ(near, problem.output_bytes()) << to_string(type) << to_string(bias) << bits;
            }
        }
}

TEST(Instance, LaunchesForwardArgumentsOnly) {
    FwdProblem problem(Shape{});
    const KernelConfig config = problem.config(tile_64x32);
    const auto kernel = make_instance(config);
    EXPECT_EQ(kernel->config(), config);
    kernel->launch(problem.args(), {});
    EXPECT_TRUE(judge(problem, config).acceptable());
    EXPECT_THROW(kernel->launch(std::monostate{}, {}), ArgumentTypeError);
    KernelConfig other = config;
    other.algorithm.tile.m0 = 0;
    EXPECT_THROW((void)make_instance(other), UnsupportedInvocation);
}

} // namespace
} // namespace fmha::host_target::test
