// The rooms of the house and the arrows between them: every `#include "…"` of the project is read and must
// follow an arrow of the table. The reference and the kernels never meet, in either direction.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Room {
    std::string_view folder;
    std::vector<std::string_view> uses;
};

// The longest matching folder decides to which room a file belongs. A room may always use itself.
const std::vector<Room>& rooms() {
    static const std::vector<Room> table{
        {"dispatcher/types", {}},
        {"dispatcher/system", {"dispatcher/types"}},
        {"kernels/arch", {"dispatcher/types", "dispatcher/system"}},
        {"kernels/catalog", {"dispatcher/types", "dispatcher/system", "kernels/arch"}},
        {"dispatcher", {"dispatcher/types", "dispatcher/system", "kernels/arch", "kernels/catalog"}},
        {"dispatcher/c",
         {"dispatcher/types", "dispatcher/system", "dispatcher", "kernels/arch", "kernels/catalog",
          "kernels/loader", "kernels/targets"}},
        {"dispatcher/c_reference",
         {"dispatcher/types", "dispatcher", "dispatcher/c", "kernels/arch", "reference"}},
        {"dispatcher/examples",
         {"dispatcher/types", "dispatcher", "kernels/arch", "kernels/catalog", "kernels/targets"}},
        {"kernels/programs", {"dispatcher/types"}},
        {"kernels/targets", {"dispatcher/types", "dispatcher/system", "kernels/arch", "kernels/programs"}},
        {"kernels/built", {"dispatcher/types", "dispatcher/system"}},
        {"kernels/generator",
         {"dispatcher/types", "dispatcher/system", "kernels/arch", "kernels/built", "kernels/catalog",
          "kernels/targets"}},
        {"kernels/loader",
         {"dispatcher/types", "dispatcher/system", "kernels/built", "kernels/programs", "kernels/targets"}},
        {"reference", {"dispatcher/types", "dispatcher/system"}},
        {"harness/results", {"dispatcher/types", "harness/cases"}},
        {"harness/store", {"dispatcher/types", "harness/results"}},
        {"harness/regression", {"dispatcher/types", "harness/results", "harness/store"}},
        {"harness/cases", {"dispatcher/types", "dispatcher/system"}},
        {"harness",
         {"dispatcher/types", "dispatcher/system", "dispatcher", "kernels/arch", "kernels/catalog",
          "kernels/built", "kernels/loader", "kernels/targets", "reference", "harness/results",
          "harness/cases"}},
        {"harness/bench",
         {"dispatcher/types", "dispatcher/system", "kernels/arch", "kernels/catalog", "kernels/generator",
          "kernels/loader", "kernels/targets", "reference", "harness/results", "harness/cases", "harness"}},
        {"parity",
         {"dispatcher/types", "dispatcher/system", "dispatcher", "kernels/arch", "kernels/catalog",
          "harness/results", "harness/cases"}},
        {"reports", {"dispatcher/types", "harness/results", "harness/regression", "harness/store"}},
        {"harness/cli",
         {"dispatcher/types", "dispatcher/system", "dispatcher", "kernels/arch", "kernels/catalog",
          "kernels/built", "kernels/generator", "kernels/loader", "kernels/targets", "reference",
          "harness/results", "harness/cases", "harness", "harness/bench", "harness/regression",
          "harness/store", "parity", "reports"}},
    };
    return table;
}

const Room* room_of(std::string_view path) {
    const Room* best = nullptr;
    for (const Room& room : rooms())
        if (path.starts_with(room.folder) && path.size() > room.folder.size() &&
            path[room.folder.size()] == '/' && (best == nullptr || room.folder.size() > best->folder.size()))
            best = &room;
    return best;
}

/// A sentence when `path` may not include `included`, both relative to the project's root.
std::optional<std::string> violation(std::string_view path, std::string_view included) {
    const Room* from = room_of(path);
    const Room* to = room_of(included);
    if (to == nullptr) return fmt::format("{} includes \"{}\", which is in no room", path, included);
    if (from == to) return std::nullopt;
    for (const std::string_view allowed : from->uses)
        if (to->folder == allowed) return std::nullopt;
    return fmt::format("{} includes {}: {} may not use {}", path, included, from->folder, to->folder);
}

