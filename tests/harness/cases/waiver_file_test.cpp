// A waiver file is read as it stands, and every way to get one wrong ends in a sentence with file, line, key, value and what is allowed.

#include "harness/cases/waiver.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/support/sentence_of.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace fmha::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<std::string> archs{"gfx942", "gfx950"}, targets{"host", "hip"};

std::vector<Waiver> read(const std::string& text) {
    return read_waivers(text, "known.yaml", archs, targets);
}

std::string refusal(const std::string& text) {
    return fmha::test::sentence_of<InputError>([&] { read(text); });
}

/// A whole entry, on the first line, whose member `key` has another value, or none.
std::string entry_with(const std::string& key, const std::string& value, bool there = true) {
    std::map<std::string, std::string> members{{"cases", "fwd/masks"}, {"arch", "all"},
                                               {"target", "[host]"},   {"expect", "failed"},
                                               {"tracker", "17"},      {"reason", "a reason"}};
    members[key] = value;
    if (!there) members.erase(key);
    std::string text;
    for (const auto& [name, member] : members)
        text += fmt::format("{}{}: {}\n", text.empty() ? "- " : "  ", name, member);
    return text;
}

/// Behind "known.yaml: line N: ".
std::string complaint(const std::string& key, const std::string& value) {
    const std::string said = refusal(entry_with(key, value));
    const auto line = said.find(": line ");
    return line == std::string::npos ? said : said.substr(said.find(": ", line + 2) + 2);
}

TEST(WaiverFile, IsReadAsItStands) {
    const auto waivers =
        read("# known to be bad\n"
             "- cases: fwd/masks[*mask=t*]\n"
             "  arch: gfx950\n"
             "  target: [hip, host]\n"
             "  kernel: \"*_qr_async_*\"\n"
             "  expect: timed_out\n"
             "  tracker: \"#1234\"\n"
             "  reason: >\n"
             "    The last tile\n"
             "    waits for ever.\n"
             "  expires: 2028-02-29\n"
             "\n"
             "- {cases: bwd, arch: all, target: all, expect: crashed, tracker: 7, reason: r}\n");
    ASSERT_EQ(waivers.size(), 2U);
    const Waiver& first = waivers[0];
    EXPECT_EQ(first.place, "known.yaml: line 2");
    EXPECT_EQ(first.cases, "fwd/masks[*mask=t*]");
    EXPECT_THAT(first.archs, ElementsAre("gfx950"));
    EXPECT_THAT(first.targets, ElementsAre("hip", "host"));
    EXPECT_EQ(first.kernel, "*_qr_async_*");
    EXPECT_EQ(first.expect, KnownEnd::timed_out);
    EXPECT_EQ(first.tracker, "#1234");
    EXPECT_EQ(first.reason, "The last tile waits for ever.");
    EXPECT_EQ(first.expires, "2028-02-29");
    EXPECT_EQ(waivers[1].place, "known.yaml: line 13");
    EXPECT_THAT(waivers[1].archs, IsEmpty());
    EXPECT_THAT(waivers[1].targets, IsEmpty());
    EXPECT_EQ(waivers[1].expect, KnownEnd::crashed);
}

// The last entry of a ledger is deleted one day, and its comments stay.
TEST(WaiverFile, MayHaveNoEntries) {
    for (const char* text : {"", "# none at present\n", "[]"}) EXPECT_THAT(read(text), IsEmpty()) << text;
}

TEST(WaiverFile, NamesAMissingKey) {
    EXPECT_EQ(refusal(entry_with("cases", "fwd/masks")), "accepted") << "the other entries are like it";
    for (const char* key : {"cases", "arch", "target", "expect", "tracker", "reason"})
        EXPECT_THAT(refusal(entry_with(key, "", /*there=*/false)),
                    StartsWith(fmt::format("known.yaml: line 1: {} is missing; expected ", key)));
}

