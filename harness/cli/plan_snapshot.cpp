#include "harness/cli/plan_snapshot.hpp"

#include "dispatcher/explain/explain.hpp"
#include "dispatcher/problem_json.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cli/accepted_reasons.hpp"
#include "harness/cli/input_text.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <array>
#include <sstream>
#include <string_view>
#include <vector>

namespace fmha::cli {

namespace {

struct Shape {
    std::string name, place;
    Json problem;
};

std::vector<Shape> read_shapes(const std::filesystem::path& file) {
    std::vector<Shape> shapes;
    std::istringstream lines(input_text(file.string()));
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::string place = fmt::format("{}:{}", file.string(), number);
        const Json parsed = Json::try_parse(line).value_or(nullptr);
        if (!parsed.is_object() || parsed.size() != 2 || !parsed.contains("name") ||
            !parsed["name"].is_string() || !parsed.contains("problem"))
            throw InputError(place + ": expected an object with \"name\" and \"problem\"");
        shapes.push_back({parsed["name"].get<std::string>(), place, parsed["problem"]});
    }
    if (shapes.empty()) throw InputError(file.string() + ": holds no shape");
    return shapes;
}

/// "name: stage kernel; stage kernel; workspace n", or the missing families.
std::string snapshot_line(const Dispatcher& dispatcher, const Shape& shape, std::string_view arch) {
    Json object = shape.problem;
    object["arch"] = arch;
    const ExecutionPlan plan = dispatcher.plan(problem_from_json(object, shape.place));
    std::string line = shape.name + ":";
    for (const PlanStage& stage : plan.stages())
        line += fmt::format(" {} {};", to_string(stage.family), dispatcher.registry().name_of(*stage.kernel));
    for (const KernelFamily family : plan.missing()) line += fmt::format(" {} missing;", to_string(family));
    return line + fmt::format(" workspace {}", plan.workspace_bytes());
}

/// Lines of a snapshot file without its comment lines.
std::vector<std::string> stored_lines(const std::filesystem::path& file) {
    std::vector<std::string> stored;
    std::istringstream lines(input_text(file.string()));
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with('#')) stored.push_back(line);
    return stored;
}

std::size_t report_differences(const std::vector<std::string>& expected,
                               const std::vector<std::string>& planned, std::string_view arch,
                               std::ostream& err) {
    std::size_t differences = 0;
    for (std::size_t i = 0; i < std::max(expected.size(), planned.size()); ++i) {
        const std::string absent = "(absent)";
        const std::string& before = i < expected.size() ? expected[i] : absent;
        const std::string& now = i < planned.size() ? planned[i] : absent;
        if (before == now) continue;
        ++differences;
        fmt::print(err, "{}\n  - {}\n  + {}\n", arch, before, now);
    }
    return differences;
}

} // namespace

int plan_snapshots(const std::filesystem::path& directory, bool accept, const std::string& reason,
                   const Streams& streams) {
    if (accept && reason.empty()) throw InputError("--accept needs --reason TEXT: why the plans changed");
    const std::vector<Shape> shapes = read_shapes(directory / "shapes.jsonl");
    const arch::ArchSet archs = arch::ArchSet::built_in();
    std::size_t differences = 0;
    for (const auto& tables : archs.all()) {
        const std::array names{tables.name()};
        const std::string arch = tables.name().str();
        const auto registry = catalogue_registry(archs, catalog::RuleSet::house, names);
        const Dispatcher dispatcher(*registry, devices_of(archs));
        std::vector<std::string> planned;
        for (const Shape& shape : shapes) planned.push_back(snapshot_line(dispatcher, shape, arch));
        const std::filesystem::path file = directory / (arch + ".txt");
        const std::vector<std::string> stored =
            accept && !std::filesystem::exists(file) ? std::vector<std::string>() : stored_lines(file);
        const std::size_t changed = report_differences(stored, planned, arch, streams.err);
        if (!accept)
            differences += changed;
        else if (changed > 0)
            system::write_file(file, accepted_reasons(file, changed, reason) +
                                         fmt::format("{}\n", fmt::join(planned, "\n")));
    }
    fmt::print(streams.out, "{} shapes on {} architectures: {}\n", shapes.size(), archs.all().size(),
               accept ? "accepted"
               : differences == 0
                   ? "every plan is as recorded"
                   : std::to_string(differences) + " plans differ; accept with --accept --reason TEXT");
    return differences == 0 ? all_well : check_failed;
}

} // namespace fmha::cli