struct Include {
    std::string path, included;
};

/// The files that sources include in quotes, or with `brackets` those of the system and of libraries.
std::vector<Include> project_includes(bool brackets = false) {
    const fs::path root(FMHA_SOURCE_DIR);
    const std::regex line(brackets ? R"(^\s*#\s*include\s+<([^>]+)>)" : R"(^\s*#\s*include\s+\"([^\"]+)\")");
    std::vector<Include> found;
    std::set<std::string_view> tops;
    for (const Room& room : rooms()) tops.insert(room.folder.substr(0, room.folder.find('/')));
    for (const std::string_view top : tops)
        for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
            const auto extension = entry.path().extension();
            if (extension != ".hpp" && extension != ".cpp" && extension != ".h" && extension != ".c")
                continue;
            std::ifstream file(entry.path());
            const std::string path = fs::relative(entry.path(), root).generic_string();
            std::smatch match;
            for (std::string text; std::getline(file, text);) {
                if (!std::regex_search(text, match, line)) continue;
                // Examples, which people build in folders of their own, include what lies beside them.
                const fs::path beside = fs::path(path).parent_path() / match[1].str();
                const bool own = path.starts_with("dispatcher/examples/") && exists(root / beside);
                found.push_back({path, own ? beside.generic_string() : match[1].str()});
            }
        }
    return found;
}

TEST(Arrows, EveryIncludeFollowsOne) {
    const auto includes = project_includes();
    ASSERT_GT(includes.size(), 50U) << "the sources were not found under " FMHA_SOURCE_DIR;
    std::vector<std::string> broken;
    for (const auto& [path, included] : includes)
        if (const auto sentence = violation(path, included)) broken.push_back(*sentence);
    EXPECT_THAT(broken, testing::IsEmpty());
}

TEST(Arrows, TheReferenceAndTheKernelsNeverMeet) {
    for (const auto& [path, included] : project_includes()) {
        EXPECT_FALSE(path.starts_with("reference/") && included.starts_with("kernels/")) << path;
        EXPECT_FALSE(path.starts_with("kernels/") && included.starts_with("reference/")) << path;
    }
}

/// Whether a file belongs to a family: its tensors, its gates, itself.
bool of_one_family(std::string_view path) {
    static const std::set<std::string_view> of_all{
        "harness/families/family.hpp",     "harness/families/given_inputs.hpp", "harness/gates/axis.hpp",
        "harness/gates/bounded.hpp",       "harness/gates/findings.hpp",        "harness/gates/judge.hpp",
        "harness/gates/outputs.hpp",       "harness/gates/pattern.hpp",         "harness/data/geometry.hpp",
        "harness/data/guarded_tensor.hpp", "harness/data/random.hpp",           "harness/data/storage.hpp",
        "harness/data/tensor_set.hpp"};
    return (path.starts_with("harness/families/") || path.starts_with("harness/gates/") ||
            path.starts_with("harness/data/")) &&
           !of_all.contains(path);
}

// Running, exchanging and reporting cases is written once: a family adds its own files and its line in family_of.cpp.
TEST(Arrows, NothingOutsideTheFamiliesKnowsOne) {
    std::vector<std::string> broken;
    std::size_t seen = 0;
    for (const auto& [path, included] : project_includes())
        if (path.starts_with("harness/run/") || path.starts_with("harness/npy/") ||
            path.starts_with("harness/cli/") || path.starts_with("reports/")) {
            ++seen;
            if (of_one_family(included)) broken.push_back(fmt::format("{} includes {}", path, included));
        }
    EXPECT_GT(seen, 50U);
    EXPECT_THAT(broken, testing::IsEmpty());
    EXPECT_TRUE(of_one_family("harness/gates/attention_gates.hpp"));
    EXPECT_TRUE(of_one_family("harness/families/all_families.hpp"));
}

