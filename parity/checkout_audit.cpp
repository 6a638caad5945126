#include "parity/checkout_audit.hpp"

#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "parity/facts.hpp"
#include "parity/golden_audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace fmha::parity {
namespace {

using catalog::MaskVocabulary;

/// Upstream's name of an API on its command line and in the name of the API file that ends its list.
struct UpstreamApi {
    ApiFamily api;
    std::string_view argument, api_file;
};

constexpr std::array<UpstreamApi, 6> upstream_apis{
    {{ApiFamily::fwd, "fwd", "fmha_fwd_api.cpp"},
     {ApiFamily::fwd_splitkv, "fwd_splitkv", "fmha_fwd_splitkv_api.cpp"},
     {ApiFamily::fwd_appendkv, "fwd_appendkv", "fmha_fwd_appendkv_api.cpp"},
     {ApiFamily::fwd_pagedkv, "pagedkv_prefill", "fmha_fwd_pagedkv_api.cpp"},
     {ApiFamily::batch_prefill, "batch_prefill", "fmha_batch_prefill_api.cpp"},
     {ApiFamily::bwd, "bwd", "fmha_bwd_api.cpp"}}};

const UpstreamApi& upstream_api(ApiFamily api) {
    const auto found = std::ranges::find(upstream_apis, api, &UpstreamApi::api);
    if (found == upstream_apis.end()) throw InputError("there is no such API");
    return *found;
}

struct Job {
    ApiFamily api = ApiFamily::fwd;
    ArchName arch;
    catalog::Profile profile;
    MaskVocabulary masks = MaskVocabulary::simplified;
};

std::vector<Job> jobs_of(const arch::ArchSet& archs, CheckoutScope scope) {
    if (scope.apis.empty())
        for (const UpstreamApi& upstream : upstream_apis) scope.apis.push_back(upstream.api);
    if (scope.archs.empty())
        for (const auto& arch : archs.all())
            if (arch.has_rule_set("ck")) scope.archs.push_back(arch.name());
    if (scope.profiles.empty())
        scope.profiles.push_back(catalog::named_profile(catalog::ProfileId::ck_default));
    if (scope.masks.empty()) scope.masks.push_back(MaskVocabulary::simplified);
    std::vector<Job> jobs;
    for (const auto masks : scope.masks)
        for (const auto& profile : scope.profiles) {
            if (profile.number < 0)
                throw InputError(
                    fmt::format("profile \"{}\" has no number, and upstream's generator knows numbers only",
                                catalog::profile_name(profile)));
            for (const auto& arch : scope.archs)
                for (const auto api : scope.apis) jobs.push_back({api, arch, profile, masks});
        }
    return jobs;
}

/// File names of a list, without folders; nullopt when the file is missing.
std::optional<std::vector<std::string>> read_list(const std::filesystem::path& file) {
    std::ifstream in(file);
    if (!in) return std::nullopt;
    std::vector<std::string> names;
    for (std::string line; std::getline(in, line);) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
        if (!line.empty()) names.push_back(std::filesystem::path(line).filename().string());
    }
    return names;
}

/// Cuts the architecture suffix that generators without --targets do not write: `…_nsink_gfx9.cpp`.
void cut_suffix(std::string& name) {
    const auto suffix = name.rfind("_gfx");
    if (suffix != std::string::npos && name.find('_', suffix + 1) == std::string::npos)
        name.erase(suffix, name.rfind('.') - suffix);
}

std::vector<std::string> command_of(const CheckoutScope& scope, const Generator& generator, const Job& job,
                                    const std::filesystem::path& list) {
    std::vector<std::string> command{scope.python, generator.script.string()};
    if (generator.has_targets) command.insert(command.end(), {"--targets", job.arch.str()});
    command.insert(command.end(), {"-a", std::string(upstream_api(job.api).argument), "-l", list.string(),
                                   "-r", std::to_string(job.profile.number)});
    if (generator.has_mask) command.insert(command.end(), {"-m", std::string(to_string(job.masks))});
    return command;
}

