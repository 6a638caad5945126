// Random combinations of everything a launch can ask for, on random tiles.
#include "fwd_problem.hpp"
#include "judge.hpp"

#include "kernels/targets/host/host_target.hpp"

#include <gtest/gtest.h>

#include <random>

namespace fmha::host_target::test {
namespace {

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool chance(int percent) { return between(1, 100) <= percent; }
    template <class T>
    T pick(std::initializer_list<T> choices) {
        return *(choices.begin() + between(0, static_cast<std::int64_t>(choices.size()) - 1));
    }

  private:
    std::mt19937_64 engine_;
};

Shape random_shape(Dice& dice) {
    Shape s;
    s.data_type = EnumTable<DataType>::names[static_cast<std::size_t>(dice.between(0, 8))].value;
    s.arch = dice.pick<std::string>({"gfx950", "gfx942"});
    s.group = dice.chance(40);
    s.batch = dice.between(1, 3);
    s.nhead_k = dice.between(1, 2);
    s.nhead_q = s.nhead_k * dice.between(1, 2);
    s.hdim_q = dice.pick<std::int64_t>({8, 24, 32, 64, 72});
    s.hdim_v = dice.pick<std::int64_t>({8, 16, 40, 64});
    s.v_layout = dice.chance(30) ? VLayout::column : VLayout::row;
    s.seqlen_q.clear();
    s.seqlen_k.clear();
    for (int i = 0; i < s.batch; ++i) {
        s.seqlen_q.push_back(dice.chance(10) ? 0 : dice.between(1, 150));
        s.seqlen_k.push_back(dice.chance(10) ? 0 : dice.between(1, 220));
    }
    s.extra = dice.chance(30) ? dice.between(1, 9) : 0;
    s.padding = dice.pick<std::int64_t>({0, 8});
    const bool is_mx = s.data_type == DataType::mxfp8 || s.data_type == DataType::mxfp4;
    const bool is_8bit = element_bits(element_types(s.data_type, Fp8Flavour::ocp).q) == 8;
    if (is_mx) {
        s.qscale = QScale::mx;
        s.v_layout = VLayout::column;
        // Packed fp4 lines have an even number of keys, and entries start on whole bytes.
        for (auto& n : s.seqlen_k) n += n % 2;
        s.extra += s.extra % 2;
    } else if (is_8bit) {
        s.qscale = dice.pick({QScale::no_scale, QScale::pertensor, QScale::blockscale});
    }
    if (dice.chance(60)) {
        s.mask.type = dice.pick({MaskType::top_left, MaskType::bottom_right, MaskType::window_generic});
        s.mask.left = dice.between(-1, 70);
        s.mask.right = dice.between(-1, 70);
        if (s.mask.type != MaskType::window_generic && dice.chance(30)) s.mask.sink = dice.between(1, 60);
    }
    switch (dice.between(0, 3)) {
    case 0:
        s.bias = BiasType::elementwise;
        break;
    case 1:
        s.bias = BiasType::alibi;
        break;
    case 2:
        s.soft_cap = 3.0F;
        break;
    default:
        break;
    }
    s.sink_logit = dice.chance(30);
    if (dice.chance(30)) s.p_drop = dice.pick({0.1F, 0.5F, 0.9F});
    if (s.group && dice.chance(20)) s.min_seqlen_q = 20;
    return s;
}

Tile random_tile(Dice& dice) {
    Tile tile;
    tile.m0 = dice.pick<std::int16_t>({16, 32, 64, 128});
    tile.n0 = dice.pick<std::int16_t>({32, 64, 128});
    tile.k0 = dice.pick<std::int16_t>({16, 32, 64});
    tile.k1 = dice.pick<std::int16_t>({16, 32});
    tile.n1 = dice.pick<std::int16_t>({32, 64});
    tile.k0max = 96;
    return tile;
}

class RandomProblems : public testing::TestWithParam<int> {};

TEST_P(RandomProblems, StayInsideTheLimits) {
    for (int n = 0; n < 40; ++n) {
        const auto seed = static_cast<std::uint64_t>(GetParam() * 1000 + n);
        Dice dice(seed);
        const Shape shape = random_shape(dice);
        const Tile tile = random_tile(dice);
        FwdProblem problem(shape, seed);
        const KernelConfig config = problem.config(tile);
        run_kernel(config, problem.args(), {.threads = 2});
        EXPECT_EQ(judge(problem, config).complaint(true), "")
            << "seed " << seed << ", " << to_string(shape.data_type) << "\n"
            << identifier(config);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems, testing::Range(0, 5));

} // namespace
} // namespace fmha::host_target::test
