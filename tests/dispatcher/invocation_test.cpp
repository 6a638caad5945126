#include "dispatcher/invocation.hpp"

#include "dispatcher/types/check_contents.hpp"
#include "dispatcher/types/check_values.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"
#include "tests/dispatcher/skeleton.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace fmha {
namespace {

using testing::builder_for;
using testing::skeleton_of;

std::vector<Problem> problems() {
    Presence packed;
    packed.seqstart_q = packed.seqstart_k = packed.cu_seqlen_k = true;
    return {
        builder_for(ApiFamily::fwd).build(),
        builder_for(ApiFamily::fwd)
            .lse(true)
            .dropout(true)
            .store_randval(true)
            .bias_type(BiasType::alibi)
            .build(),
        builder_for(ApiFamily::fwd)
            .logits_soft_cap(true)
            .mask_type(MaskType::top_left)
            .window(9, 0)
            .sink_size(3)
            .build(),
        builder_for(ApiFamily::fwd)
            .bias_type(BiasType::elementwise)
            .sink_logit(true)
            .v_rowmajor(false)
            .build(),
        builder_for(ApiFamily::fwd)
            .group_mode(true)
            .max_seqlen(256, 0)
            .min_seqlen_q(4)
            .variable_lengths(packed)
            .build(),
        builder_for(ApiFamily::fwd).data_type(DataType::fp8bf16).qscale_type(QScale::pertensor).build(),
        builder_for(ApiFamily::fwd).tensor_alignment(2).build(),
        builder_for(ApiFamily::fwd).tensors_mappable(false).build(),
    };
}

TEST(Invocation, ProblemSkeletonProblemIsTheIdentity) {
    for (const Problem& problem : problems())
        EXPECT_EQ(problem_of(problem.signature, skeleton_of(problem), problem.arch), problem)
            << problem.to_string();
}

TEST(Invocation, AddressesAndStridesDecideTheAlignment) {
    const Problem plain = builder_for(ApiFamily::fwd).data_type(DataType::fp16).build();
    alignas(16) std::array<std::byte, 32> memory{};
    const auto aligned = [&](auto change, VLayout v_layout = VLayout::row) {
        FwdArgs args = skeleton_of(plain);
        for (TensorView* view : {&args.q, &args.k, &args.v})
            *view = {memory.data(), view->type, 4096, 1024, 128};
        change(args);
        Signature traits = plain.signature;
        traits.v_layout = v_layout;
        return problem_of(traits, args, plain.arch).tensor_alignment;
    };
    EXPECT_EQ(aligned([](FwdArgs&) {}), 16);
    EXPECT_EQ(aligned([&](FwdArgs& args) { args.q.data = &memory[8]; }), 8);
    EXPECT_EQ(aligned([&](FwdArgs& args) { args.v.data = &memory[2]; }), 2);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.k.row_stride = 130; }), 4);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.v.head_stride = 1028; }), 8);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.q.batch_stride = 4097; }), 2);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.o.row_stride = 129; }), 16); // is stored element by element
    const auto by_column = [&](std::int64_t channel_stride, Mode mode = Mode::batch) {
        return aligned(
            [&](FwdArgs& args) {
                args.v.row_stride = 1;
                args.v.col_stride = channel_stride;
                args.shape.mode = mode;
            },
            VLayout::column);
    };
    EXPECT_EQ(by_column(64), 16);
    EXPECT_EQ(by_column(60), 8);
    EXPECT_EQ(by_column(60, Mode::group), 16);
    // Strides whose bytes 64 bits do not count.
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(aligned([](FwdArgs& args) { args.k.row_stride = most; }), 2);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.k.row_stride = most - 63; }), 16);
    EXPECT_EQ(aligned([](FwdArgs& args) { args.k.row_stride = -most - 1; }), 16);
}

