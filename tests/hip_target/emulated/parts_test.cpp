// The parts of the device's block context in another combination than forward attention's: three right operands that take
// turns, one left operand for all of them, one accumulator, and nothing of softmax.

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"
#include "kernels/targets/hip/products.hpp"
#include "kernels/targets/hip/row_operations.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace fmha::hip_target {
namespace {

/// sum = left · (first + second + third)ᵀ.
struct SumPlan : BlockShape {
    RowPlan rows;
    ProductPlan product;
    LeftOperandPlan left;
    OperandPlan first, second, third;
    StagingPlan staging;
};

/// Takes its pieces from forward's first product.
constexpr SumPlan sum_plan(const KernelConfig& config) {
    const BlockPlan forward = plan_of(config);
    SumPlan plan{forward,     forward.rows, forward.first, forward.query,
                 forward.key, forward.key,  forward.key,   forward.staging};
    plan.product.from_zero = false;                            // the second adds to the first
    if (plan.staging.async != AsyncCopies::tiles) return plan; // steps share their buffers
    int end = forward.query.image.bytes();
    for (OperandPlan* operand : {&plan.first, &plan.second, &plan.third}) {
        operand->image.offset = end;
        end += 2 * operand->stage;
    }
    plan.lds_bytes = end;
    return plan;
}

class SumSetup : public RunTimePlan<SumPlan> {
  public:
    explicit SumSetup(const KernelConfig& config) : RunTimePlan(config, sum_plan(config)) {}
};

template <class Block>
using Rows = RowOperations<Block, &SumPlan::rows>;
template <class Block>
using Memory = TileMemory<Block, &SumPlan::rows>;
template <class Block>
using Left = KeptOperand<Block, &SumPlan::left, &SumPlan::product, &SumPlan::staging>;
template <class Block>
using Rights = Staging<Block, &SumPlan::staging, &SumPlan::first, &SumPlan::second, &SumPlan::third>;
template <class Setup>
using SumContext = Context<EmulatedMachine, Setup, Rows, Memory, Left, Rights, Products>;

struct Operands {
    kernels::Matrix left, first, second, third, sum;
};

/// One block: all columns of the sum, a tile of them at a time.
template <class Setup>
void add_products(SumContext<Setup>& ctx, const Block<EmulatedMachine, Setup>& block, const Operands& in) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    auto left = left_operand<&SumPlan::left>(block);
    auto sum = accumulator<&SumPlan::product>(block);
    OperandStep<&SumPlan::first> first;
    OperandStep<&SumPlan::second> second;
    OperandStep<&SumPlan::third> third;
    const auto multiply = [&](auto& right, const kernels::Matrix& matrix, std::int64_t col0) {
        for (int step = 0; step < ctx.steps(tile.k0max, tile.k0max, tile.k0); ++step) {
            ctx.load_transposed(right, matrix, col0, step * tile.k0);
            ctx.product(sum, left, step * tile.k0, right);
        }
    };

    ctx.load(left, in.left, 0, 0);
    ctx.prefetch(first, in.first, 0, 0);
    ctx.commit();
    for (std::int64_t col0 = 0; col0 < in.sum.cols.size; col0 += tile.n0) {
        ctx.visit({}, col0 / tile.n0);
        ctx.prefetch(second, in.second, col0, 0);
        ctx.prefetch(third, in.third, col0, 0);
        ctx.commit();
        ctx.fill(sum, 0.0F);
        ctx.wait(1);
        multiply(first, in.first, col0);
        if (col0 + tile.n0 < in.sum.cols.size) ctx.prefetch(first, in.first, col0 + tile.n0, 0);
        ctx.commit();
        ctx.wait(1);
        multiply(second, in.second, col0);
        multiply(third, in.third, col0);
        ctx.store(in.sum, sum, 0, col0);
    }
}

/// Whole numbers from −3 to 3 in fp16, row by row.
class Numbers {
  public:
    Numbers(int rows, int cols, int seed) : rows_(rows), cols_(cols) {
        for (int i = 0; i < rows * cols; ++i) {
            const int value = (i * 37 + i / cols * 11 + seed) % 7 - 3;
            values_.push_back(value);
            codes_.push_back(
                static_cast<std::uint16_t>(kernels::encode(static_cast<float>(value), ElementType::fp16)));
        }
    }
    int at(int row, int col) const { return values_[static_cast<std::size_t>(row * cols_ + col)]; }
    kernels::Matrix matrix() {
        return {{codes_.data(), ElementType::fp16, 0, 0, cols_, 1},
                0,
                kernels::Extent::of(rows_, 1),
                kernels::Extent::of(cols_, 1),
                {}};
    }