/// The comparison with a family by its name that a line holds, if it does: `family == KernelFamily::fwd`, `case ApiFamily::bwd:`,
/// `is_one_of(s.family, …)`, `same_as<Args, FwdArgs>`; and `using enum`, behind which a family's name no longer shows that it is one.
std::optional<std::string> family_comparison(const std::string& line) {
    static const std::string member =
        "(?:fwd|fwd_pagedkv|fwd_splitkv|fwd_splitkv_combine|fwd_appendkv|batch_prefill|"
        "bwd|bwd_dot_do_o|bwd_dq_dk_dv|bwd_convert_dq)";
    static const std::string one =
        R"~((?:(?:\w+::)*(?:Api|Kernel)Family::\w+|)~" + member + R"~((?![\w(])))~";
    static const std::regex pattern(
        R"~([=!]=\s*)~" + one + R"~(|(?:^|[\s(!]))~" + one + R"~(\s*[=!]=|\bcase\s+)~" + one +
        R"~(\s*:|\bis_one_of\(\s*[\w.]*(?:family|stage|api)\b)~" +
        R"~(|\b(?:same_as|is_same_v)<.*\b(?:Fwd|SplitKv|PagedKv|AppendKv|)~" +
        R"~(BatchPrefill|Bwd)Args\b|\busing enum (?:\w+::)*(?:Api|Kernel)Family\b)~");
    // Most lines have none of these, and the expression is slow.
    static const std::vector<std::string_view> signs{"==",         "!=",    "case ",
                                                     "is_one_of(", "same_", "using enum "};
    if (std::none_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return line.find(sign) != std::string::npos; }))
        return std::nullopt;
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return std::nullopt;
    return match.str();
}

/// Why a file may compare with a family by its name; nullopt where it may not.
std::optional<std::string_view> home_of_comparisons(std::string_view path) {
    static const std::vector<std::pair<std::string_view, std::string_view>> homes{
        {"dispatcher/c/arguments.cpp", "the only list of the C structures"},
        {"dispatcher/upstream/", "upstream's chains of conditions, one a family"},
        {"kernels/catalog/", "the lists of kernels, which every rule set makes family by family"},
        {"kernels/targets/with_program.hpp", "the switch over all programs, made of the table"},
        {"parity/side_by_side/checkout/", "calls of upstream's functions, one a family"}};
    if (of_one_family(path)) return "a family's own files";
    for (const auto& [place, why] : homes)
        if (path.starts_with(place)) return why;
    return std::nullopt;
}

/// Calls `visit(path, number, text)` for the lines of the rooms. A line that ends in an operator has its continuation behind it.
template <class Visit>
void each_line(Visit&& visit) {
    for (const std::string_view top : {"dispatcher", "harness", "kernels", "parity", "reference", "reports"})
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(FMHA_SOURCE_DIR) / top)) {
            const auto extension = entry.path().extension();
            if (extension != ".hpp" && extension != ".cpp") continue;
            std::ifstream file(entry.path());
            const std::string path = fs::relative(entry.path(), FMHA_SOURCE_DIR).generic_string();
            std::size_t number = 0;
            for (std::string text, next; std::getline(file, text);) {
                const std::size_t first = ++number;
                while ((text.ends_with("==") || text.ends_with("!=")) && std::getline(file, next)) {
                    ++number;
                    text += next;
                }
                visit(path, first, text);
            }
        }
}

// A new family adds its own files and its rows in dispatcher/types/family_table.hpp; nothing else asks which family it is.
TEST(Families, AreComparedInTheirHomesOnly) {
    std::vector<std::string> broken;
    std::set<std::string_view> used;
    each_line([&](const std::string& path, std::size_t number, const std::string& text) {
        const auto found = family_comparison(text);
        if (!found) return;
        if (const auto why = home_of_comparisons(path))
            used.insert(*why);
        else
            broken.push_back(fmt::format("{}:{}: \"{}\": ask traits_of(family)", path, number, *found));
    });
    EXPECT_THAT(broken, testing::IsEmpty());
    EXPECT_EQ(used.size(), 6U) << "a home without a comparison is to leave the list";
}

