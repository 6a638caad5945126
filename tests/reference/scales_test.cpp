// Which stored factor belongs to an element (15.1 to 15.6): every factor is a number that tells where it lies.

#include "dispatcher/types/error.hpp"
#include "reference/numerics/scales.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace fmha::reference {
namespace {

constexpr std::int64_t before =
    20000; // numbers ahead of the first factor, so that a place below zero has one too

/// The number of the factor at a place.
std::int64_t factor(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) {
    return before + 8000 * b + 2000 * h + 10 * row + col;
}

double as_number(ElementType /*type*/, std::uint32_t code) {
    return code;
}

class Scales : public testing::Test {
  protected:
    Scales() {
        std::iota(numbers_.begin(), numbers_.end(), 0U);
        const TensorView view{numbers_.data() + before, ElementType::fp32, 8000, 2000, 10, 1};
        args_.quant.q_descale = args_.quant.k_descale = args_.quant.v_descale = view;
        args_.quant.block_scale_size_q = 4;
        args_.quant.block_scale_size_k = 5;
        entry_.start_q = 30;
        entry_.start_k = 50;
    }
    double q(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
        return q_descale(args_, entry_, as_number, b, h, i, c);
    }
    double k(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) const {
        return k_descale(args_, entry_, as_number, b, h, j, c, place_);
    }
    double v(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) const {
        return v_descale(args_, as_number, b, h, j, c, place_);
    }
    void use(QScale mode, std::int64_t page_size = 0) {
        args_.quant.qscale = mode;
        args_.place.page_size = page_size;
    }

    std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(60000);
    AttentionArgs args_;
    Entry entry_;
    KeyPlace place_{3, 6};
};

TEST_F(Scales, AreOneWithoutFactors) {
    EXPECT_EQ(q(1, 2, 9, 40), 1.0);
    EXPECT_EQ(k(1, 2, 9, 40), 1.0);
    EXPECT_EQ(v(1, 2, 9, 40), 1.0);
    use(QScale::pertensor);
    args_.quant.q_descale = args_.quant.k_descale = args_.quant.v_descale = {};
    EXPECT_EQ(q(1, 2, 9, 40), 1.0);
    EXPECT_EQ(k(1, 2, 9, 40), 1.0);
    EXPECT_EQ(v(1, 2, 9, 40), 1.0);
}

TEST_F(Scales, OfATensorAreTheFirstFactor) {
    use(QScale::pertensor);
    EXPECT_EQ(q(1, 2, 9, 40), factor(0, 0, 0, 0));
    EXPECT_EQ(k(1, 2, 9, 40), factor(0, 0, 0, 0));
    EXPECT_EQ(v(1, 2, 9, 40), factor(0, 0, 0, 0));
}

TEST_F(Scales, OfBlocksCountRowsFromTheStartOfTheEntry) {
    use(QScale::blockscale);
    constexpr std::array<std::int32_t, 2> starts_q{0, 11}, starts_k{0, 17};
    for (const Mode mode : {Mode::batch, Mode::group})
        for (const bool listed : {false, true}) {
            args_.shape.mode = mode;
            args_.quant.block_scale_seqstart_q = listed ? starts_q.data() : nullptr;
            args_.quant.block_scale_seqstart_k = listed ? starts_k.data() : nullptr;
            const bool starts = listed && mode == Mode::group;
            for (std::int64_t row = 0; row < 12; ++row) {
                EXPECT_EQ(q(1, 2, row, 40), factor(1, 2, (starts ? 11 : 0) + row / 4, 0));
                EXPECT_EQ(k(1, 2, row, 40), factor(1, 2, (starts ? 17 : 0) + row / 5, 0));
                EXPECT_EQ(v(1, 2, row, 40), factor(1, 2, (starts ? 17 : 0) + row / 5, 0));
            }
        }
}

// Along channels for queries and keys, along keys for values.
TEST_F(Scales, OfThirtyTwoElementsFollowTheProduct) {
    use(QScale::mx);
    constexpr std::array<std::int32_t, 2> starts{0, 17};
    for (std::int64_t c = 0; c < 70; ++c) {
        EXPECT_EQ(q(1, 2, 9, c), factor(1, 2, 30 + 9, c / 32));
        EXPECT_EQ(k(1, 2, 9, c), factor(1, 2, 50 + 9, c / 32));
        EXPECT_EQ(v(1, 2, c, 7), factor(1, 2, c / 32, 7));
    }
    args_.shape.mode = Mode::group;
    args_.quant.block_scale_seqstart_k = starts.data();
    EXPECT_EQ(v(1, 2, 40, 7), factor(1, 2, 17 + 1, 7));
}

TEST_F(Scales, OfPagesLieWithTheirPage) {
    for (const std::int64_t page_size : {1, 16}) {
        use(QScale::kv_blockscale, page_size);
        EXPECT_EQ(q(1, 2, 9, 40), factor(0, 0, 0, 0));
        EXPECT_EQ(k(1, 2, 9, 40), factor(3, 2, 0, 0));
        EXPECT_EQ(v(1, 2, 9, 40), factor(3, 2, 0, 0));
        use(QScale::per_token_head, page_size);
        EXPECT_EQ(q(1, 2, 9, 40), factor(1, 2, 30 + 9, 0));
        EXPECT_EQ(k(1, 2, 9, 40), factor(3, 2, 6, 0));
        EXPECT_EQ(v(1, 2, 9, 40), factor(0, 2, 0, 0));
    }
}

TEST_F(Scales, OfPagesNeedPages) {
    for (const QScale mode : {QScale::kv_blockscale, QScale::per_token_head}) {
        use(mode);
        EXPECT_THROW(q(1, 2, 9, 40), ProblemError);
        EXPECT_THROW(k(1, 2, 9, 40), ProblemError);
        EXPECT_THROW(v(1, 2, 9, 40), ProblemError);
    }
}

} // namespace
} // namespace fmha::reference
