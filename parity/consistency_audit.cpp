#include "parity/consistency_audit.hpp"

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "kernels/catalog/glob.hpp"
#include "parity/facts.hpp"
#include "parity/golden_audit.hpp"
#include "parity/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>

namespace fmha::parity {
namespace {

using catalog::RuleSet;

/// Hashes of names; two names that share one are compared as text before they are called equal.
void check_duplicates(const arch::ArchSet& archs, const catalog::Request& request, Check& check) {
    const catalog::Naming naming(request.rules, request.masks);
    std::vector<std::size_t> hashes;
    std::string name;
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        name.clear();
        catalog::append_name(naming, config, name);
        hashes.push_back(std::hash<std::string>()(name));
    });
    check.compared += static_cast<std::int64_t>(hashes.size());
    std::sort(hashes.begin(), hashes.end());
    std::unordered_set<std::size_t> repeated;
    for (std::size_t i = 1; i < hashes.size(); ++i)
        if (hashes[i] == hashes[i - 1]) repeated.insert(hashes[i]);
    if (repeated.empty()) return;
    std::unordered_set<std::string> seen;
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        name.clear();
        catalog::append_name(naming, config, name);
        if (repeated.contains(std::hash<std::string>()(name)) && !seen.insert(name).second)
            check.failures.push_back("the list has this name twice: " + name);
    });
}

/// Something found about a kernel or a case.
struct Found {
    std::string name;
    std::string what;
};

/// Findings of one tile (or one case file) and one kind are one sentence.
void add_grouped(const std::vector<Found>& found, Check& check) {
    std::map<std::pair<std::string, std::string>, std::vector<const Found*>> groups;
    for (const Found& one : found) {
        const std::string_view name = one.name;
        const auto bracket = name.find('[');
        const auto beginning =
            bracket == std::string_view::npos ? tile_beginning(name) : name.substr(0, bracket);
        groups[{std::string(beginning), one.what}].push_back(&one);
    }
    for (const auto& [key, members] : groups)
        check.failures.push_back(fmt::format("{} x {}: {}; first is {}", members.size(), key.first,
                                             key.second, members.front()->name));
}

/// Takes away the expected findings, and reports expectations that nothing fits.
std::vector<Found> unexpected(std::vector<Found> found, const ExpectedFindings& expected, Lack kind,
                              const ArchName& arch, Check& check) {
    const std::string_view called = kind == Lack::dead ? "dead kernels" : "holes";
    for (const ExpectedFindings::Finding& known : expected.findings) {
        if (known.kind != kind ||
            std::find(known.archs.begin(), known.archs.end(), arch) == known.archs.end())
            continue;
        const auto count = std::erase_if(
            found, [&](const Found& one) { return catalog::glob_match(known.names, one.name); });
        if (count == 0)
            check.failures.push_back(
                fmt::format("parity/expected.json expects {} {}, but there are none; remove the entry",
                            called, known.names));
        else
            check.notes.push_back(fmt::format("{} {} {}: {}", count, called, known.names, known.reason));
    }
    return found;
}

void check_rules(const std::vector<KernelConfig>& kernels, const HardwareLimits& hardware, Check& check) {
    std::vector<Found> found;
    for (const KernelConfig& config : kernels)
        for (const RuleFinding& finding : validate(config, hardware))
            if (finding.severity == Severity::error)
                found.push_back({catalog::name_of(RuleSet::house, config),
                                 fmt::format("breaks {}: {}", finding.id, finding.message)});
    add_grouped(found, check);
}

/// Whether the problem's plan has the kernel in any of its stages. A stage after the main one depends on the
/// main kernel, so that the whole plan is asked.
bool is_planned(const Dispatcher& dispatcher, const Problem& problem, const KernelConfig& config) {
    if (config.signature.family == main_stage(problem.api_family)) {
        const auto chosen = dispatcher.select_kernel(problem);
        return chosen != nullptr && chosen->config == config;
    }
    const ExecutionPlan plan = dispatcher.plan(problem);
    return std::any_of(plan.stages().begin(), plan.stages().end(), [&](const PlanStage& stage) {
        return stage.kernel != nullptr && stage.kernel->config == config;
    });
}

bool is_alive(const Dispatcher& dispatcher, const KernelConfig& config, const WitnessLattice& lattice,
              bool& has_problem) {
    bool alive = false;
    each_witness(config, lattice, [&](const Problem& problem) {
        try {
            alive = is_planned(dispatcher, problem, config);
            has_problem = true;
        } catch (const ProblemError&) {
            // This member of the lattice poses no legal problem to a kernel with these features.
        }
        return !alive;
    });
    return alive;
}

std::vector<Found> dead_kernels(const std::vector<KernelConfig>& kernels, const Dispatcher& dispatcher,
                                const WitnessLattice& lattice) {
    std::vector<Found> found;
    for (const KernelConfig& config : kernels) {
        bool has_problem = false;
        if (is_alive(dispatcher, config, lattice, has_problem)) continue;
        found.push_back({catalog::name_of(RuleSet::house, config),
                         has_problem ? "dead, every problem of the lattice selects another kernel"
                                     : "dead, no legal problem asks for its features"});
    }
    return found;
}

std::vector<Found> holes(const std::vector<NamedProblem>& problems, const Dispatcher& dispatcher,
                         const HardwareLimits& hardware, Check& check) {
    std::vector<Found> found;
    std::int64_t other_hardware = 0;
    for (const NamedProblem& named : problems) {
        if (!hardware.has(named.problem.signature.data_type)) {
            ++other_hardware;
            continue;
        }
        ++check.compared;
        if (!dispatcher.plan(named.problem).valid()) found.push_back({named.name, "no kernel takes it"});
    }
    if (other_hardware > 0)
        check.notes.push_back(
            fmt::format("{} cases have data types that the hardware has not", other_hardware));
    return found;
}

