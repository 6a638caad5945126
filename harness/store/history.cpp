#include "harness/store/history.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/visible_text.hpp"
#include "harness/results/case_seed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace fmha::store {
namespace {

/// A case or a kernel.
struct Subject {
    std::vector<std::int64_t> words; ///< of the store: names of a case with different seeds, or one
    std::string name;

    std::string list() const { return fmt::format("({})", fmt::join(words, ", ")); }
};

/// One subject for the seeds of a case, which the gate compares as one case too.
std::vector<Subject> joined(std::vector<Subject> found) {
    std::map<std::string, Subject> cases;
    for (Subject& subject : found) {
        const auto [at, is_new] = cases.try_emplace(harness::without_seed(subject.name), subject);
        if (is_new) continue;
        at->second.name = at->first;
        at->second.words.push_back(subject.words.front());
    }
    std::vector<Subject> subjects;
    for (auto& [name, subject] : cases) subjects.push_back(std::move(subject));
    return subjects;
}

std::vector<Subject> subjects_where(const Database& database, const std::string& condition,
                                    const std::string& value) {
    auto rows = database.prepare(fmt::format(
        "SELECT id, text FROM word WHERE {} AND text != '' AND (EXISTS (SELECT 1 FROM result WHERE name = "
        "id) "
        "OR EXISTS (SELECT 1 FROM result WHERE kernel = id) OR EXISTS (SELECT 1 FROM time WHERE name = id) "
        "OR EXISTS (SELECT 1 FROM time WHERE kernel = id) OR EXISTS (SELECT 1 FROM resource WHERE kernel = "
        "id)) "
        "ORDER BY text",
        condition));
    rows.with(value);
    std::vector<Subject> found;
    while (rows.step()) found.push_back({{rows.integer(0)}, rows.text(1)});
    return found;
}

std::vector<Subject> subjects_of(const Store& store, const std::string& text) {
    const Database& database = store.database();
    auto found = subjects_where(database, "text = ?1", text);
    // A name without its seed stands for all seeds.
    if (found.empty())
        found = joined(subjects_where(database, "substr(text, 1, length(?1) + 1) = ?1 || '@'", text));
    if (found.empty()) found = joined(subjects_where(database, "instr(text, ?1) > 0", text));
    if (found.empty())
        throw InputError(fmt::format(
            "{}: no case and no kernel has \"{}\" in its name; allowed: names as reports print them, or "
            "parts of them",
            database.file().string(), text));
    if (found.size() > most_subjects)
        throw InputError(fmt::format("{}: more than {} names contain \"{}\", the first are {} and {}",
                                     database.file().string(), most_subjects, text, found[0].name,
                                     found[1].name));
    return found;
}

/// Courses of one subject by the quantity they show, in the order in which they were first seen.
class Gathered {
  public:
    explicit Gathered(std::string subject) : subject_(std::move(subject)) {}
    void add(const std::string& what, CoursePoint point) {
        const auto [at, is_new] = places_.emplace(what, courses_.size());
        if (is_new) courses_.push_back({subject_, what, {}});
        courses_[at->second].points.push_back(std::move(point));
    }
    std::vector<Course> all(std::size_t last) && {
        for (Course& course : courses_)
            if (course.points.size() > last)
                course.points.erase(course.points.begin(),
                                    course.points.end() - static_cast<std::ptrdiff_t>(last));
        return std::move(courses_);
    }

