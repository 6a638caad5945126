// The gates that all families share, on outputs that are not those of forward: rows of keys, rows of different lengths,
// one number a row.

#include "dispatcher/types/error.hpp"
#include "harness/gates/judge.hpp"
#include "reference/numerics/formats.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace fmha::harness::test {
namespace {

using reference::RowId;
using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t keys_of_entry[] = {90, 33};
constexpr std::int64_t heads = 2, channels = 48;

std::shared_ptr<const OutputRows> key_rows() {
    std::vector<RowId> ids;
    for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t j = 0; j < keys_of_entry[b]; ++j) ids.push_back({b, h, j});
    return std::make_shared<const OutputRows>(Axis::key, std::move(ids));
}

/// The exact value of an element: irregular, between 0.5 and 1.5.
double exact_value(const RowId& id, std::int64_t c) {
    return 1.0 + 0.5 * std::sin(static_cast<double>(1 + id.b * 7919 + id.h * 104729 + id.i * 211 + c * 17));
}

using Change = std::function<double(const RowId&, std::int64_t, double)>;
const Change no_change = [](const RowId&, std::int64_t, double value) { return value; };

/// "dk" in fp16 as rounding the exact values makes it, and "d" in fp32 with one number a row.
Outputs outputs_with(const Change& dk, const Change& d = no_change) {
    const auto rows = key_rows();
    Outputs outputs;
    auto& matrix = outputs.add("dk", ElementType::fp16, rows, Axis::qk_channel);
    for (const RowId& id : rows->ids())
        matrix.append_row(channels, [&](std::int64_t c) {
            return reference::encode(ElementType::fp16, dk(id, c, exact_value(id, c)));
        });
    auto& column = outputs.add("d", ElementType::fp32, rows, Axis::none);
    for (const RowId& id : rows->ids())
        column.append_row(1, [&](std::int64_t) {
            const double value = id.i == 4 ? -infinity : exact_value(id, -1);
            return reference::encode(ElementType::fp32, d(id, -1, value));
        });
    return outputs;
}

class ExpectedDk final : public Bounded {
  public:
    explicit ExpectedDk(double lean = 0.0) : Bounded("dk", ElementType::fp16), lean_(lean) {}
    std::int64_t rows() const override { return rows_->size(); }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = rows_->id(row);
        into.resize(channels);
        for (std::size_t c = 0; c < into.value.size(); ++c) {
            into.value[c] = exact_value(into.id, static_cast<std::int64_t>(c));
            into.limit[c] = 0x1p-11 * std::abs(into.value[c]);
            into.variance[c] = std::pow(0x1p-11 * into.value[c], 2) / 3.0;
        }
        into.in_mean = true;
    }
    bool has_rms() const override { return true; }
    bool has_mean() const override { return true; }
    double lean() const override { return lean_; }

  private:
    double lean_;
    std::shared_ptr<const OutputRows> rows_ = key_rows();
};

class ExpectedD final : public Bounded {
  public:
    ExpectedD() : Bounded("d", ElementType::fp32) {}
    std::int64_t rows() const override { return rows_->size(); }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = rows_->id(row);
        into.resize(1);
        into.value.front() = into.id.i == 4 ? -infinity : exact_value(into.id, -1);
        into.limit.front() = 1e-6;
    }

  private:
    std::shared_ptr<const OutputRows> rows_ = key_rows();
};

/// Keys as rows; key j is seen by 90 − j queries.
RowSpace key_space() {
    const std::int64_t rows = key_rows()->size();
    return {.axis = Axis::key,
            .batch = 2,
            .heads = heads,
            .group_size = 1,
            .checked_rows = rows,
            .all_rows = rows,
            .median_partners = 50,
            .facts = [](const RowId& id) {
                return RowSpace::Facts{true, keys_of_entry[id.b], 90 - id.i};
            }};
}

