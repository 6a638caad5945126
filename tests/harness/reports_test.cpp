// Reports hold what the run held, and hostile text stays text.

#include "reports/report.hpp"

#include <gmock/gmock.h>

#include <regex>

namespace fmha::reports {
namespace {

using harness::CaseResult;
using harness::Outcome;
using testing::HasSubstr;
using testing::Not;

CaseResult result(const char* name, Outcome outcome) {
    CaseResult r;
    r.name = name;
    r.family = "fwd";
    r.tier = "smoke";
    r.labels = {"mask"};
    r.kernel = "k<1>";
    r.outcome = outcome;
    r.message = "a \"quoted\" & <b>bold</b> claim\x01";
    r.reproduce = "fmha verify 'x'";
    return r;
}

Report report() {
    Report r;
    r.info.started = "2026-01-02T03:04:05Z";
    for (const auto& entry : EnumTable<Outcome>::names) {
        r.results.push_back(result(entry.name.data(), entry.value));
        if (entry.value == Outcome::not_run)
            r.results.back().not_run_reason = harness::NotRunReason::no_memory;
    }
    r.results.front().message.clear();
    for (const auto& one : r.results) r.ledger.add(one);
    return r;
}

std::size_t count(const std::string& text, const std::string& piece) {
    std::size_t n = 0;
    for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
    return n;
}

TEST(Junit, MapsEveryOutcome) {
    const std::string xml = junit(report());
    EXPECT_THAT(xml, HasSubstr("tests=\"9\" failures=\"3\" errors=\"2\" skipped=\"2\""));
    EXPECT_EQ(count(xml, "<testcase "), 9U);
    EXPECT_EQ(count(xml, "<failure "), 3U);
    EXPECT_EQ(count(xml, "<error "), 2U);
    EXPECT_THAT(xml, HasSubstr("<skipped message=\"no_memory: "));
    EXPECT_THAT(xml, Not(HasSubstr("<b>")));
    EXPECT_THAT(xml, Not(HasSubstr("\x01")));
    EXPECT_EQ(count(xml, "<testcase "), count(xml, "</testcase>"));
}

TEST(Html, IsOneSelfContainedPage) {
    const std::string page = html(report());
    for (const char* outside : {"http:", "https:", "src=", "href=", "@import", "url("})
        EXPECT_THAT(page, Not(HasSubstr(outside)));
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(page, Not(HasSubstr("<b>bold")));
    // Four of nine are green, for the label and for all.
    EXPECT_EQ(count(page, ">4/9</td>"), 2U);
    for (const char* tag : {"table", "tr", "td", "th", "pre", "div"})
        EXPECT_EQ(count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " "),
                  count(page, std::string("</") + tag + ">"))
            << tag;
}

TEST(Html, CarriesSectionsOfOtherAuditsAsTheyAre) {
    Report with = report();
    with.sections = {"<section><h2>golden audit</h2></section>"};
    EXPECT_EQ(count(html(with), with.sections.front()), 1U);
    EXPECT_EQ(count(html(report()), "<section>"), 0U);
}

TEST(Text, FailuresNameGateWorstPatternAndCommand) {
    CaseResult failed = result("fwd/x@1", Outcome::failed);
    failed.gates = {{"G1", "o", false, true, 31.4, "first at b0 h3 row 128"},
                    {"G3", "lse", true, true, 0.2, ""}};
    failed.worst = {{"o", 0, 3, 128, 5, 1.0, 2.0, 0.1}};
    failed.pattern = "only the last query row (query tail)";
    const std::string text = failure_text(failed);
    for (const char* part :
         {"FAILED fwd/x@1", "G1:o=31.4!", "G3:lse=0.2 ", "query tail", "repeat   fmha verify 'x'", " 128 "})
        EXPECT_THAT(text, HasSubstr(part));
}

} // namespace
} // namespace fmha::reports
