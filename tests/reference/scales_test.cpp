// Which stored scale an element has: every mode (15.1 to 15.6), with strides that tell all indices apart.

#include "reference/numerics/scales.hpp"

#include "dispatcher/types/error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>

namespace fmha::reference {
namespace {

// Positions of an element count in these steps, so that the value that is read spells the indices.
constexpr std::int64_t of_batch = 10000, of_head = 1000, of_row = 10, of_col = 1;

double code_itself(ElementType, std::uint32_t code) {
    return static_cast<double>(static_cast<std::int32_t>(code));
}

/// Scales whose values are their own distances from the first one, before it too.
struct Scales {
    std::array<std::int32_t, 100000> values{};
    static constexpr int before = 20000;

    Scales() { std::iota(values.begin(), values.end(), -before); }
    TensorView view() {
        return {values.data() + before, ElementType::int32, of_batch, of_head, of_row, of_col};
    }
};

class ScaleOf : public testing::Test {
  protected:
    ScaleOf() {
        args_.quant.q_descale = args_.quant.k_descale = args_.quant.v_descale = scales_.view();
        args_.quant.block_scale_size_q = 4;
        args_.quant.block_scale_size_k = 8;
    }

    void use(QScale mode, std::int64_t page_size = 0) {
        args_.quant.qscale = mode;
        args_.place.page_size = page_size;
    }
    /// Of row or key 13 of entry 1, head 2, channel 70.
    double q() const { return q_descale(args_, entry_, code_itself, 1, 2, 13, 70); }
    double k() const { return k_descale(args_, entry_, code_itself, 1, 2, 13, 70, place_); }
    double v() const { return v_descale(args_, code_itself, 1, 2, 13, 70, place_); }

    Scales scales_;
    AttentionArgs args_;
    Entry entry_{20, 20, 5, 7};
    KeyPlace place_{3, 6};
};

TEST_F(ScaleOf, NoScaleReadsNothing) {
    args_.quant.q_descale = args_.quant.k_descale = args_.quant.v_descale = TensorView{};
    EXPECT_EQ(q(), 1.0);
    EXPECT_EQ(k(), 1.0);
    EXPECT_EQ(v(), 1.0);
}

TEST_F(ScaleOf, AnAbsentTensorIsOne) {
    use(QScale::pertensor);
    args_.quant.q_descale = args_.quant.k_descale = args_.quant.v_descale = TensorView{};
    EXPECT_EQ(q(), 1.0);
    EXPECT_EQ(k(), 1.0);
    EXPECT_EQ(v(), 1.0);
}

TEST_F(ScaleOf, ATensorIsItsFirst) {
    use(QScale::pertensor);
    EXPECT_EQ(q(), 0);
    EXPECT_EQ(k(), 0);
    EXPECT_EQ(v(), 0);
}

TEST_F(ScaleOf, ABlockOfRowsIsOfItsEntryAndHead) {
    use(QScale::blockscale);
    EXPECT_EQ(q(), 1 * of_batch + 2 * of_head + 13 / 4 * of_row);
    EXPECT_EQ(k(), 1 * of_batch + 2 * of_head + 13 / 8 * of_row);
    EXPECT_EQ(v(), 1 * of_batch + 2 * of_head + 13 / 8 * of_row);
}

TEST_F(ScaleOf, BlocksOfPackedEntriesBeginWhereTheirArraySays) {
    use(QScale::blockscale);
    const std::array<std::int32_t, 3> q_starts{0, 9, 20}, k_starts{0, 17, 30};
    args_.quant.block_scale_seqstart_q = q_starts.data();
    args_.quant.block_scale_seqstart_k = k_starts.data();
    EXPECT_EQ(q(), 1 * of_batch + 2 * of_head + 13 / 4 * of_row) << "batch mode has no starts";
    args_.shape.mode = Mode::group;
    EXPECT_EQ(q(), 1 * of_batch + 2 * of_head + (9 + 13 / 4) * of_row);
    EXPECT_EQ(k(), 1 * of_batch + 2 * of_head + (17 + 13 / 8) * of_row);
    EXPECT_EQ(v(), 1 * of_batch + 2 * of_head + (17 + 13 / 8) * of_row);
}

TEST_F(ScaleOf, MicroScalesAreOfARowOfTheTensorAnd32Channels) {
    use(QScale::mx);
    EXPECT_EQ(q(), 1 * of_batch + 2 * of_head + (5 + 13) * of_row + 70 / 32 * of_col);
    EXPECT_EQ(k(), 1 * of_batch + 2 * of_head + (7 + 13) * of_row + 70 / 32 * of_col);
    // V's run along keys.
    EXPECT_EQ(v(), 1 * of_batch + 2 * of_head + 13 / 32 * of_row + 70 * of_col);
    EXPECT_EQ(v_descale(args_, code_itself, 1, 2, 64, 70, place_),
              1 * of_batch + 2 * of_head + 2 * of_row + 70 * of_col);
}

TEST_F(ScaleOf, MicroScalesOfPackedVBeginWhereTheirArraySays) {
    use(QScale::mx);
    const std::array<std::int32_t, 3> starts{0, 17, 30};
    args_.quant.block_scale_seqstart_k = starts.data();
    args_.shape.mode = Mode::group;
    EXPECT_EQ(v_descale(args_, code_itself, 1, 2, 64, 70, place_),
              1 * of_batch + 2 * of_head + (17 + 2) * of_row + 70 * of_col);
}

TEST_F(ScaleOf, APageHasAScaleAHeadAndQOne) {
    for (const std::int64_t page_size : {1, 16}) {
        use(QScale::kv_blockscale, page_size);
        EXPECT_EQ(q(), 0);
        EXPECT_EQ(k(), 3 * of_batch + 2 * of_head);
        EXPECT_EQ(v(), 3 * of_batch + 2 * of_head);
    }
}

TEST_F(ScaleOf, ATokenHasAScaleAHeadAndVOneAHead) {
    for (const std::int64_t page_size : {1, 16}) {
        use(QScale::per_token_head, page_size);
        EXPECT_EQ(q(), 1 * of_batch + 2 * of_head + (5 + 13) * of_row);
        EXPECT_EQ(k(), 3 * of_batch + 2 * of_head + 6 * of_row);
        EXPECT_EQ(v(), 2 * of_head);
    }
}

TEST_F(ScaleOf, ModesOfPagesNeedPages) {
    for (const QScale mode : {QScale::kv_blockscale, QScale::per_token_head}) {
        use(mode);
        EXPECT_THROW(q(), ProblemError);
        EXPECT_THROW(k(), ProblemError);
        EXPECT_THROW(v(), ProblemError);
    }
}

} // namespace
} // namespace fmha::reference