Judgement judged(const Outputs& outputs, double lean = 0.0) {
    Judgement judgement;
    Findings findings({key_space()});
    judge_values(ExpectedDk(lean), outputs, findings, judgement);
    judge_statistic(ExpectedD(), outputs, findings, judgement);
    judge_finite(outputs, judgement);
    judgement.worst = findings.worst();
    judgement.pattern = findings.pattern();
    return judgement;
}

GateVerdict verdict_of(const Judgement& judgement, const std::string& gate) {
    for (const auto& verdict : judgement.gates)
        if (verdict.gate == gate) return verdict;
    ADD_FAILURE() << "no verdict of " << gate;
    return {};
}

/// A head of 128 keys, of which the first `loud` have errors at all, predicted to be 1 in the mean square.
class LoudLines final : public Bounded {
  public:
    LoudLines(std::int64_t loud, bool round_once)
        : Bounded("dk", ElementType::fp16), loud_(loud), round_once_(round_once) {}
    std::int64_t rows() const override { return 128; }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = {0, 0, row};
        into.resize(channels);
        into.limit.assign(channels, 100.0);
        into.variance.assign(channels, row < loud_ ? 1.0 : 0.0);
    }
    bool has_rms() const override { return true; }
    bool lines_may_round_once() const override { return round_once_; }

    GateVerdict of_errors(double error) const {
        std::vector<RowId> ids;
        for (std::int64_t row = 0; row < rows(); ++row) ids.push_back({0, 0, row});
        const auto space = std::make_shared<const OutputRows>(Axis::key, ids);
        Outputs outputs;
        auto& matrix = outputs.add("dk", ElementType::fp16, space, Axis::qk_channel);
        for (const RowId& id : ids)
            matrix.append_row(channels, [&](std::int64_t) {
                return reference::encode(ElementType::fp16, id.i < loud_ ? error : 0.0);
            });
        Judgement judgement;
        Findings findings({key_space()});
        judge_values(*this, outputs, findings, judgement);
        return verdict_of(judgement, "G2");
    }

  private:
    std::int64_t loud_;
    bool round_once_;
};

// B.9: the elements of a line may share one rounding, whose error is at most √3 of its RMS; 91 such lines average out.
TEST(Bounded, FewRoundingsMayBeFarFromTheirExpectation) {
    const LoudLines few(90, true), enough(92, true), of_many_roundings(90, false);
    EXPECT_TRUE(few.of_errors(1.7).passed);
    EXPECT_FALSE(few.of_errors(2.6).passed) << "no rounding explains that";
    EXPECT_FALSE(enough.of_errors(1.3).passed);
    EXPECT_TRUE(enough.of_errors(1.2).passed);
    EXPECT_FALSE(of_many_roundings.of_errors(1.3).passed) << "of rows that add up many roundings";
}

TEST(Bounded, PassesWhatRoundingMakes) {
    const Judgement judgement = judged(outputs_with(no_change));
    EXPECT_TRUE(judgement.passed());
    for (const char* gate : {"G1", "G2", "G2.mean", "G3", "G5.9"})
        EXPECT_TRUE(verdict_of(judgement, gate).passed) << gate;
    EXPECT_EQ(verdict_of(judgement, "G1").tensor, "dk");
    EXPECT_EQ(verdict_of(judgement, "G3").tensor, "d");
    EXPECT_EQ(judgement.elements, (90 + 33) * heads * channels);
    EXPECT_EQ(judgement.pattern, "");
}

TEST(Bounded, NamesTheKeyOfAWrongElement) {
    const Judgement judgement = judged(outputs_with([](const RowId& id, std::int64_t c, double value) {
        return id == RowId{1, 0, 7} && c == 3 ? value + 0.01 : value;
    }));
    EXPECT_THAT(verdict_of(judgement, "G1").detail, HasSubstr("first at b1 h0 key 7 column 3"));
    ASSERT_FALSE(judgement.worst.empty());
    EXPECT_EQ(judgement.worst.front().tensor, "dk");
    EXPECT_EQ(judgement.worst.front().row, 7);
}

