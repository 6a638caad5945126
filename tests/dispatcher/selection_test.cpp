#include "dispatcher/dispatcher.hpp"
#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace fmha {
namespace {

using testing::builder_for;
using testing::fwd_kernel;

using Dims = std::pair<std::int64_t, std::int64_t>;

/// The table of section 8.3 written a second time, over plain lists.
std::pair<Dims, int> expected_choice(Dims problem, std::int64_t length, const std::vector<Dims>& kernels,
                                     const std::vector<int>& tiles) {
    Dims smallest{1 << 20, 0};
    for (const Dims& dims : kernels)
        if (problem.first <= dims.first && problem.second <= dims.second) smallest = std::min(smallest, dims);
    const int largest = *std::max_element(tiles.begin(), tiles.end());
    const auto category = [&](int tile) {
        if (length <= tile && length % tile == 0) return 0;
        if (tile == 64) return 1;
        if (tile == largest) return 2;
        return length % tile == 0 ? 3 : 4;
    };
    int best = tiles.front();
    for (const int tile : tiles)
        if (std::pair(category(tile), tile) < std::pair(category(best), best)) best = tile;
    return {smallest, best};
}

TEST(SeqTune, TableOfLengthsDimensionsAndTiles) {
    const std::vector<Dims> kernels{{64, 64}, {128, 128}, {192, 128}, {256, 256}};
    const std::vector<int> tiles{32, 64, 128, 256};
    Registry registry;
    for (const Dims& dims : kernels)
        for (const int tile : tiles)
            registry.add(fwd_kernel(dims.first, dims.second, static_cast<std::int16_t>(tile)));
    const Dispatcher dispatcher(registry);
    for (const Dims& dims : {Dims{64, 64}, Dims{72, 72}, Dims{128, 128}, Dims{136, 128}, Dims{256, 256}})
        for (const std::int64_t length : {1, 16, 31, 32, 63, 64, 65, 127, 128, 129, 192, 256, 1000, 4096}) {
            const Problem problem =
                builder_for(ApiFamily::fwd).dims(dims.first, dims.second, 1, length, 512).build();
            const auto kernel = dispatcher.select_kernel(problem);
            ASSERT_NE(kernel, nullptr);
            const auto [pair, tile] = expected_choice(dims, length, kernels, tiles);
            EXPECT_EQ(Dims(kernel->config.signature.hdim_q, kernel->config.signature.hdim_v), pair) << length;
            EXPECT_EQ(kernel->config.algorithm.tile.m0, tile) << dims.first << " " << length;
        }
}

/// Points of the table worked out by hand.
TEST(SeqTune, PinnedChoices) {
    Registry registry;
    for (const std::int16_t tile : {std::int16_t{64}, std::int16_t{128}})
        registry.add(fwd_kernel(128, 128, tile));
    const Dispatcher dispatcher(registry);
    const auto tile_for = [&](std::int64_t length) {
        return dispatcher.select_kernel(builder_for(ApiFamily::fwd).dims(128, 128, 1, length, 512).build())
            ->config.algorithm.tile.m0;
    };
    EXPECT_EQ(tile_for(128), 128); // equal to a tile: category 0
    EXPECT_EQ(tile_for(64), 64);
    EXPECT_EQ(tile_for(65), 64); // 64 rows: category 1
    EXPECT_EQ(tile_for(4096), 64);
}

TEST(SeqTune, RankBeatsTileAndSurplusComesAfterIt) {
    Registry registry;
    KernelConfig late = fwd_kernel(), early = fwd_kernel();
    late.algorithm.selection_rank = 2;
    early.algorithm.selection_rank = 1;
    early.algorithm.tile.n0 = 64;
    registry.add(late);
    registry.add(early);
    const Dispatcher dispatcher(registry);
    const Problem problem = builder_for(ApiFamily::fwd).build();
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, early);
    KernelConfig lean = fwd_kernel(), rich = fwd_kernel();
    rich.signature.has_sink = true;
    registry.add(rich);
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, rich);
    registry.add(lean);
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, lean);
}

TEST(SeqTune, TiesAreBrokenByTheConfigurationAndNotByOrder) {
    KernelConfig padded = fwd_kernel(), exact = fwd_kernel();
    exact.algorithm.pad.sk = false;
    const Problem problem = builder_for(ApiFamily::fwd).build();
    for (const bool exact_first : {true, false}) {
        Registry registry;
        registry.add(exact_first ? exact : padded);
        registry.add(exact_first ? padded : exact);
        EXPECT_EQ(Dispatcher(registry).select_kernel(problem)->config, exact);
    }
}