TEST(WaiverFile, TakesNoTrackerThatNobodyCanLookUp) {
    const std::string allowed =
        "is not allowed; expected a number, as in 1234, \"#1234\" or SWDEV-1234, or an "
        "address that begins with https://";
    for (const char* good : {"1234", "\"#12\"", "SWDEV-1234", "owner/repo#5", "group/repo!5",
                             "https://host/issues/1", "http://host/x"})
        EXPECT_EQ(refusal(entry_with("tracker", good)), "accepted") << good;
    for (const char* bad :
         {"TODO", "none", "0", "\"#0\"", "SWDEV-", "\"17 or so\"", "v17", "https://", "\"1\\u0007\""})
        EXPECT_THAT(complaint("tracker", bad), HasSubstr(allowed)) << bad;
    EXPECT_EQ(complaint("tracker", "\"\""), "tracker: \"\" " + allowed);
    EXPECT_EQ(complaint("tracker", "[1, 2]"), "tracker: a nested value " + allowed);
    // What stands behind "#" is a comment.
    EXPECT_EQ(complaint("tracker", "#1234"), "tracker: no value " + allowed);
    EXPECT_EQ(complaint("tracker", "~"), "tracker: no value " + allowed);
}

TEST(WaiverFile, NamesAValueThatIsNotAllowed) {
    for (const char* key : {"cases", "kernel", "reason"}) {
        for (const char* value : {"\"\"", "\"  \""})
            EXPECT_THAT(complaint(key, value),
                        StartsWith(fmt::format("{}: {} is not allowed; expected ", key, value)));
        EXPECT_THAT(complaint(key, "{a: b}"),
                    StartsWith(fmt::format("{}: a nested value is not allowed", key)));
    }
    EXPECT_EQ(complaint("expect", "mistrusted"),
              "expect: \"mistrusted\" is not allowed; expected failed, crashed or timed_out");
    EXPECT_EQ(complaint("arch", "gfx95"), "arch: \"gfx95\" is not allowed; expected all, or one or a list of "
                                          "gfx942, gfx950; did you mean gfx950?");
    EXPECT_THAT(complaint("arch", "[gfx950, gfx9]"), StartsWith("arch: \"gfx9\" is not allowed"));
    EXPECT_THAT(complaint("arch", "[all]"), StartsWith("arch: \"all\" is not allowed"));
    EXPECT_THAT(complaint("arch", "[[gfx950]]"), StartsWith("arch: \"\" is not allowed"));
    EXPECT_THAT(complaint("arch", "[]"), StartsWith("arch: a nested value is not allowed"));
    EXPECT_THAT(complaint("arch", ""), StartsWith("arch: no value is not allowed"));
    EXPECT_EQ(complaint("target", "gpu"),
              "target: \"gpu\" is not allowed; expected all, or one or a list of host, hip");
    for (const char* day :
         {"soon", "2027-02-29", "2027-13-01", "2027-1-01", "01-02-2027", "2027-01-01T00", "+027-01-01"})
        EXPECT_EQ(complaint("expires", day),
                  fmt::format("expires: \"{}\" is not allowed; expected a day, as in 2027-01-31", day));
}

TEST(WaiverFile, NamesALineThatIsNoEntry) {
    EXPECT_EQ(refusal(entry_with("trakcer", "1")), "known.yaml: line 7: \"trakcer\" is no key of an entry; "
                                                   "allowed: cases, arch, target, kernel, expect, "
                                                   "tracker, reason, expires; did you mean tracker?");
    EXPECT_EQ(refusal(entry_with("cases", "fwd/masks\n  cases: bwd")),
              "known.yaml: line 3: cases stands twice");
    EXPECT_THAT(refusal(entry_with("[cases]", "1")), HasSubstr("\"\" is no key of an entry"));
    EXPECT_THAT(refusal("- fwd/masks\n- bwd/masks\n"),
                StartsWith("known.yaml: line 1: expected an entry of cases, "));
    EXPECT_EQ(refusal("waivers: []"), "known.yaml: expected a list of entries");
    EXPECT_EQ(refusal("fwd/masks"), "known.yaml: expected a list of entries");
    EXPECT_EQ(refusal(entry_with("cases", "a") + "---\n[]\n"),
              "known.yaml: has more than one document; allowed: one");
    EXPECT_THAT(refusal("- cases: [fwd"), StartsWith("known.yaml: not valid YAML: "));
    EXPECT_EQ(refusal(entry_with("reason", "na\xEFve")), "known.yaml: line 4: is not UTF-8");
    EXPECT_EQ(refusal("# Gr\xC3\xBC\xC3\x9F\x65\n# \xFC"), "known.yaml: line 2: is not UTF-8");
}

} // namespace
} // namespace fmha::harness