TEST(Bounded, SeesSmallErrorsTogether) {
    std::int64_t n = 0;
    const Judgement judgement = judged(outputs_with([&n](const RowId& id, std::int64_t, double value) {
        return id.b == 0 && id.h == 1 ? value * (1.0 + (++n % 2 == 0 ? 0x1p-11 : -0x1p-11)) : value;
    }));
    EXPECT_FALSE(verdict_of(judgement, "G2").passed);
    EXPECT_THAT(verdict_of(judgement, "G2").detail, HasSubstr("b0 h1"));
}

TEST(Bounded, SeesErrorsThatLean) {
    const Judgement judgement = judged(
        outputs_with([](const RowId&, std::int64_t, double value) { return value * (1.0 - 0x1p-12); }));
    EXPECT_THAT(verdict_of(judgement, "G2.mean").detail, HasSubstr("towards zero"));
}

TEST(Bounded, AllowsTheLeanOfRoundingAndNoMore) {
    const Outputs outputs =
        outputs_with([](const RowId&, std::int64_t, double value) { return value * (1.0 - 0x1p-12); });
    EXPECT_TRUE(verdict_of(judged(outputs, 0x1p-12), "G2.mean").passed);
    EXPECT_FALSE(verdict_of(judged(outputs, 0x1p-14), "G2.mean").passed);
}

TEST(Bounded, StatisticsKeepTheirInfinities) {
    const auto with = [](double at_four, double at_five) {
        return judged(outputs_with(no_change, [=](const RowId& id, std::int64_t, double value) {
            return id == RowId{0, 0, 4} ? at_four : id == RowId{0, 0, 5} ? value + at_five : value;
        }));
    };
    EXPECT_TRUE(with(-infinity, 0.0).passed());
    EXPECT_THAT(verdict_of(with(-1e30, 0.0), "G3").detail, HasSubstr("first at b0 h0 key 4"));
    EXPECT_FALSE(verdict_of(with(-infinity, 1e-5), "G3").passed);
    EXPECT_FALSE(verdict_of(with(-infinity, -infinity), "G3").passed);
    EXPECT_FALSE(verdict_of(with(-infinity, std::nan("")), "G3").passed);
    EXPECT_FALSE(verdict_of(with(infinity, 0.0), "G5.9").passed);
}

TEST(Bounded, ValuesAreFinite) {
    const Judgement judgement = judged(outputs_with([](const RowId& id, std::int64_t c, double value) {
        return id == RowId{1, 1, 32} && c == 47 ? infinity : value;
    }));
    EXPECT_THAT(verdict_of(judgement, "G5.9").detail, HasSubstr("b1 h1 key 32 column 47 is inf"));
}

TEST(Bounded, EveryGateSeesNan) {
    const Judgement judgement = judged(outputs_with([](const RowId& id, std::int64_t c, double value) {
        return id == RowId{0, 1, 7} && c == 3 ? std::nan("") : value;
    }));
    for (const char* const gate : {"G1", "G2", "G2.mean", "G5.9"})
        EXPECT_FALSE(verdict_of(judgement, gate).passed) << gate;
}

/// One element that rounds to the largest number of fp16, with a limit that reaches the overflow.
class LargestDk final : public Bounded {
  public:
    explicit LargestDk(double sign) : Bounded("dk", ElementType::fp16), sign_(sign) {}
    std::int64_t rows() const override { return 1; }
    void read(std::int64_t, BoundedRow& into) const override {
        into.id = {0, 0, 0};
        into.resize(1);
        into.value.front() = sign_ * 65519.0;
        into.limit.front() = 32.0;
    }

  private:
    double sign_;
};

TEST(Bounded, AnOverflowHasTheSignOfItsValue) {
    const auto accepts = [](double expected_sign, double got) {
        const auto rows = std::make_shared<const OutputRows>(Axis::key, std::vector<RowId>{{0, 0, 0}});
        Outputs outputs;
        outputs.add("dk", ElementType::fp16, rows, Axis::qk_channel).append_row(1, [got](std::int64_t) {
            return reference::encode(ElementType::fp16, got);
        });
        Judgement judgement;
        Findings findings({key_space()});
        judge_values(LargestDk(expected_sign), outputs, findings, judgement);
        return verdict_of(judgement, "G1").passed;
    };
    for (const double sign : {1.0, -1.0}) {
        EXPECT_TRUE(accepts(sign, sign * infinity));
        EXPECT_FALSE(accepts(sign, -sign * infinity));
        EXPECT_FALSE(accepts(sign, -sign * 65504.0));
    }
}

