// Budgets of loops: nothing gets worse unseen.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/loop_budgets.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace fmha::generator {
namespace {

using built::LoopUnit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Budgets : public testing::Test {
  protected:
    Budgets() { build(); }

    /// A build of one kernel whose loop is `changed`.
    void build(
        const std::function<void(built::LoopModel&)>& changed = [](built::LoopModel&) {},
        const std::string& compiler = "clang version 22.1.8", DataType type = DataType::bf16) {
        built::LoopModel loop{.scores = 64, .waves = 2};
        loop.plain[LoopUnit::matrix] = {128, 4096};
        loop.plain[LoopUnit::vector] = {576, 4000};
        loop.plain[LoopUnit::transcendental] = {65, 1040};
        loop.plain.moves = 19;
        loop.plain.wide_integers = 3;
        loop.plain.selects = 17;
        loop.plain.wave_cycles = 10240;
        changed(loop);
        KernelConfig config;
        config.arch = "gfx942";
        config.signature.data_type = type;
        built::Resources used;
        used.loop = loop;
        manifest_.objects.assign(1, {"o", "gfx942", compiler, "k", {{"k", config, "s", used}}});
    }
    std::vector<std::string> wrong() {
        verdict_ = over_budget(manifest_, folder());
        std::vector<std::string> sentences;
        for (const AuditFinding& finding : verdict_.findings) sentences.push_back(finding.sentence);
        return sentences;
    }
    std::filesystem::path folder() const { return folder_.path() / "budgets"; }

    built::Manifest manifest_;
    BudgetVerdict verdict_;
    system::TemporaryDirectory folder_;
};

TEST_F(Budgets, AKernelWithoutOneIsNamed) {
    EXPECT_THAT(wrong(), ElementsAre(HasSubstr("no budget")));
}

TEST_F(Budgets, AcceptedOnesComeBackAsTheyWere) {
    EXPECT_THAT(accept_budgets(manifest_, folder(), "first \"numbers\"", "2026-05-17"),
                ElementsAre("gfx942: 1 budgets changed or are new"));
    const LoopBudgets read = read_budgets(folder(), "gfx942");
    EXPECT_EQ(read.kernels.at("k"), (LoopBudget{641, 19, 3, 17, 1000, 800}));
    EXPECT_EQ(read.accepted, (std::vector<BudgetAcceptance>{{"2026-05-17", "first \"numbers\"", 1}}));
    EXPECT_THAT(wrong(), IsEmpty());
    EXPECT_THAT(accept_budgets(manifest_, folder(), "again", "2026-05-18"),
                ElementsAre("gfx942: 0 budgets changed or are new"));
    EXPECT_EQ(read_budgets(folder(), "gfx942"), read);
}

TEST_F(Budgets, WhatGetsWorseIsNamedAndWhatGetsBetterIsNot) {
    accept_budgets(manifest_, folder(), "first", "2026-05-17");
    build([](built::LoopModel& loop) { ++loop.plain[LoopUnit::vector].instructions; });
    EXPECT_THAT(wrong(),
                ElementsAre("its plain iteration has 642 vector instructions, its budget is at most 641"));
    build([](built::LoopModel& loop) { ++loop.plain.moves; });
    EXPECT_THAT(wrong(), ElementsAre(HasSubstr("20 copies of registers")));
    build([](built::LoopModel& loop) { ++loop.plain.wide_integers; });
    EXPECT_THAT(wrong(), ElementsAre(HasSubstr("4 64-bit integer instructions")));
    build([](built::LoopModel& loop) { ++loop.plain.selects; });
    EXPECT_THAT(wrong(), ElementsAre(HasSubstr("18 selections")));
    build([](built::LoopModel& loop) { loop.plain[LoopUnit::vector].cycles = 8192; });
    EXPECT_THAT(wrong(), ElementsAre(HasSubstr("has 500 thousandths"), HasSubstr("has 500 thousandths")));
    build([](built::LoopModel& loop) { loop.plain.wave_cycles = 16384; });
    EXPECT_THAT(wrong(),
                ElementsAre("its plain iteration has 500 thousandths of the time that the matrix unit is "
                            "busy at most beside waits, its budget is at least 800"));
    build([](built::LoopModel& loop) { loop.plain[LoopUnit::vector].instructions = 300; });
    EXPECT_THAT(wrong(), IsEmpty());
}

TEST_F(Budgets, OfAnotherCompilerAreNotJudgedAndThatIsSaid) {
    accept_budgets(manifest_, folder(), "first", "2026-05-17");
    build([](built::LoopModel& loop) { loop.plain.moves = 99; }, "clang version 23.0.0");
    EXPECT_THAT(wrong(), IsEmpty());
    EXPECT_THAT(verdict_.notes,
                ElementsAre(HasSubstr(
                    "the budgets are of clang version 22.1.8, these loops of clang version 23.0.0")));
    EXPECT_EQ(verdict_.not_judged, 1U);
    EXPECT_TRUE(verdict_.said_nothing());
    build();
    EXPECT_THAT(wrong(), IsEmpty());
    EXPECT_EQ(verdict_.judged, 1U);
    EXPECT_FALSE(verdict_.said_nothing());
}

TEST_F(Budgets, AreThoseOfAllTypes) {
    for (const DataType type : {DataType::fp32, DataType::fp8bf16, DataType::fp16}) {
        build([](built::LoopModel&) {}, "c", type);
        EXPECT_THAT(wrong(), ElementsAre(HasSubstr("no budget")));
    }
}

TEST_F(Budgets, AKernelWithoutALoopHasNothingToJudge) {
    manifest_.objects.front().kernels.front().resources->loop.reset();
    EXPECT_THAT(wrong(), IsEmpty());
    EXPECT_EQ(verdict_.judged + verdict_.not_judged, 0U);
}

TEST_F(Budgets, ThatCannotBeReadAreRefused) {
    accept_budgets(manifest_, folder(), "first", "2026-05-17");
    const auto file = folder() / "gfx942.json";
    std::string text = system::read_file(file);
    const auto at = text.find("\"moves\": 19");
    system::write_file(file, text.replace(at, 11, "\"moves\": -1"));
    EXPECT_THAT([&] { wrong(); }, testing::ThrowsMessage<InputError>(HasSubstr(
                                      "gfx942.json.kernels.k: key \"moves\" must be a count of 0 or more")));
    system::write_file(file, "{}");
    EXPECT_THAT([&] { wrong(); }, testing::ThrowsMessage<InputError>(HasSubstr("expected 3 keys, got 0")));
}

} // namespace
} // namespace fmha::generator
