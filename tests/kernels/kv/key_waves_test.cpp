// Split-KV by waves that have keys of their own: the emulated machine against the reference, and its findings when their rows are
// not made one's again.
#include "cached_problem.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/numerics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fmha::hip_target {
namespace {

using test::Cache;
using test::CachedProblem;
using test::CachedSpec;
using Shape = host_target::test::Shape;
using Setup = RunTimeOf<KernelFamily::fwd_splitkv>;

struct Waves {
    std::int16_t keys, waves; ///< of a tile
};

KernelConfig with_waves(const CachedProblem& problem, const Waves& waves) {
    KernelConfig kernel =
        problem.config(KernelFamily::fwd_splitkv,
                       {.m0 = 16, .n0 = waves.keys, .k0 = 32, .n1 = 64, .k1 = waves.keys, .k0max = 64});
    kernel.arch = "sm_90";
    kernel.algorithm.wave = {1, waves.waves, 1, 1, 1, waves.waves, 1, 1, 1};
    kernel.algorithm.warp = {16, 8, 16, 16, 8, 16, 1, 1, 1};
    return kernel;
}

std::vector<CachedSpec> problems() {
    Shape batch;
    batch.batch = 3;
    batch.hdim_q = batch.hdim_v = 64;
    batch.seqlen_q = {3};
    batch.seqlen_k = {260, 150, 301};
    Shape decode = batch; // heads share a tile
    decode.seqlen_q = {1};
    Shape group = batch;
    group.group = true;
    group.seqlen_q = {2, 16, 3};
    group.mask = {MaskType::bottom_right, 40, 0, 0}; // waves and tiles of which a row sees nothing
    group.bias = BiasType::elementwise;
    Shape gathered = batch; // lines that cannot be copied in units of 16 bytes
    gathered.padding = 1;
    gathered.hdim_v = 40;
    Shape short_keys = batch; // fewer keys than a wave has
    short_keys.seqlen_k = {7, 0, 33};
    return {{decode, {.cache = Cache::pages, .splits = 3, .order = 2}},
            {batch, {.cache = Cache::slots, .splits = 2, .order = 3}},
            {group, {.cache = Cache::pages, .splits = 3, .order = 5}},
            {group, {.cache = Cache::gappy_pages, .splits = 3, .order = 7}},
            {gathered, {.cache = Cache::contiguous, .splits = 2, .order = 8}},
            {short_keys, {.cache = Cache::pages, .splits = 2, .order = 9}}};
}

class KeyWavesOf : public testing::TestWithParam<Waves> {};
INSTANTIATE_TEST_SUITE_P(Tiles, KeyWavesOf,
                         testing::Values(Waves{32, 2}, Waves{64, 2}, Waves{64, 4}, Waves{128, 4}),
                         [](const auto& test) {
                             return std::to_string(test.param.keys) + "_" + std::to_string(test.param.waves);
                         });

TEST_P(KeyWavesOf, AreRight) {
    for (const CachedSpec& spec : problems())
        for (const bool last_first : {false, true}) {
            const CachedProblem problem(spec.shape, spec.cache);
            const KernelConfig kernel = with_waves(problem, GetParam());
            ASSERT_EQ(cannot_execute(kernel), std::nullopt);
            emulate_kernel(kernel, problem.split(), {.threads = 1, .last_thread_first = last_first});
            std::string worst;
            EXPECT_LE(problem.judge_partials(numerics_of(kernel), worst), 1.0)
                << spec.cache.text() << " " << worst;
        }
}

/// Split-KV's context with a mistake in the join of the waves' rows.
enum class Mistake { none, maxima_forgotten, totals_of_one, weights_of_the_first };

template <class Context>
class Mistaken : public Context {
  public:
    template <class... OfContext>
    explicit Mistaken(Mistake mistake, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), mistake_(mistake) {}

    template <class Output, class Rows>
    auto join(Output& out, Rows& top, Rows& total) {
        Rows before = total;
        if (mistake_ == Mistake::maxima_forgotten) Context::fill(top, 0.0F);
        auto joined = Context::join(out, top, total);
        if (mistake_ == Mistake::totals_of_one) total = before;
        if (mistake_ == Mistake::weights_of_the_first) Context::scale_rows(joined, before);
        return joined;
    }

  private:
    Mistake mistake_;
};

int noticed(Mistake mistake) {
    int count = 0;
    for (const CachedSpec& spec : problems()) {
        const CachedProblem problem(spec.shape, spec.cache);
        const KernelConfig kernel = with_waves(problem, {64, 2});
        emulate_blocks(
            kernels::Program<KernelFamily::fwd_splitkv>{}, kernel, problem.split(), {.threads = 1},
            [](const MachineShape& shape) { return EmulatedMachine(shape); },
            [mistake](EmulatedMachine& machine, const Setup& setup) {
                return Mistaken<SplitContext<EmulatedMachine, Setup>>(mistake, machine, setup);
            });
        std::string worst;
        count += problem.judge_partials(numerics_of(kernel), worst) <= 1.0 ? 0 : 1;
    }
    return count;
}

TEST(KeyWaves, MistakesAreNoticed) {
    EXPECT_EQ(noticed(Mistake::none), 0);
    for (const Mistake mistake :
         {Mistake::maxima_forgotten, Mistake::totals_of_one, Mistake::weights_of_the_first})
        EXPECT_GE(noticed(mistake), 3) << static_cast<int>(mistake);
}

TEST(KeyWaves, OtherConfigurationsAreDeclined) {
    const CachedSpec spec = problems().front();
    const CachedProblem problem(spec.shape, spec.cache);
    const auto reason = [&](auto change) {
        KernelConfig kernel = with_waves(problem, {64, 2});
        change(kernel);
        return cannot_execute(kernel).value_or("");
    };
    EXPECT_EQ(reason([](KernelConfig&) {}), "");
    for (const auto& text :
         {reason([](KernelConfig& k) { k.algorithm.wave.k1 = 1; }),
          reason([](KernelConfig& k) { k.algorithm.tile.k1 = 32; }),
          reason([](KernelConfig& k) { k.algorithm.wave.n1 = 2; }), reason([](KernelConfig& k) {
              k.signature.family = KernelFamily::fwd_pagedkv;
              k.signature.use_paged_kv = true;
          })})
        EXPECT_NE(text.find("waves lie along keys"), std::string::npos) << text;
}

} // namespace
} // namespace fmha::hip_target