TEST(Families, AComparisonIsSeen) {
    for (const char* line :
         {"if (c.family == ApiFamily::fwd_appendkv) return;",
          "    case KernelFamily::bwd_convert_dq:", "return stage != fmha::KernelFamily::fwd;",
          "if (s.family==fwd_splitkv && s.has_lse)", "if (ApiFamily::bwd == c.family)",
          "        case batch_prefill:", "is_one_of(s.family, fwd, fwd_pagedkv)",
          "keep(api ==     ApiFamily::fwd)", "if constexpr (std::same_as<Args, BatchPrefillArgs>)",
          "return std::is_same_v<Args, FwdArgs> && c.lse;", "using enum fmha::KernelFamily;"})
        EXPECT_NE(family_comparison(line), std::nullopt) << line;
    for (const char* line :
         {"if (*options.family != family) continue;", "append.api_family = ApiFamily::fwd_appendkv;",
          "struct Program<KernelFamily::fwd> {", "if (stage != main_stage(problem.api_family))",
          "{ApiFamily::bwd, \"backward_tests\"},", "is_one_of(s.qscale, QScale::mx)",
          "config.pipeline == Pipeline::bwd", "if (count == fwd_rows)",
          "if constexpr (std::same_as<T, bool>)", "using enum Pipeline;", "if (found == forward.end())"})
        EXPECT_EQ(family_comparison(line), std::nullopt) << line;
    EXPECT_EQ(home_of_comparisons("harness/run/candidate.cpp"), std::nullopt);
    EXPECT_EQ(home_of_comparisons("harness/cases/check_form.cpp"), std::nullopt);
    EXPECT_EQ(home_of_comparisons("harness/data/geometry.hpp"), std::nullopt);
    EXPECT_NE(home_of_comparisons("harness/families/bwd_family.cpp"), std::nullopt);
}

/// Headers that cost every source seconds of compile time, and the only places that may include them.
TEST(Arrows, CostlyHeadersStayWhereTheyAre) {
    const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> costly{
        {"nlohmann/json.hpp", {"dispatcher/types/json.cpp", "kernels/arch/schema.cpp"}},
        {"valijson/", {"kernels/arch/schema.cpp"}},
        {"CLI/", {"harness/cli/application.cpp", "harness/cli/options.cpp"}},
        {"yaml-cpp/", {"harness/cases/"}},
        {"regex", {}}};
    std::vector<std::string> broken;
    std::set<std::string_view> seen;
    for (const auto& [path, included] : project_includes(true))
        for (const auto& [header, places] : costly) {
            if (!included.starts_with(header)) continue;
            seen.insert(header);
            const auto holds = [&path = path](std::string_view place) { return path.starts_with(place); };
            if (std::none_of(places.begin(), places.end(), holds))
                broken.push_back(fmt::format("{} includes <{}>", path, included));
        }
    EXPECT_THAT(broken, testing::IsEmpty());
    EXPECT_EQ(seen.size(), costly.size() - 1)
        << "a header of the list is included nowhere; <regex> is not to be";
}

TEST(Arrows, AWrongArrowIsNamed) {
    EXPECT_EQ(
        violation("reference/mask.cpp", "kernels/programs/mask.hpp"),
        "reference/mask.cpp includes kernels/programs/mask.hpp: reference may not use kernels/programs");
    EXPECT_EQ(
        violation("dispatcher/types/problem.cpp", "dispatcher/plan.hpp"),
        "dispatcher/types/problem.cpp includes dispatcher/plan.hpp: dispatcher/types may not use dispatcher");
    EXPECT_EQ(violation("reports/html.cpp", "harness/run/runner.hpp"),
              "reports/html.cpp includes harness/run/runner.hpp: reports may not use harness");
    EXPECT_NE(violation("harness/run/runner.cpp", "helpers.hpp"), std::nullopt);
    EXPECT_EQ(violation("harness/run/runner.cpp", "reference/forward.hpp"), std::nullopt);
}

} // namespace