  private:
    std::string subject_;
    std::map<std::string, std::size_t> places_;
    std::vector<Course> courses_;
};

/// Largest measured / allowed of the required gates.
constexpr const char* worst_margin =
    "(SELECT max(ratio) FROM margin WHERE margin.result = result.result AND required = 1)";

std::string seed_of(const std::string& name) {
    return name.substr(name.rfind('@') + 1);
}

void add_verdicts_of_case(const Database& database, const Subject& subject, Gathered& into) {
    auto rows = database.prepare(
        fmt::format("SELECT started, commit_id, {}, outcome, k.text, target, arch, device, n.text "
                    "FROM result JOIN run USING (run) JOIN word k ON k.id = kernel "
                    "JOIN word n ON n.id = name WHERE name IN {} ORDER BY run.run, nth",
                    worst_margin, subject.list()));
    while (rows.step())
        into.add(fmt::format("margin used, verify {} {}", rows.text(5), rows.text(6)),
                 {rows.text(0), rows.text(1), rows.real(2),
                  fmt::format("{} {}{}{}", rows.text(3), rows.text(4),
                              rows.null(7) ? "" : fmt::format(" on device {}", rows.integer(7)),
                              subject.words.size() == 1 ? "" : ", seed " + seed_of(rows.text(8)))});
}

void add_verdicts_of_kernel(const Database& database, const Subject& subject, Gathered& into) {
    auto rows = database.prepare(
        fmt::format("SELECT started, commit_id, max({}), sum(outcome = 'passed'), count(*), target, arch, "
                    "group_concat(DISTINCT CASE WHEN outcome != 'passed' THEN device END) FROM result "
                    "JOIN run USING (run) WHERE kernel IN {} GROUP BY run.run ORDER BY run.run",
                    worst_margin, subject.list()));
    while (rows.step())
        into.add(fmt::format("most of a margin used, verify {} {}", rows.text(5), rows.text(6)),
                 {rows.text(0), rows.text(1), rows.real(2),
                  fmt::format("{} of {} cases passed{}", rows.integer(3), rows.integer(4),
                              rows.null(7) ? "" : "; others on device " + rows.text(7))});
}

/// `column` is "name" or "kernel"; the other one tells the courses apart.
void add_times(const Database& database, const Subject& subject, const char* column, Gathered& into) {
    const char* other = std::string_view(column) == "name" ? "kernel" : "name";
    auto rows = database.prepare(fmt::format("SELECT started, commit_id, avg(median), group_concat(DISTINCT "
                                             "outcome), o.text, machine, target, arch, "
                                             "count(*), min(best) FROM time JOIN run USING (run) JOIN word o "
                                             "ON o.id = time.{0} WHERE time.{1} IN {2} "
                                             "GROUP BY run.run, time.{0} ORDER BY run.run",
                                             other, column, subject.list()));
    constexpr double milli = 1e-3;
    while (rows.step())
        into.add(fmt::format("milliseconds, bench {} {} on {}, {}", rows.text(6), rows.text(7), rows.text(5),
                             rows.text(4)),
                 {rows.text(0), rows.text(1),
                  rows.text(3) == to_string(harness::BenchOutcome::measured)
                      ? rows.real(2) / milli
                      : std::numeric_limits<double>::quiet_NaN(),
                  fmt::format("{}, {} round{}, best {:.4g}", rows.text(3), rows.integer(8),
                              rows.integer(8) == 1 ? "" : "s", rows.real(9) / milli)});
}

void add_resources(const Database& database, const Subject& subject, Gathered& into) {
    auto rows =
        database.prepare(fmt::format("SELECT started, commit_id, scratch_bytes, resource.arch, vgprs, agprs, "
                                     "lds_bytes, occupancy, vgpr_spills "
                                     "FROM resource JOIN run USING (run) WHERE kernel IN {} ORDER BY run.run",
                                     subject.list()));
    while (rows.step())
        into.add(
            fmt::format("bytes of scratch a lane, build {}", rows.text(3)),
            {rows.text(0), rows.text(1), rows.real(2),
             fmt::format("{} vector registers, {} accumulation registers, {} bytes of LDS, occupancy {}{}",
                         rows.integer(4), rows.integer(5), rows.integer(6), rows.integer(7),
                         rows.integer(8) > 0 ? fmt::format(", {} spilled", rows.integer(8)) : "")});
}

} // namespace

std::vector<Course> courses(const Store& store, const std::string& text, std::size_t last) {
    const Database& database = store.database();
    std::vector<Course> all;
    for (const Subject& subject : subjects_of(store, text)) {
        Gathered gathered(subject.name);
        add_verdicts_of_case(database, subject, gathered);
        add_verdicts_of_kernel(database, subject, gathered);
        add_times(database, subject, "name", gathered);
        add_times(database, subject, "kernel", gathered);
        add_resources(database, subject, gathered);
        for (Course& course : std::move(gathered).all(last)) all.push_back(std::move(course));
    }
    if (all.empty())
        throw InputError(fmt::format("{}: no run is left of a case or kernel with \"{}\" in its name",
                                     database.file().string(), text));
    return all;
}

std::string sparkline(std::span<const double> values) {
    constexpr std::array bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const double value : values)
        if (std::isfinite(value)) {
            low = std::min(low, value);
            high = std::max(high, value);
        }
    std::string line;
    for (const double value : values) {
        if (std::isnan(value)) {
            line += ' ';
            continue;
        }
        const double share = std::isfinite(value) ? (high > low ? (value - low) / (high - low) : 0.0) : 1.0;
        line += bars[static_cast<std::size_t>(std::lround(share * static_cast<double>(bars.size() - 1)))];
    }
    return line;
}

std::string to_text(const Course& course) {
    constexpr std::size_t commit_digits = 8;
    std::vector<double> values;
    for (const CoursePoint& point : course.points) values.push_back(point.value);
    std::string text = fmt::format("  {}\n  {}\n", visible_line(course.what), sparkline(values));
    for (const CoursePoint& point : course.points)
        text += fmt::format("  {}  {:8}  {:>10}  {}\n", visible_line(point.started),
                            visible_line(point.commit.substr(0, commit_digits)),
                            std::isnan(point.value) ? std::string("-") : fmt::format("{:.4g}", point.value),
                            visible_line(point.note));
    return text;
}

Json to_json(const Course& course) {
    auto points = Json::array();
    for (const CoursePoint& point : course.points)
        points.push_back({{"started", point.started},
                          {"commit", point.commit},
                          {"value", std::isfinite(point.value) ? Json(point.value)
                                    : std::isnan(point.value)  ? Json()
                                                               : Json("inf")},
                          {"note", point.note}});
    return {{"subject", course.subject}, {"what", course.what}, {"points", std::move(points)}};
}

} // namespace fmha::store