/// Random kernels over all that selection looks at.
KernelConfig random_kernel(std::mt19937_64& random) {
    const auto pick = [&](auto... values) {
        const std::array<std::common_type_t<decltype(values)...>, sizeof...(values)> list{values...};
        return list[random() % list.size()];
    };
    KernelConfig kernel =
        fwd_kernel(pick(64, 128, 192), pick(64, 128, 192), static_cast<std::int16_t>(pick(16, 32, 64, 128)));
    kernel.arch = pick(std::string_view("gfx950"), std::string_view("gfx942"), std::string_view(""));
    kernel.signature.data_type = pick(DataType::fp16, DataType::bf16);
    kernel.signature.mask = pick(MaskClass::none, MaskClass::causal, MaskClass::generic);
    kernel.signature.has_lse = pick(true, false);
    kernel.signature.has_sink = pick(true, false);
    kernel.signature.skip_min_seqlen_q = pick(true, false);
    kernel.algorithm.pad.s = pick(true, false);
    kernel.algorithm.pad.sk = pick(true, false);
    kernel.algorithm.pad.d = pick(std::int8_t{0}, std::int8_t{1}, std::int8_t{8});
    kernel.algorithm.tile.n0 = static_cast<std::int16_t>(pick(64, 128));
    kernel.algorithm.selection_rank = pick(0, 1);
    kernel.algorithm.constraint = pick(std::string_view(""), std::string_view("max_seqlen_q_lt_4096"));
    return kernel;
}

Problem random_problem(std::mt19937_64& random) {
    const auto pick = [&](auto... values) {
        const std::array<std::common_type_t<decltype(values)...>, sizeof...(values)> list{values...};
        return list[random() % list.size()];
    };
    ProblemBuilder builder = builder_for(ApiFamily::fwd);
    builder.gfx_arch(pick(std::string_view("gfx950"), std::string_view("gfx942"), std::string_view("")))
        .data_type(pick(DataType::fp16, DataType::bf16))
        .dims(pick(64, 72, 128, 136), pick(64, 128), 1, pick(1, 16, 64, 100, 128, 4096),
              pick(0, 64, 100, 512))
        .mask_type(pick(MaskType::no_mask, MaskType::top_left))
        .window(pick(-1, 5), 0)
        .lse(pick(true, false))
        .sink(pick(true, false));
    return builder.build();
}

/// The index must find the same kernel as a scan of everything with `match` and the score, for every order and
/// however the registrations are batched.
TEST(Selection, IndexAgreesWithAFullScanInAnyOrder) {
    std::mt19937_64 random(7);
    std::vector<KernelConfig> kernels;
    for (int i = 0; i < 600; ++i) kernels.push_back(random_kernel(random));
    std::vector<std::unique_ptr<Registry>> registries;
    for (int order = 0; order < 4; ++order) {
        std::shuffle(kernels.begin(), kernels.end(), random);
        registries.push_back(std::make_unique<Registry>());
        if (order == 0)
            registries.back()->add(kernels);
        else
            for (const KernelConfig& kernel : kernels) registries.back()->add(kernel);
    }
    const SeqTunePolicy policy;
    int found = 0;
    for (int i = 0; i < 400; ++i) {
        const Problem problem = random_problem(random);
        const StageQuery query = make_query(problem, KernelFamily::fwd);
        std::vector<KernelConfig> accepted;
        std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(accepted),
                     [&](const KernelConfig& kernel) { return static_cast<bool>(match(problem, kernel)); });
        const auto dims = [](const KernelConfig& kernel) {
            return std::pair(kernel.signature.hdim_q, kernel.signature.hdim_v);
        };
        std::optional<KernelConfig> best;
        if (!accepted.empty()) {
            const auto smallest =
                dims(*std::min_element(accepted.begin(), accepted.end(),
                                       [&](const auto& a, const auto& b) { return dims(a) < dims(b); }));
            ScoreContext context;
            for (const KernelConfig& kernel : accepted)
                if (dims(kernel) == smallest)
                    context.largest_tile_m0 =
                        std::max<std::int64_t>(context.largest_tile_m0, kernel.algorithm.tile.m0);
            best = *std::min_element(accepted.begin(), accepted.end(), [&](const auto& a, const auto& b) {
                return std::pair(policy.score(query, facts_of(a), context), a) <
                       std::pair(policy.score(query, facts_of(b), context), b);
            });
            ++found;
        }
        for (const auto& registry : registries) {
            const auto chosen = Dispatcher(*registry).select_kernel(problem);
            ASSERT_EQ(chosen != nullptr, best.has_value()) << problem.to_string();
            if (best) {
                EXPECT_EQ(identifier(chosen->config), identifier(*best)) << problem.to_string();
            }
            const auto snapshot = registry->snapshot();
            const auto ranked = policy.rank(*snapshot, query);
            ASSERT_EQ(ranked.empty(), !best);
            if (best) {
                EXPECT_EQ(identifier(ranked.front().entry->config), identifier(*best));
            }
        }
    }
    EXPECT_GT(found, 100);
    EXPECT_LT(found, 400);
}