/// Data types for which the working list of some architecture has the main kernels of an API.
using TypesOfApi = std::map<ApiFamily, std::set<DataType>>;

TypesOfApi types_of_apis(const std::vector<KernelConfig>& kernels) {
    TypesOfApi types;
    for (const auto& [api, unused] : EnumTable<ApiFamily>::names)
        for (const KernelConfig& config : kernels)
            if (config.signature.family == main_stage(api)) types[api].insert(config.signature.data_type);
    return types;
}

TypesOfApi types_of_apis(const arch::ArchSet& archs) {
    TypesOfApi types;
    for (const arch::ArchTables& arch : archs.all()) {
        if (!has_rules(arch, RuleSet::house)) continue;
        auto more = types_of_apis(catalog::list(archs, reference_request(RuleSet::house, arch.name())));
        for (auto& [api, of_arch] : more) types[api].merge(of_arch);
    }
    return types;
}

/// APIs that have no kernel for a data type of the hardware, although another architecture lists some. No case need
/// ask for them.
std::vector<Found> missing_apis(const TypesOfApi& anywhere, const TypesOfApi& here,
                                const HardwareLimits& hardware) {
    std::vector<Found> found;
    for (const auto& [api, types] : anywhere)
        for (const DataType type : types) {
            const auto listed = here.find(api);
            if (hardware.has(type) && (listed == here.end() || !listed->second.contains(type)))
                found.push_back({fmt::format("{}[{}]", to_string(api), to_string(type)),
                                 "no kernel of a data type that the hardware has, and other architectures "
                                 "list some"});
        }
    return found;
}

Check audit_one(const arch::ArchSet& archs, RuleSet rules, const ArchName& arch,
                const WitnessLattice& lattice, const ExpectedFindings& expected, const ProblemsOf& problems,
                const TypesOfApi& anywhere) {
    Check check;
    check.subject = fmt::format("{} {}", to_string(rules), arch.view());
    check.unit = rules == RuleSet::house ? "names, problems" : "names";
    const auto request = reference_request(rules, arch);
    check_duplicates(archs, request, check);
    if (rules != RuleSet::house) return check;

    const HardwareLimits& hardware = archs.at(arch).hardware().limits;
    const auto kernels = catalog::list(archs, request);
    check_rules(kernels, hardware, check);
    Registry registry("house");
    registry.add(std::span(kernels));
    const Dispatcher dispatcher(registry,
                                {{arch, hardware.compute_units, archs.at(arch).hardware().wave_size}});
    add_grouped(unexpected(dead_kernels(kernels, dispatcher, lattice), expected, Lack::dead, arch, check),
                check);
    auto missing = holes(problems(arch), dispatcher, hardware, check);
    std::ranges::move(missing_apis(anywhere, types_of_apis(kernels), hardware), std::back_inserter(missing));
    add_grouped(unexpected(std::move(missing), expected, Lack::hole, arch, check), check);
    return check;
}

ExpectedFindings::Finding read_finding(const Json& entry, const std::string& where) {
    allow_keys(entry, where, {"kind", "archs", "names", "reason"});
    const auto kind = value_at<std::string>(entry, where, "kind");
    const auto known_kind = parse_enum<Lack>(kind);
    if (!known_kind)
        throw InputError(
            fmt::format("{}: kind \"{}\" is not known; allowed: {}", where, kind, allowed_names<Lack>()));
    ExpectedFindings::Finding finding{.kind = *known_kind,
                                      .archs = {},
                                      .names = value_at<std::string>(entry, where, "names"),
                                      .reason = value_at<std::string>(entry, where, "reason")};
    for (const auto& arch : value_at<std::vector<std::string>>(entry, where, "archs"))
        if (!parse_field_text(arch, finding.archs.emplace_back()))
            throw InputError(fmt::format("{}: archs: \"{}\" is no name of an architecture", where, arch));
    return finding;
}

} // namespace

ExpectedFindings read_expected(const std::filesystem::path& file) {
    ExpectedFindings expected;
    const Json list = parse_strict_json(system::read_file(file), file.string());
    if (!list.is_array()) throw InputError(fmt::format("{}: expected an array", file.string()));
    for (std::size_t i = 0; i < list.size(); ++i)
        expected.findings.push_back(read_finding(list[i], fmt::format("{}[{}]", file.string(), i)));
    return expected;
}

AuditReport audit_consistency(const arch::ArchSet& archs, const std::vector<RuleSet>& rules,
                              const std::vector<ArchName>& on, const WitnessLattice& lattice,
                              const ExpectedFindings& expected, const ProblemsOf& problems,
                              const OnCheck& on_check) {
    const auto wanted = [](const auto& list, const auto& value) {
        return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
    };
    std::vector<std::pair<RuleSet, ArchName>> subjects;
    for (const auto& [set, unused] : EnumTable<RuleSet>::names)
        for (const arch::ArchTables& arch : archs.all())
            if (has_rules(arch, set) && wanted(rules, set) && wanted(on, arch.name()))
                subjects.emplace_back(set, arch.name());
    const TypesOfApi anywhere = types_of_apis(archs);
    AuditReport report;
    report.title = "internal consistency";
    run_checks(report, subjects.size(), on_check, [&](std::size_t i) {
        return audit_one(archs, subjects[i].first, subjects[i].second, lattice, expected, problems, anywhere);
    });
    return report;
}

} // namespace fmha::parity