TEST(Invocation, StridesDecideWhetherTensorMapsDescribeThem) {
    const Problem plain = builder_for(ApiFamily::fwd).data_type(DataType::fp16).build();
    const auto mappable = [&](auto change, VLayout v_layout = VLayout::row) {
        FwdArgs args = skeleton_of(plain);
        for (TensorView* view : {&args.q, &args.k, &args.v})
            *view = {view->data, view->type, 1 << 20, 1 << 17, 128};
        change(args);
        Signature traits = plain.signature;
        traits.v_layout = v_layout;
        return problem_of(traits, args, plain.arch).tensors_mappable;
    };
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(mappable([](FwdArgs&) {}));
    // An expanded tensor: heads and entries share memory.
    EXPECT_TRUE(mappable([](FwdArgs& args) { args.k.head_stride = args.k.batch_stride = 0; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.k.row_stride = 0; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.v.row_stride = -128; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.q.head_stride = -(1 << 17); }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.v.batch_stride = -16; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.k.col_stride = 2; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.k.batch_stride = std::int64_t{1} << 39; }));
    EXPECT_TRUE(mappable([](FwdArgs& args) { args.k.batch_stride = (std::int64_t{1} << 39) - 8; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) { args.k.row_stride = most; }));
    EXPECT_FALSE(mappable([](FwdArgs& args) {
        args.k.batch_stride = most;
        args.k.head_stride = 0;
    }));
    EXPECT_TRUE(mappable([](FwdArgs& args) { args.o.row_stride = -128; })); // is stored element by element
    // V by column has lines of keys, which lie next to each other and end where the tensor does.
    const auto by_column = [&](auto change) {
        return mappable(
            [&](FwdArgs& args) {
                std::swap(args.v.row_stride, args.v.col_stride);
                change(args);
            },
            VLayout::column);
    };
    EXPECT_TRUE(by_column([](FwdArgs&) {}));
    EXPECT_FALSE(by_column([](FwdArgs& args) { args.v.row_stride = 0; }));
    EXPECT_FALSE(by_column([](FwdArgs& args) { args.v.col_stride = 0; }));
    EXPECT_FALSE(by_column([](FwdArgs& args) { args.v.batch_stride = 0; }));
    static constexpr std::array<std::int32_t, 2> lengths{3, 4};
    EXPECT_FALSE(by_column([](FwdArgs& args) { args.lengths.seqlen_k = lengths.data(); }));
    // Strides of one entry or one head are not asked for.
    EXPECT_TRUE(mappable([](FwdArgs& args) {
        args.shape.nhead_k = args.shape.batch = 1;
        args.k.head_stride = args.v.batch_stride = -16;
    }));
}

TEST(Invocation, StridesOfPagesDecideTheAlignmentToo) {
    alignas(16) std::array<std::byte, 32> memory{};
    PagedKvArgs args;
    args.shape.hdim_q = args.shape.hdim_v = 64;
    for (TensorView* view : {&args.q, &args.k, &args.v})
        *view = {memory.data(), ElementType::bf16, 128 * 64, 4096, 64};
    const Signature traits;
    EXPECT_EQ(problem_of(traits, args, "sm_90").tensor_alignment, 16);
    args.v.batch_stride += 4;
    EXPECT_EQ(problem_of(traits, args, "sm_90").tensor_alignment, 8);
}

TEST(Invocation, TheLargerPoolDecidesHowPagesAreLoaded) {
    BatchPrefillArgs args;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    args.place.page_size = 16;
    args.place.page_count = 4;
    args.k = {nullptr, ElementType::fp16, 2048, 2048, 128};
    args.v = args.k;
    const auto bytes = [&] { return problem_of({}, args, "gfx950").kv_pool_bytes; };
    EXPECT_EQ(bytes(), 4 * 2048 * 2);
    args.v.batch_stride = std::int64_t{1} << 30;
    EXPECT_EQ(bytes(), std::int64_t{1} << 33);
    std::swap(args.k, args.v);
    EXPECT_EQ(bytes(), std::int64_t{1} << 33);
}

