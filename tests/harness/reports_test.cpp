// Reports hold the whole run, and hostile text stays text.

#include "dispatcher/types/markup.hpp"
#include "reports/pictures.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <regex>

namespace fmha::reports {
namespace {

using harness::CaseResult;
using harness::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CaseResult result(const std::string& name, Outcome outcome) {
    CaseResult r;
    r.name = name;
    r.family = ApiFamily::fwd;
    r.tier = harness::Tier::smoke;
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
        r.results.push_back(result(std::string(entry.name), entry.value));
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
    EXPECT_THAT(xml, HasSubstr("tests=\"11\" failures=\"4\" errors=\"2\" skipped=\"3\""));
    // The one more is the run's, whose budget has no result that is not run.
    EXPECT_EQ(count(xml, "<testcase "), 12U);
    EXPECT_EQ(count(xml, "<failure "), 5U);
    EXPECT_EQ(count(xml, "<error "), 2U);
    EXPECT_THAT(xml, HasSubstr("<skipped message=\"no_memory: "));
    EXPECT_THAT(xml, Not(HasSubstr("<b>")));
    EXPECT_THAT(xml, Not(HasSubstr("\x01")));
    EXPECT_EQ(count(xml, "<testcase "), count(xml, "</testcase>"));
}

TEST(Junit, IsRedWhereARunIsRedAndNoResultIs) {
    Report run;
    run.results = {result("fwd/x@1", Outcome::passed)};
    run.ledger.add(run.results.front());
    EXPECT_THAT(junit(run), Not(HasSubstr("<failure")));
    run.ledger.object("shard 2 of 3 is missing");
    EXPECT_THAT(
        junit(run),
        HasSubstr("name=\"verdict\" time=\"0\"><failure type=\"red\" message=\"shard 2 of 3 is missing\">"));
    run.ledger.object("known.yaml: line 3: the entry has expired");
    EXPECT_THAT(junit(run),
                HasSubstr("message=\"shard 2 of 3 is missing; known.yaml: line 3: the entry has expired\">"));
    EXPECT_THAT(junit(Report()), HasSubstr("message=\"nothing was executed\""));
}

// One byte that is no UTF-8, of a path or a message, would cost a CI system the whole file.
TEST(Junit, HoldsOnlyWhatXmlHolds) {
    EXPECT_EQ(escaped("a°€\xf0\x9f\x98\x80\tb\n"), "a°€\xf0\x9f\x98\x80\tb\n");
    // Cut short, too long for its character, half of a pair, beyond the last character, none, a lone continuation.
    for (const char* bad :
         {"\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xef\xbf\xbf", "\x80", "\xff"})
        EXPECT_EQ(escaped(std::string(bad) + "z"), std::string(std::string_view(bad).size(), '?') + "z");
    Report r = report();
    r.results.front().name = r.results.back().message = "\xff";
    EXPECT_EQ(junit(r).find('\xff'), std::string::npos);
    EXPECT_EQ(html(r).find('\xff'), std::string::npos);
}

TEST(Html, IsOneSelfContainedPage) {
    const std::string page = html(report());
    for (const char* outside : {"http:", "https:", "src=", "href=", "@import", "url("})
        EXPECT_THAT(page, Not(HasSubstr(outside)));
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(page, Not(HasSubstr("<b>bold")));
    // Four of eleven are green, for the label and for all; a failure that is known is not among them.
    EXPECT_EQ(count(page, ">4/11</td>"), 2U);
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

TEST(Html, GathersRedResultsOfOneKind) {
    Report with;
    for (const char* name : {"fwd/x@1", "fwd/x@2", "fwd/x@3", "fwd/y@1"}) {
        with.results.push_back(result(name, Outcome::failed));
        with.results.back().gates = {{"G3", "lse", true, true, 0.2, ""}, {"G1", "o", false, true, 31.4, ""}};
    }
    with.results.back().kernel = "another";
    with.results.push_back(result("fwd/z@1", Outcome::passed));
    const std::string page = html(with);
    EXPECT_THAT(page, HasSubstr("<td class=\"n\">3</td><td>G1 o</td><td class=\"name\">k&lt;1&gt;</td><td "
                                "class=\"name\">fwd/x@1</td>"));
    EXPECT_THAT(page, HasSubstr("<td class=\"n\">1</td><td>G1 o</td><td class=\"name\">another</td>"));
    // Where nothing is red twice, the results themselves say it.
    with.results.erase(with.results.begin(), with.results.begin() + 2);
    EXPECT_THAT(html(with), Not(HasSubstr("By first gate and kernel")));
}

harness::ErrorMap map() {
    harness::ErrorMap m;
    m.tensor = "o";
    m.h = 3;
    m.row_axis = "query";
    m.column_axis = "channel";
    m.rows = 130;
    m.columns = 96;
    m.block_rows = 4;
    m.block_columns = 2;
    m.tile_rows = 64;
    m.wrong.assign(33 * 48, 0);
    m.wrong[0] = 8;            // all of the first block
    m.wrong[32 * 48 + 47] = 1; // one of the four elements of the last one, which is half as high
    return m;
}

TEST(ErrorMap, ShowsBlocksAndTheGridOfTiles) {
    const std::string svg = error_map_svg(map());
    EXPECT_THAT(
        svg,
        HasSubstr(
            "o of entry 0, head 3: 9 of 12480 elements wrong (130 rows × 96 channels); tiles of 64 × all"));
    EXPECT_EQ(count(svg, "class=\"wrong\""), 2U);
    EXPECT_THAT(svg, HasSubstr("x=\"0.0\" y=\"0.0\" width=\"10.0\" height=\"14.5\" opacity=\"1.00\""));
    EXPECT_THAT(svg, HasSubstr("x=\"470.0\" y=\"465.5\" width=\"10.0\" height=\"14.5\" opacity=\"0.47\""));
    // Tiles end at rows 64 and 128, which are blocks 16 and 32.
    EXPECT_EQ(count(svg, "<line "), 2U);
    EXPECT_THAT(svg, HasSubstr("y1=\"232.7\""));
    EXPECT_THAT(svg, HasSubstr("y1=\"465.5\""));
}

TEST(ErrorMap, IsAFewLinesOfText) {
    const std::string text = error_map_text(map());
    EXPECT_EQ(count(text, "\n"), 12U); // 33 rows of blocks, three a line
    EXPECT_THAT(text, HasSubstr("         0 █·"));
    EXPECT_THAT(text, HasSubstr("·▒\n"));
    harness::ErrorMap statistic = map();
    statistic.column_axis.clear();
    statistic.columns = statistic.block_columns = 1;
    statistic.wrong.assign(33, 0);
    EXPECT_THAT(error_map_text(statistic), HasSubstr("(130 rows); tiles of 64 rows"));
}

TEST(ErrorMap, LaysANumberOfEachRowDownAsOneLine) {
    harness::ErrorMap statistic = map();
    statistic.column_axis.clear();
    statistic.columns = statistic.block_columns = 1;
    statistic.wrong.assign(33, 0);
    statistic.wrong[32] = 2; // both rows of the last block
    const std::string svg = error_map_svg(statistic);
    EXPECT_THAT(svg, HasSubstr("viewBox=\"-1 -1 482.0 26.0\""));
    EXPECT_THAT(svg, HasSubstr("x=\"465.5\" y=\"0.0\" width=\"14.5\" height=\"24.0\" opacity=\"1.00\""));
    EXPECT_THAT(svg, HasSubstr("<line class=\"tile\" x1=\"232.7\" x2=\"232.7\" y1=\"0\" y2=\"24.0\"/>"));
    const std::string text = error_map_text(statistic);
    EXPECT_EQ(count(text, "\n"), 2U);
    EXPECT_TRUE(text.ends_with("·█\n")) << text;
}

/// A run with `red` results of forward and one of backward at its end, each with a map.
Report red_run(std::size_t red) {
    Report with;
    for (std::size_t n = 0; n <= red; ++n) {
        auto& one = with.results.emplace_back(result(fmt::format("x{}@1", n), Outcome::failed));
        one.family = n < red ? ApiFamily::fwd : ApiFamily::bwd;
        one.gates = {{"G1", "o", false, true, 31.4, ""}};
        one.message = fmt::format("why {}", n);
        one.worst = {{"o", 0, 3, 128, 5, 1.0, 2.0, 0.1}};
        one.maps = {map()};
    }
    return with;
}

TEST(Html, OpensTheFirstRedResultOfEachFamilyAndDrawsEachFamilysMaps) {
    const std::string page = html(red_run(60));
    EXPECT_EQ(count(page, "<details>"), 59U);
    EXPECT_EQ(count(page, "<details open>"), 2U);
    EXPECT_EQ(count(page, "<details open><summary><span class=\"failed\">G1 o</span> x60@1</summary>"), 1U);
    EXPECT_EQ(count(page, "<svg "), 51U);
    EXPECT_THAT(page, HasSubstr("Of fwd the first 50 of 60 maps of wrong elements are drawn."));
    EXPECT_THAT(page, Not(HasSubstr("Of bwd")));
}

TEST(Text, OfManyFailuresThatAreAlikeAFewAreToldAtLength) {
    const std::string text = failures_text(red_run(6).results);
    EXPECT_EQ(count(text, "  worst  "), 4U); // three of forward and the one of backward
    for (int n = 0; n <= 6; ++n)
        EXPECT_THAT(
            text, AllOf(HasSubstr(fmt::format("FAILED x{}@1\n", n)), HasSubstr(fmt::format("why {}\n", n))));
    EXPECT_THAT(text, HasSubstr("Red by first gate and kernel, most results first:\n     7  G1 o      k<1>\n"
                                "                  x0@1\n"));
    auto without = red_run(6).results;
    for (auto& one : without) one.kernel.clear();
    EXPECT_THAT(failures_text(without), HasSubstr("     7  G1 o      no kernel\n"));
    EXPECT_EQ(failures_text({}), "");
}

TEST(Html, SaysNoMarginWhereNoGateHasJudged) {
    const auto row = [](std::vector<harness::GateVerdict> gates) {
        Report one;
        one.results = {result("fwd/x@1", Outcome::failed)};
        one.results.front().gates = std::move(gates);
        const std::string page = html(one);
        return page.substr(page.find("<h2>All results"));
    };
    EXPECT_THAT(row({}), HasSubstr("failed</td><td class=\"n\">-</td>"));
    EXPECT_THAT(row({{.gate = "G4", .required = false, .ratio = 0.1}}),
                HasSubstr("failed</td><td class=\"n\">-</td>"));
    EXPECT_THAT(row({{.gate = "G5.5"}}), HasSubstr("failed</td><td class=\"n\">0.00</td>"));
}

TEST(Html, ShowsMapsMarginsKernelsAndTheSlowest) {
    Report with = report();
    for (auto& one : with.results) {
        one.maps = {map()};
        one.tiles = {{KernelFamily::fwd, 64, 128}, {KernelFamily::fwd_splitkv_combine, 32, 0}};
        one.kernel = "k<1> + k<2>";
        one.seconds = 1.5;
        one.gates = {{.gate = "G1", .tensor = "o", .ratio = 0.55},
                     {.gate = "G4", .required = false, .ratio = 0.1}};
    }
    with.results.back().gates.front().ratio = 7.0;
    with.listed = {{{KernelFamily::fwd_splitkv_combine, 32, 0}, 12},
                   {{KernelFamily::fwd_appendkv, 64, 0}, 99}};
    const std::string page = html(with);
    EXPECT_EQ(count(page, "<svg "), 6U); // of eleven results five are green
    EXPECT_THAT(page, HasSubstr("<td>fwd</td><td>G1</td><td>o</td>"));
    EXPECT_THAT(page, HasSubstr("style=\"--share:100%\">10</td>"));
    EXPECT_THAT(page, HasSubstr("bar beyond\" style=\"--share:10%\">1</td>"));
    EXPECT_THAT(page, Not(HasSubstr("<td>G4</td>")));
    EXPECT_THAT(page, HasSubstr("<td>fwd_splitkv_combine</td><td class=\"n\">32</td><td class=\"n\">1</td>"
                                "<td class=\"n\">12</td><td class=\"n\">11</td>"));
    // None of these ran.
    EXPECT_THAT(page, HasSubstr("<td>fwd_appendkv</td><td class=\"n\">64</td><td class=\"n\">0</td>"
                                "<td class=\"n\">99</td><td class=\"n\">0</td>"));
    EXPECT_THAT(page, HasSubstr("<h2>Slowest</h2>"));
    EXPECT_THAT(page, Not(HasSubstr("k<1>")));
}

// On a phone a page's text is wrapped, which leaves nothing of tables and pictures made of characters.
TEST(Html, ShowsNumbersOfAFailureAsATable) {
    Report with = report();
    with.results.front().outcome = Outcome::failed;
    with.results.front().worst = {{"o", 0, 3, 128, 5, 1.0, 2.0, 0.1}};
    with.results.front().maps = {map()};
    const std::string page = html(with);
    EXPECT_THAT(page,
                HasSubstr("<td>o</td><td class=\"n\">0</td><td class=\"n\">3</td><td class=\"n\">128</td>"));
    EXPECT_THAT(page, Not(HasSubstr("  worst  ")));
    EXPECT_THAT(page, Not(HasSubstr("  map  ")));
    EXPECT_THAT(failure_text(with.results.front()), HasSubstr("  worst  "));
}

TEST(Html, LeavesOutWhatNobodyKnows) {
    Report with = report();
    with.info.machine = "";
    with.info.compiler = "gcc";
    EXPECT_THAT(html(with),
                AllOf(Not(HasSubstr("<th>machine</th>")), HasSubstr("<th>compiler</th><td>gcc</td>")));
}

TEST(Text, AFailureShowsItsMapAndItsSmallerCase) {
    CaseResult failed = result("fwd/x@1", Outcome::failed);
    failed.worst = {{"o", 0, 3, 128, 5, 1.0, 2.0, 0.1}};
    failed.maps = {map()};
    failed.smaller = "SMALLER fwd/plain@1\n";
    const std::string text = failure_text(failed);
    EXPECT_THAT(text, HasSubstr("  map      o of entry 0, head 3"));
    EXPECT_TRUE(text.ends_with("SMALLER fwd/plain@1\n"));
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