Check audit_job(const arch::ArchSet& archs, const CheckoutScope& scope, const Generator& generator,
                const Job& job, const std::filesystem::path& list) {
    Check check;
    check.subject = fmt::format("{} {} {} {}", to_string(job.api), job.arch.view(),
                                catalog::profile_name(job.profile), to_string(job.masks));
    check.unit = "names";
    const auto command = command_of(scope, generator, job, list);
    const auto ran = system::run_process(
        command, {.directory = generator.script.parent_path(), .time = scope.time_per_list});
    const auto theirs = ran.exit_code == 0 ? read_list(list) : std::nullopt;
    if (!theirs) {
        std::string how = ran.timed_out ? fmt::format("was stopped after {} s", scope.time_per_list.count())
                          : ran.exit_code != 0 ? fmt::format("failed with exit code {}", ran.exit_code)
                                               : std::string("ended well but wrote no list");
        check.failures.push_back(
            fmt::format("the generator {}: {}\n{}", how, fmt::join(command, " "), ran.err));
        return check;
    }
    auto expected = *theirs;
    if (std::erase(expected, upstream_api(job.api).api_file) != 1)
        check.notes.push_back(fmt::format("its list does not end in {}", upstream_api(job.api).api_file));

    catalog::Request request;
    request.rules = catalog::RuleSet::ck;
    request.targets = {job.arch};
    request.profile = job.profile;
    request.masks = job.masks;
    request.families = catalog::families_of(job.api);
    auto ours = names_of(archs, request);
    check.compared = static_cast<std::int64_t>(expected.size() + ours.size());
    if (!generator.has_targets)
        for (auto* side : {&expected, &ours})
            for (std::string& name : *side) cut_suffix(name);
    check.difference = difference(std::move(expected), std::move(ours));
    // Seen from our side: a kernel that the checkout has and we lack is lost, and `why` says which rule of ours
    // removes it.
    const auto cause = [&](const std::string& name) { return cause_sentence(archs, request, name); };
    explain(*check.difference, cause, cause);
    return check;
}

} // namespace

Generator find_generator(const CheckoutScope& scope) {
    Generator generator;
    for (const auto* place :
         {"example/ck_tile/01_fmha/generate.py",
          "projects/composablekernel/example/ck_tile/01_fmha/generate.py", "generate.py"}) {
        const auto script = scope.root / place;
        if (!std::filesystem::exists(script)) continue;
        generator.script = std::filesystem::absolute(script);
        break;
    }
    if (generator.script.empty())
        throw InputError(
            fmt::format("--ck-root {}: has no example/ck_tile/01_fmha/generate.py", scope.root.string()));
    const auto help =
        system::run_process({scope.python, generator.script.string(), "--help"},
                            {.directory = generator.script.parent_path(), .time = std::chrono::seconds(60)});
    if (help.exit_code != 0)
        throw InputError(
            fmt::format("{} --help: exit code {}\n{}", generator.script.string(), help.exit_code, help.err));
    generator.has_targets = help.out.find("--targets") != std::string::npos;
    generator.has_mask = help.out.find("--mask") != std::string::npos;
    return generator;
}

AuditReport audit_checkout(const arch::ArchSet& archs, const CheckoutScope& scope, const OnCheck& on_check) {
    AuditReport report;
    report.title = "comparison with " + scope.root.string();
    const auto generator = find_generator(scope);
    const auto jobs = jobs_of(archs, scope);
    const system::TemporaryDirectory lists;
    run_checks(report, jobs.size(), on_check, [&](std::size_t i) {
        Check check = audit_job(archs, scope, generator, jobs[i], lists.path() / fmt::format("{}.txt", i));
        if (!generator.has_targets)
            check.notes.emplace_back("the generator has no --targets: it writes one list for "
                                     "every architecture and no suffix in names, so "
                                     "suffixes were left out of the comparison");
        return check;
    });
    return report;
}

} // namespace fmha::parity