TEST(Heuristic, PrefersSkipsUnknownAndUnsuitableAndPropagatesErrors) {
    Registry registry;
    const KernelConfig small = fwd_kernel(128, 128, 64), large = fwd_kernel(128, 128, 128);
    const KernelConfig unsuitable = fwd_kernel(64, 64);
    for (const KernelConfig& kernel : {small, large, unsuitable}) registry.add(kernel);
    Dispatcher dispatcher(registry);
    const Problem problem = builder_for(ApiFamily::fwd).dims(128, 128, 1, 100, 512).build();
    EXPECT_EQ(dispatcher.strategy(), SelectionStrategy::first_fit);
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, small);
    dispatcher.set_heuristic([&](const Problem&) {
        return std::vector{std::string("nonsense"), identifier(unsuitable), identifier(large)};
    });
    EXPECT_EQ(dispatcher.strategy(), SelectionStrategy::heuristic);
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, large);
    dispatcher.set_heuristic([](const Problem&) { return std::vector<std::string>{"nonsense"}; });
    EXPECT_EQ(dispatcher.select_kernel(problem)->config, small);
    dispatcher.set_heuristic(
        [](const Problem&) -> std::vector<std::string> { throw std::runtime_error("broken"); });
    EXPECT_THROW(dispatcher.select_kernel(problem), HeuristicError);
    dispatcher.set_heuristic({});
    EXPECT_EQ(dispatcher.strategy(), SelectionStrategy::first_fit);
}

/// A heuristic that was asked again by its own question never came to an end.
TEST(Heuristic, MayAskTheDispatcherThatAsksIt) {
    Registry registry;
    const KernelConfig small = fwd_kernel(128, 128, 64), large = fwd_kernel(128, 128, 128);
    registry.add(small);
    registry.add(large);
    Dispatcher first(registry), second(registry);
    const Problem problem = builder_for(ApiFamily::fwd).dims(128, 128, 1, 100, 512).build();
    const auto preferring_large = [&](const Dispatcher& asked, const KernelConfig& expected) {
        return [&, expected](const Problem& nested) {
            EXPECT_EQ(asked.select_kernel(nested)->config, expected);
            EXPECT_EQ(asked.select_kernel(nested)->config, expected);
            return std::vector{identifier(large)};
        };
    };
    first.set_heuristic(preferring_large(first, small));
    EXPECT_EQ(first.select_kernel(problem)->config, large);

    // One of them asks the other, which asks it back.
    first.set_heuristic(preferring_large(second, large));
    second.set_heuristic(preferring_large(first, small));
    EXPECT_EQ(first.select_kernel(problem)->config, large);

    first.set_heuristic([&](const Problem&) -> std::vector<std::string> { throw std::runtime_error("no"); });
    EXPECT_THROW(first.select_kernel(problem), HeuristicError);
    first.set_heuristic(preferring_large(first, small));
    EXPECT_EQ(first.select_kernel(problem)->config, large);
}

TEST(Selection, InvalidProblemsThrowInsteadOfFindingNothing) {
    Registry registry;
    const Dispatcher dispatcher(registry);
    Problem problem = builder_for(ApiFamily::fwd).build();
    problem.nhead_k = 3;
    EXPECT_THROW(dispatcher.select_kernel(problem), ProblemError);
    EXPECT_THROW(dispatcher.plan(problem), ProblemError);
}

} // namespace
} // namespace fmha