TEST(Invocation, APoolThatCannotBeCountedIsRefused) {
    BatchPrefillArgs args;
    args.shape.hdim_q = args.shape.hdim_v = 128;
    args.place.page_size = 16;
    args.place.page_count = std::int64_t{1} << 40;
    args.k.batch_stride = 4096;
    EXPECT_EQ(problem_of({}, args, "gfx950").kv_pool_bytes, std::int64_t{1} << 54);
    for (const std::int64_t stride :
         {std::int64_t{1} << 17, std::int64_t{1} << 24, -(std::int64_t{1} << 24)}) {
        args.k.batch_stride = stride;
        try {
            static_cast<void>(problem_of({}, args, "gfx950"));
            FAIL() << stride;
        } catch (const ProblemError& error) {
            EXPECT_EQ(error.rule(), "L-1");
            EXPECT_EQ(error.field(), "k");
        }
        std::swap(args.k, args.v);
        try {
            static_cast<void>(problem_of({}, args, "gfx950"));
            FAIL() << stride;
        } catch (const ProblemError& error) {
            EXPECT_EQ(error.field(), "v");
        }
        std::swap(args.k, args.v);
    }
}

TEST(Invocation, PointersDecideTheFlagsNotTheTraits) {
    const Problem plain = builder_for(ApiFamily::fwd).build();
    FwdArgs args = skeleton_of(plain);
    float lse = 0.0F;
    args.lse.data = &lse;
    EXPECT_TRUE(problem_of(plain.signature, args, plain.arch).signature.has_lse);
    args.score.sink_logit = &lse;
    EXPECT_TRUE(problem_of(plain.signature, args, plain.arch).signature.has_sink_logit);
}

/// The rule that a change of the arguments breaks; "" when it breaks none.
template <class Check, class Change>
std::string broken_rule(Check check, Change change) {
    FwdArgs args = skeleton_of(builder_for(ApiFamily::fwd).build());
    change(args);
    try {
        check(args);
    } catch (const ProblemError& error) {
        return error.rule();
    }
    return {};
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

TEST(Values, RulesNameTheirId) {
    DataType type = DataType::fp16;
    const auto rule = [&](const auto& change, std::span<const std::int32_t> seqstart_k = {}) {
        return broken_rule(
            [&](const FwdArgs& args) {
                check_values(type, args.score, args.dropout, args.quant, seqstart_k);
            },
            change);
    };
    EXPECT_EQ(rule([](FwdArgs&) {}), "");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = 0.99F; }), "");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = 1.0F; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = -0.1F; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.dropout.p_drop = nan; }), "D-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.logits_soft_cap = -1.0F; }), "C-1");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.logits_soft_cap = nan; }), "C-1");
    // The largest one is finite in base 2, and little above it none is.
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.logits_soft_cap = 2.3586e38F; }), "");
    EXPECT_TRUE(std::isfinite(2.3586e38F * std::numbers::log2e_v<float>));
    EXPECT_FALSE(std::isfinite(2.3588e38F * std::numbers::log2e_v<float>));
    for (const float cap : {2.3588e38F, std::numeric_limits<float>::max(), inf})
        EXPECT_EQ(rule([cap](FwdArgs& a) { a.score.logits_soft_cap = cap; }), "C-1") << cap;
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.scale_s = nan; }), "H-3");
    EXPECT_EQ(rule([](FwdArgs& a) { a.score.scale_o = nan; }), "O-1");
    const auto blocks = [](std::int64_t q, std::int64_t k) {
        return [=](FwdArgs& a) {
            a.quant.qscale = QScale::blockscale;
            a.quant.block_scale_size_q = q;
            a.quant.block_scale_size_k = k;
        };
    };
    EXPECT_EQ(rule(blocks(128, 64)), "");
    EXPECT_EQ(rule(blocks(-128, 64)), "Q-2");
    EXPECT_EQ(rule(blocks(128, 0)), "Q-2");
}

