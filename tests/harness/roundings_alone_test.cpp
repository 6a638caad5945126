// G2.element and G2.row: one element, or one row, that is far from what its roundings explain, among many right ones.

#include "harness/cases/case_enums.hpp"
#include "harness/gates/judge.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

namespace fmha::harness::test {
namespace {

using reference::RowId;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t heads = 2, queries = 123;
constexpr double deviation = 0x1p-10; ///< predicted for every element

/// Which elements are how many standard deviations off; of the others 0.
using Errors = std::function<double(const RowId&, std::int64_t)>;

/// O of 1 everywhere. G1 accepts an error of a thousand standard deviations, so that it cannot be the gate that is red.
class RoomyO final : public Bounded {
  public:
    explicit RoomyO(std::int64_t columns = 48, bool independent = true)
        : Bounded("o", ElementType::fp32), columns_(columns), independent_(independent) {}
    std::int64_t rows() const override { return heads * queries; }
    void read(std::int64_t row, BoundedRow& into) const override {
        into.id = rows_->id(row);
        into.resize(static_cast<std::size_t>(columns_));
        into.value.assign(into.value.size(), 1.0);
        into.limit.assign(into.value.size(), 1000.0 * deviation);
        into.variance.assign(into.value.size(), deviation * deviation);
    }
    bool has_rms() const override { return true; }
    bool has_elements() const override { return independent_; }
    bool has_rows() const override { return independent_; }

    Judgement judged(const Errors& errors) const {
        Outputs outputs;
        auto& o = outputs.add("o", ElementType::fp32, rows_, Axis::v_channel);
        for (const RowId& id : rows_->ids())
            o.append_row(columns_, [&](std::int64_t c) {
                const double usual = c % 2 == 0 ? 0.5 : -0.5, given = errors(id, c);
                return reference::encode(ElementType::fp32, 1.0 + deviation * (given == 0.0 ? usual : given));
            });
        Judgement judgement;
        Findings findings({{.axis = Axis::query,
                            .batch = 1,
                            .heads = heads,
                            .checked_rows = rows(),
                            .all_rows = rows(),
                            .facts = [](const RowId&) {
                                return RowSpace::Facts{true, queries, 90};
                            }}});
        judge_values(*this, outputs, findings, judgement);
        judgement.pattern = findings.pattern();
        return judgement;
    }

  private:
    static std::shared_ptr<const OutputRows> all_rows() {
        std::vector<RowId> ids;
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t i = 0; i < queries; ++i) ids.push_back({0, h, i});
        return std::make_shared<const OutputRows>(Axis::query, std::move(ids));
    }

