#include "harness/cli/case_snapshot.hpp"

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/accepted_reasons.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/families/family.hpp"
#include "harness/run/planned_kernels.hpp"

#include <fmt/ostream.h>

#include <array>
#include <map>
#include <sstream>
#include <vector>

namespace fmha::cli {
namespace {

constexpr std::string_view snapshot_arch = "gfx950";

/// "digest kernel + kernel", or the rule that refuses the case. A blank separates, because names of kernels have none.
std::string planned_line(const harness::Case& c, const Dispatcher& dispatcher) {
    std::string kernels;
    try {
        const ExecutionPlan plan = dispatcher.plan(harness::to_problem(c, snapshot_arch));
        for (const PlanStage& stage : plan.stages())
            kernels += (kernels.empty() ? "" : " + ") + dispatcher.registry().name_of(*stage.kernel);
        if (!plan.valid()) kernels = "no kernel";
    } catch (const ProblemError& error) {
        return "- " + error.rule();
    }
    const auto data = harness::family_of(c.family).allocate(c, fp8_flavour(snapshot_arch));
    return fmt::format("{:016x} {}", data->tensors().content_digest(), kernels);
}

using Lines = std::map<std::string, std::string, std::less<>>;

Lines planned_lines(const std::filesystem::path& root) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    const std::array names{archs.at(snapshot_arch).name()};
    const auto registry = catalogue_registry(archs, catalog::RuleSet::house, names);
    const Dispatcher dispatcher(*registry, devices_of(archs));
    harness::LoadOptions options;
    options.root = root;
    options.planned_tile = harness::house_tiles(std::string(snapshot_arch));
    Lines lines;
    for (const harness::Case& c : harness::load_cases({}, options)) lines[c.id] = planned_line(c, dispatcher);
    return lines;
}

/// Lines "name<tab>rest"; those that begin with # are comments.
Lines snapshot_lines(const std::filesystem::path& file) {
    Lines lines;
    std::istringstream text(input_text(file.string()));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
        ++number;
        if (line.starts_with('#')) continue;
        const auto tab = line.find('\t');
        if (tab == std::string::npos)
            throw InputError(
                fmt::format("{}:{}: expected a case's name, a tab, and its plan", file.string(), number));
        lines[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return lines;
}

/// The lines that are gone, changed or new, a text each.
std::vector<std::string> differences_of(const Lines& before, const Lines& now) {
    std::vector<std::string> differences;
    for (const auto& [name, line] : before) {
        const auto found = now.find(name);
        if (found == now.end())
            differences.push_back(fmt::format("{}\n  is gone", name));
        else if (found->second != line)
            differences.push_back(fmt::format("{}\n  - {}\n  + {}", name, line, found->second));
    }
    for (const auto& [name, line] : now)
        if (!before.contains(name)) differences.push_back(fmt::format("{}\n  is new", name));
    return differences;
}

} // namespace

int case_snapshot(const std::filesystem::path& cases_root, const std::filesystem::path& file, bool accept,
                  const std::string& reason, std::size_t examples, const Streams& streams) {
    if (accept && reason.empty()) throw InputError("--accept needs --reason TEXT: why the cases changed");
    const Lines now = planned_lines(cases_root);
    const bool recorded = std::filesystem::exists(file);
    const std::vector<std::string> differences = accept && !recorded
                                                     ? std::vector<std::string>(now.size())
                                                     : differences_of(snapshot_lines(file), now);
    if (accept) {
        if (!recorded || !differences.empty()) {
            std::string text = accepted_reasons(file, differences.size(), reason);
            for (const auto& [name, line] : now) text += fmt::format("{}\t{}\n", name, line);
            system::write_file(file, text);
        }
        fmt::print(streams.out, "{} smoke cases recorded in {}\n", now.size(), file.string());
        return all_well;
    }
    for (std::size_t n = 0; n < std::min(examples, differences.size()); ++n)
        fmt::print(streams.err, "{}\n", differences[n]);
    if (differences.size() > examples)
        fmt::print(streams.err, "and {} more\n", differences.size() - examples);
    fmt::print(streams.out, "{} smoke cases: {}\n", now.size(),
               differences.empty()
                   ? "names, inputs and planned kernels are as recorded"
                   : fmt::format("{} differ; accept with --accept --reason TEXT", differences.size()));
    return differences.empty() ? all_well : check_failed;
}

} // namespace fmha::cli