TEST(Values, ScaleBlocksOfAnEntryBeginBehindThoseBeforeIt) {
    const std::array<std::int32_t, 4> queries{0, 129, 129, 140}, keys{0, 64, 70, 71};
    std::array<std::int32_t, 3> blocks_q{0, 2, 2}, blocks_k{0, 1, 2};
    const auto rule = [&](QScale mode = QScale::blockscale) {
        return broken_rule(check_contents, [&](FwdArgs& a) {
            a.shape.mode = Mode::group;
            a.shape.batch = 3;
            a.shape.seqlen_q = queries[1];
            a.shape.seqlen_k = keys[1];
            a.shape.max_seqlen_q = queries[1];
            a.lengths.seqstart_q = queries.data();
            a.lengths.seqstart_k = keys.data();
            a.quant.qscale = mode;
            a.quant.block_scale_size_k = 64;
            a.quant.block_scale_seqstart_q = blocks_q.data();
            a.quant.block_scale_seqstart_k = blocks_k.data();
        });
    };
    EXPECT_EQ(rule(), "");
    blocks_q[1] = 1;
    EXPECT_EQ(rule(), "Q-2");
    blocks_q[1] = 2;
    blocks_k[2] = 3;
    EXPECT_EQ(rule(), "Q-2");
    blocks_k = {1, 2, 3};
    EXPECT_EQ(rule(), "Q-2");
    EXPECT_EQ(rule(QScale::mx), "Q-2");
    blocks_k = {0, 2, 3}; // of 32 keys each; Q and K have a scale for every row
    EXPECT_EQ(rule(QScale::mx), "");
    blocks_k[1] = 1;
    EXPECT_EQ(rule(QScale::mx), "Q-2");
}

TEST(Values, OnlyQuantisedOutputsAreScaled) {
    const auto rule = [](DataType type, float scale = 2.0F) {
        return broken_rule(
            [&](const FwdArgs& args) { check_values(type, args.score, args.dropout, args.quant); },
            [scale](FwdArgs& a) { a.score.scale_o = scale; });
    };
    for (const float bad : {nan, std::numeric_limits<float>::infinity()})
        EXPECT_EQ(rule(DataType::fp8, bad), "O-1") << bad;
    EXPECT_EQ(rule(DataType::fp8), "");
    EXPECT_EQ(rule(DataType::bf8), "");
    for (const DataType type :
         {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp8bf16, DataType::fp8fp32})
        EXPECT_EQ(rule(type), "O-1") << to_string(type);
}

TEST(Values, EntriesOfPackedKeysBeginWithAByte) {
    const auto rule = [](DataType type, std::vector<std::int32_t> starts) {
        return broken_rule(
            [&](const FwdArgs& args) { check_values(type, args.score, args.dropout, args.quant, starts); },
            [](FwdArgs&) {});
    };
    EXPECT_EQ(rule(DataType::mxfp4, {0, 62, 64}), "");
    EXPECT_EQ(rule(DataType::mxfp4, {0, 63, 64}), "T-2");
    EXPECT_EQ(rule(DataType::fp16, {0, 63, 64}), "");
}

TEST(Values, DescalesAreNumbersAboveZero) {
    std::array<float, 1> one{1.0F}, scale{0.5F};
    const auto rule = [&](float value) {
        scale = {value};
        return broken_rule(check_descales, [&](FwdArgs& a) {
            a.quant.qscale = QScale::pertensor;
            a.quant.q_descale.data = a.quant.k_descale.data = one.data();
            a.quant.v_descale.data = scale.data();
        });
    };
    EXPECT_EQ(rule(0.5F), "");
    for (const float bad : {0.0F, -1.0F, nan, std::numeric_limits<float>::infinity()})
        EXPECT_EQ(rule(bad), "Q-6") << bad;
}

TEST(Values, LogicalBlockScalesAreNumbers) {
    // One head, 40 keys: two blocks of 32; the third byte of a row is padding and may hold anything.
    std::array<std::uint8_t, 3 * 40> codes{};
    codes.fill(127);
    const auto rule = [&](std::size_t bad) {
        codes.fill(127);
        codes[bad] = 0xFF;
        return broken_rule(check_descales, [&](FwdArgs& a) {
            a.shape = {.batch = 1,
                       .nhead_q = 1,
                       .nhead_k = 1,
                       .seqlen_q = 40,
                       .seqlen_k = 40,
                       .hdim_q = 64,
                       .hdim_v = 1};
            a.quant.qscale = QScale::mx;
            const TensorView rows{codes.data(), ElementType::e8m0, 0, 0, 3, 1};
            a.quant.q_descale = a.quant.k_descale = rows;
            a.quant.v_descale = {codes.data(), ElementType::e8m0, 0, 0, 1, 0};
        });
    };
    EXPECT_EQ(rule(2), "");
    EXPECT_EQ(rule(3 * 39 + 1), "Q-6");
    EXPECT_EQ(rule(1), "Q-6");
}

} // namespace
} // namespace fmha