    std::int64_t columns_;
    bool independent_;
    std::shared_ptr<const OutputRows> rows_ = all_rows();
};

std::string detail_of(const Judgement& judgement, const std::string& gate) {
    for (const auto& verdict : judgement.gates)
        if (verdict.gate == gate) return verdict.detail;
    return "not asked";
}

Errors of_one_element(double deviations) {
    return [=](const RowId& id, std::int64_t c) { return id == RowId{0, 1, 7} && c == 3 ? deviations : 0.0; };
}

Errors of_two_rows(double deviations) {
    return [=](const RowId& id, std::int64_t) {
        return id == RowId{0, 1, 20} || id == RowId{0, 1, 31} ? deviations : 0.0;
    };
}

TEST(RoundingsAlone, AnElementIsAtMostSixStandardDeviationsOff) {
    EXPECT_THAT(failed_gates(RoomyO().judged(of_one_element(5.9))), IsEmpty());
    for (const double deviations : {6.1, -6.1}) {
        const Judgement judgement = RoomyO().judged(of_one_element(deviations));
        EXPECT_THAT(failed_gates(judgement), ElementsAre("G2.element"));
        EXPECT_EQ(
            detail_of(judgement, "G2.element"),
            "b0 h1 row 7 column 3 (alone among 11808 elements) is 6.1 standard deviations off, 6 allowed");
        EXPECT_THAT(judgement.pattern, HasSubstr("1 of 246 checked rows"));
    }
}

TEST(RoundingsAlone, ARowHasAtMostTwoAndAHalfOfItsPredictedError) {
    EXPECT_THAT(failed_gates(RoomyO().judged(of_two_rows(2.4))), IsEmpty());
    const Judgement judgement = RoomyO().judged(of_two_rows(2.6));
    EXPECT_THAT(failed_gates(judgement), ElementsAre("G2.row"));
    EXPECT_EQ(
        detail_of(judgement, "G2.row"),
        "RMS error of b0 h1 row 20 (the worst of 2 among 246 rows) is 2.6 of the predicted, 2.5 allowed");
    EXPECT_THAT(judgement.pattern, HasSubstr("2 of 246 checked rows"));
}

TEST(RoundingsAlone, AnElementThatIsNoNumberIsFarOff) {
    const Judgement judgement = RoomyO().judged(of_one_element(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_THAT(failed_gates(judgement), ElementsAre("G1", "G2", "G2.row", "G2.element"));
}

TEST(RoundingsAlone, ARowOfFewColumnsIsNoMeanOfAnything) {
    EXPECT_THAT(failed_gates(RoomyO(31).judged(of_two_rows(3.0))), IsEmpty());
    EXPECT_THAT(failed_gates(RoomyO(32).judged(of_two_rows(3.0))), ElementsAre("G2.row"));
}

TEST(RoundingsAlone, AreNotAskedWhereRoundingsAreShared) {
    const RoomyO shared(48, false);
    EXPECT_EQ(detail_of(shared.judged(of_one_element(50.0)), "G2.element"), "not asked");
    EXPECT_EQ(detail_of(shared.judged(of_two_rows(5.0)), "G2.row"), "not asked");
}

/// 70 rows over 1000 keys, of which bf16 has rounding errors of a few per mille.
Case bf16_case() {
    Case c = small_case();
    c.data_type = DataType::bf16;
    c.seqlen_k = {1000};
    return c;
}

TEST(RoundingsAlone, SeeARowOfARealKernelThatIsThreePerCentTooLarge) {
    EXPECT_THAT(failed_gates(run_right(bf16_case())), IsEmpty());
    const CaseResult result = run_spoiled(bf16_case(), [](const FwdArgs& a) {
        for (std::int64_t c = 0; c < a.shape.hdim_v; ++c) set_o(a, 1, 0, 13, c, 1.03 * get_o(a, 1, 0, 13, c));
    });
    EXPECT_THAT(failed_gates(result), testing::Contains("G2.row"));
    EXPECT_THAT(failed_gates(result), testing::Not(testing::Contains(testing::AnyOf("G1", "G2"))));
    EXPECT_THAT(verdict(result, "G2.row").detail, HasSubstr("b1 h0 row 13"));
}

// What the gates need: independent roundings, and for rows columns that are drawn apart and around zero.
TEST(RoundingsAlone, AreAskedByFillAndType) {
    const auto asked = [](Fill fill, DataType type) {
        Case c = small_case();
        c.fill = fill;
        c.data_type = type;
        std::string gates;
        for (const GateVerdict& gate : run_right(c).gates)
            if (gate.gate == "G2.row" || gate.gate == "G2.element") gates += gate.gate + " ";
        return gates;
    };
    for (const Fill fill : {Fill::normal, Fill::sharp, Fill::rising, Fill::heavy_tailed})
        EXPECT_EQ(asked(fill, DataType::fp16), "G2.row G2.element ") << to_string(fill);
    for (const Fill fill : {Fill::uniform, Fill::indexed, Fill::edge_last})
        EXPECT_EQ(asked(fill, DataType::fp16), "G2.element ") << to_string(fill);
    for (const Fill fill : {Fill::zeros, Fill::integers, Fill::shifted})
        EXPECT_EQ(asked(fill, DataType::fp16), "") << to_string(fill);
    EXPECT_EQ(asked(Fill::normal, DataType::fp32), "");
}

} // namespace
} // namespace fmha::harness::test