  private:
    int rows_, cols_;
    std::vector<int> values_;
    std::vector<std::uint16_t> codes_;
};

struct Kernel {
    const char* arch;
    Pipeline pipeline;
    Tile tile;
    GemmTriples warp;
    AsyncCopies async;
};

constexpr Tile small{64, 64, 32, 64, 32, 64, 0, 0, 0};
constexpr std::array all{
    Kernel{"gfx942", Pipeline::qr, small, {16, 16, 16, 16, 16, 16, 1, 1, 1}, AsyncCopies::none},
    Kernel{"gfx942", Pipeline::qr_async, small, {16, 16, 16, 16, 16, 16, 1, 1, 1}, AsyncCopies::steps},
    Kernel{"gfx1100", Pipeline::qr, small, {16, 16, 16, 16, 16, 16, 1, 1, 1}, AsyncCopies::none},
    Kernel{"sm_90", Pipeline::qr, small, {16, 8, 16, 16, 8, 16, 1, 1, 1}, AsyncCopies::none},
    Kernel{"sm_90", Pipeline::qr_async, small, {16, 8, 16, 16, 8, 16, 1, 1, 1}, AsyncCopies::tiles}};

constexpr KernelConfig config_of(const Kernel& kernel) {
    KernelConfig config;
    config.arch = kernel.arch;
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = kernel.tile.k0max;
    config.algorithm.tile = kernel.tile;
    config.algorithm.wave = {4, 1, 1, 4, 1, 1, 1, 1, 1};
    config.algorithm.warp = kernel.warp;
    config.algorithm.pipeline = kernel.pipeline;
    return config;
}

/// A setup that knows its plan when it is compiled, as on a device: code that the plan rules out is not there.
template <std::size_t number>
class KnownSum : public SumSetup {
    static constexpr SumPlan known = sum_plan(config_of(all[number]));

  public:
    KnownSum() : SumSetup(config_of(all[number])) {}
    template <auto Piece, class Member, class Value>
    static constexpr bool may(Member member, Value value) {
        return answer(known.*Piece, member) == value;
    }
};

template <class Setup>
void expect_sum(const Setup& setup) {
    const Tile& tile = setup.cfg().algorithm.tile;
    const int rows = tile.m0 - 3, cols = 3 * tile.n0, depth = tile.k0max;
    Numbers a(rows, depth, 0), b0(cols, depth, 1), b1(cols, depth, 2), b2(cols, depth, 3);
    std::vector<float> c(static_cast<std::size_t>(rows * cols), -1.0F);
    const kernels::Matrix sum{{c.data(), ElementType::fp32, 0, 0, cols, 1},
                              0,
                              kernels::Extent::of(rows, 1),
                              kernels::Extent::of(cols, 1),
                              {}};

    EmulatedMachine machine(
        {setup.plan().unit, setup.plan().threads, setup.plan().wave_size, setup.plan().lds_bytes, false});
    machine.begin();
    SumContext<Setup> context(machine, setup);
    add_products<Setup>(context, {machine, setup}, {a.matrix(), b0.matrix(), b1.matrix(), b2.matrix(), sum});

    for (int r = 0; r < rows; ++r)
        for (int n = 0; n < cols; ++n) {
            int expected = 0;
            for (int d = 0; d < depth; ++d)
                expected += a.at(r, d) * (b0.at(n, d) + b1.at(n, d) + b2.at(n, d));
            ASSERT_EQ(c[static_cast<std::size_t>(r * cols + n)], static_cast<float>(expected))
                << "row " << r << ", column " << n;
        }
}

class ThreeOperands : public testing::TestWithParam<Kernel> {};

TEST_P(ThreeOperands, TakeTurns) {
    const SumSetup setup(config_of(GetParam()));
    ASSERT_EQ(setup.plan().problem, PlanProblem::none);
    ASSERT_EQ(setup.plan().staging.async, GetParam().async);
    expect_sum(setup);
}

INSTANTIATE_TEST_SUITE_P(Parts, ThreeOperands, testing::ValuesIn(all), [](const auto& kernel) {
    return std::string(kernel.param.arch) + "_" + std::string(to_string(kernel.param.pipeline));
});

TEST(KnownPlans, ComputeTheSameWithoutWhatTheyRuleOut) {
    [&]<std::size_t... number>(std::index_sequence<number...>) {
        (expect_sum(KnownSum<number>()), ...);
    }
    (std::make_index_sequence<all.size()>());
}

} // namespace
} // namespace fmha::hip_target