std::string pattern_of(const std::function<bool(const RowId&, std::int64_t)>& wrong) {
    return judged(outputs_with([&](const RowId& id, std::int64_t c, double value) {
               return wrong(id, c) ? value + 1.0 : value;
           }))
        .pattern;
}

TEST(Bounded, PatternsNameTheAxesOfTheOutput) {
    const auto last = [](const RowId& id) { return id.i == keys_of_entry[id.b] - 1; };
    EXPECT_THAT(pattern_of([&](const RowId& id, std::int64_t) { return last(id); }),
                HasSubstr("4 of 246 checked keys: only the last key (key tail)"));
    EXPECT_THAT(pattern_of([](const RowId&, std::int64_t c) { return c >= 32; }),
                HasSubstr("only columns from 32 on (head dimension tail)"));
    EXPECT_THAT(
        pattern_of([](const RowId& id, std::int64_t) { return id.b == 0 && id.i >= 32 && id.i < 64; }),
        HasSubstr("whole tiles of 32 keys"));
    EXPECT_THAT(pattern_of([](const RowId& id, std::int64_t) { return id.i > 0 && id.i < 9; }),
                HasSubstr("only keys up to 8 of 90 (keys that few rows see)"));
    EXPECT_THAT(
        pattern_of([](const RowId& id, std::int64_t) { return id.b == 0 && id.i % 7 == 3 && id.i < 40; }),
        HasSubstr("only keys that more rows see than the median (accumulation over rows)"));
}

TEST(Outputs, TellTheFirstBitInWhichTheyDiffer) {
    const Outputs first = outputs_with(no_change);
    EXPECT_EQ(first.first_difference(outputs_with(no_change)), "");
    const Outputs dk = outputs_with([](const RowId& id, std::int64_t c, double value) {
        return id == RowId{0, 1, 2} && c == 5 ? 1.5 : value;
    });
    EXPECT_THAT(first.first_difference(dk), HasSubstr("dk at b0 h1 key 2 column 5: 0x"));
    EXPECT_THAT(first.first_difference(dk), HasSubstr("and 0x3e00"));
    const Outputs d = outputs_with(no_change, [](const RowId& id, std::int64_t, double value) {
        return id == RowId{0, 1, 2} ? 0.25 : value;
    });
    EXPECT_THAT(first.first_difference(d), HasSubstr("d at b0 h1 key 2: "));
    EXPECT_THAT(first.first_difference(d), HasSubstr("and 0.25"));
    Outputs fewer = first;
    fewer.add("dv", ElementType::fp16, key_rows(), Axis::v_channel);
    EXPECT_NE(first.first_difference(fewer), "");
}

TEST(Outputs, AreZeroWithEitherSign) {
    const auto all = [](double value) {
        return outputs_with(
            [value](const RowId& id, std::int64_t, double) { return id.i % 2 == 0 ? value : 0.0; });
    };
    EXPECT_TRUE(all(-0.0).at("dk").all_zero());
    EXPECT_FALSE(all(0x1p-24).at("dk").all_zero());
}

TEST(Outputs, RefuseWhatTheyHaveNot) {
    const Outputs outputs = outputs_with(no_change);
    EXPECT_EQ(outputs.find("dv"), nullptr);
    EXPECT_THROW(outputs.at("dv"), Error);
    EXPECT_THROW(outputs.at("dk").rows().index({0, 0, 90}), Error);
    EXPECT_THROW(OutputRows(Axis::key, {{0, 0, 1}, {0, 0, 0}}), Error);
}

} // namespace
} // namespace fmha::harness::test
