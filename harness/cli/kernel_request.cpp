#include "harness/cli/kernel_request.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/beside.hpp"
#include "harness/cli/cases_root.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/arch/usual_arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/glob.hpp"
#include "kernels/generator/sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

namespace fmha::cli {
namespace {

std::string house_name(const KernelConfig& config) {
    return catalog::name_of(catalog::RuleSet::house, config);
}

/// The kernel of a file, or those of a registry that was exported to it.
std::vector<KernelConfig> configs_of_file(const std::string& file) {
    const Json document = parse_strict_json(system::read_file(file), file);
    if (!document.is_object() || !document.contains("kernels")) {
        const auto config = fields_from_json<KernelConfig>(document, file);
        if (config.arch.empty())
            throw InputError(file + ": arch is missing; a kernel is one of an architecture");
        return {config};
    }
    std::vector<KernelConfig> kernels;
    if (!document["kernels"].is_array()) throw InputError(file + ".kernels: expected an array");
    for (const Json& entry : document["kernels"]) {
        if (!entry.is_object() || !entry.contains("identifier") || !entry["identifier"].is_string())
            throw InputError(
                fmt::format("{}.kernels[{}]: expected an object with an identifier", file, kernels.size()));
        const auto config = parse_identifier<KernelConfig>(entry["identifier"].get<std::string>());
        if (!config)
            throw InputError(fmt::format("{}.kernels[{}]: {} is no identifier of a kernel", file,
                                         kernels.size(), entry["identifier"].dump()));
        kernels.push_back(*config);
    }
    if (kernels.empty()) throw InputError(file + ": the registry has no kernel");
    return kernels;
}

void refuse_if_empty(const std::vector<KernelConfig>& kernels, std::string_view option,
                     std::string_view value) {
    if (kernels.empty()) throw InputError(fmt::format("{} {}: no kernel is left", option, value));
}

} // namespace

void KernelRequest::declare(OptionSet& options) {
    options.list("--arch", archs_, fmt::format("Architectures (default {})", arch::usual_arch));
    arch_files_.declare(options);
    options.list("--family,--variant", families_,
                 "Kernel families, or splitkv, bwd, … for all kernels behind an API: all of them unless "
                 "another option "
                 "chooses (without it fwd; with --tier all). With --tier and an API also the kernels of "
                 "other stages that its cases run");
    options.flag("--catalogue", whole_list_, "The whole list: the kernels of all families");
    list_.declare(
        options, "",
        "; or JSON files with one kernel configuration each, or the registry.json of a program or of "
        "fmha plan --export, instead of a list");
    options.option("--kernel", glob_, "Only kernels whose name matches this glob");
    options.option("--tier", tier_,
                   "Only kernels that are planned for a case of this tier: smoke, full or nightly. Filters "
                   "narrow the list first, as those of fmha verify do");
    options.option("--shard", shard_,
                   "i/n: with --tier, only for the cases that `fmha verify --shard i/n` runs");
    options.option("--cases-root", cases_root_,
                   "Folder of the case files for --tier (default: cases here, else the source tree's)");
    options.flag("--covering", covering_,
                 "A sample with every data type, head dimension, tile, pipeline and V layout, and every pair "
                 "of features");
    options.option(
        "--sample", sample_,
        "Number of kernels of that sample to keep of each family: the first ones, which cover most");
}

std::vector<std::string> KernelRequest::arguments() const {
    std::vector<std::string> words;
    const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {option, value});
    };
    for (const std::string& arch : archs_) add("--arch", arch);
    add("--arch-dir", arch_files_.folder());
    for (const std::string& family : families_) add("--family", family);
    for (const std::string& word : list_.arguments()) words.push_back(word);
    add("--kernel", glob_);
    add("--tier", tier_);
    add("--cases-root", cases_root_);
    if (whole_list_) words.emplace_back("--catalogue");
    if (covering_) words.emplace_back("--covering");
    if (sample_) add("--sample", std::to_string(*sample_));
    return words;
}

generator::Selection KernelRequest::select(const arch::ArchSet& archs) {
    if (!list_.configs().empty() && !list_.sweeps()) {
        refuse_beside("--config of a kernel",
                      {{!archs_.empty(), "--arch"},
                       {!families_.empty(), "--family"},
                       {list_.restricts(), "--rules, --profile, --max-kernels or a filter"},
                       {!glob_.empty(), "--kernel"},
                       {!tier_.empty(), "--tier"},
                       {!shard_.empty(), "--shard"},
                       {whole_list_, "--catalogue"},
                       {covering_, "--covering"},
                       {sample_.has_value(), "--sample"}});
        return generator::select(from_files(archs));
    }
    const std::vector<KernelConfig> kernels = sampled(from_catalogue(archs));
    return list_.rules() == catalog::RuleSet::house ? generator::select(kernels)
                                                    : generator::select_valid(archs, kernels);
}

std::vector<KernelConfig> KernelRequest::from_files(const arch::ArchSet& archs) const {
    std::vector<KernelConfig> kernels;
    for (const std::string& file : list_.configs())
        for (const KernelConfig& config : configs_of_file(file)) {
            if (const auto rule = generator::forbidden(archs, config))
                throw InputError(fmt::format("{}: refused by {}: {}", file, rule->id, rule->message));
            kernels.push_back(config);
        }
    return kernels;
}

std::vector<KernelConfig> KernelRequest::from_catalogue(const arch::ArchSet& archs) {
    const auto targets =
        parse_archs(archs, archs_.empty() ? std::vector<std::string>{arch::usual_arch} : archs_);
    catalog::Request request = list_.request(archs, targets);
    if (request.rules != catalog::RuleSet::house && !tier_.empty())
        throw InputError(
            fmt::format("--tier plans on the list house; --rules is {}", to_string(request.rules)));
    if (whole_list_ && !tier_.empty()) throw InputError("--catalogue and --tier exclude one another");
    // A tier has cases of every family, and cases that run stages of several.
    if (!families_.empty() && tier_.empty())
        request.families = parse_families(families_);
    else if (tier_.empty() && !whole_list_ && !request.sweep)
        request.families = catalog::FamilySet::of(KernelFamily::fwd);
    std::vector<KernelConfig> kernels;
    for (const ArchName& arch : targets) {
        request.targets = {arch};
        const auto of_arch = catalog::list(archs, request);
        kernels.insert(kernels.end(), of_arch.begin(), of_arch.end());
    }
    if (!chooses())
        throw InputError(fmt::format(
            "nothing says which of {} kernels: --tier smoke takes those of the short cases, --where, "
            "--kernel, --config and --covering others; all of these are --family fwd, those of every "
            "family --catalogue",
            kernels.size()));
    list_.filter(kernels);
    if (!glob_.empty()) keep_named(kernels);
    if (!shard_.empty() && tier_.empty()) throw InputError("--shard needs --tier, whose cases it divides");
    if (!tier_.empty()) keep_planned(archs, kernels);
    list_.keep_first(kernels);
    return kernels;
}

bool KernelRequest::chooses() const {
    return whole_list_ || covering_ || sample_ || list_.narrows() || !families_.empty() || !glob_.empty() ||
           !tier_.empty() || !shard_.empty();
}

void KernelRequest::keep_named(std::vector<KernelConfig>& kernels) const {
    std::erase_if(
        kernels, [&](const KernelConfig& config) { return !catalog::glob_match(glob_, house_name(config)); });
    refuse_if_empty(kernels, "--kernel", glob_);
}

void KernelRequest::keep_planned(const arch::ArchSet& archs, std::vector<KernelConfig>& kernels) const {
    harness::LoadOptions load{.root = cases_root(cases_root_)};
    const auto tier = parse_enum<harness::Tier>(tier_);
    if (!tier)
        throw InputError(
            fmt::format("--tier {}: not known; allowed: {}", tier_, allowed_names<harness::Tier>()));
    load.tier = *tier;
    const catalog::FamilySet asked = families_.empty() ? catalog::FamilySet() : parse_families(families_);
    std::vector<KernelConfig> kept;
    for (auto begin = kernels.begin(); begin != kernels.end();) {
        const auto end = std::find_if(begin, kernels.end(),
                                      [&](const KernelConfig& c) { return !(c.arch == begin->arch); });
        load.planned_tile = harness::house_tiles(begin->arch.str(), archs);
        auto cases = harness::load_cases({}, load);
        if (!shard_.empty()) cases = harness::take_shard(cases, harness::parse_shard(shard_));
        // The cases of an API that is asked for as a whole need all their stages, also those of another API (chains).
        const auto others = std::stable_partition(cases.begin(), cases.end(), [&](const harness::Case& c) {
            const catalog::FamilySet own = catalog::families_of(c.family);
            return (own.bits & asked.bits) == own.bits;
        });
        const auto planned = [&](auto first, auto last) {
            return harness::planned_kernels({begin, end}, {first, last}, begin->arch.str(),
                                            generator::declined, archs);
        };
        std::unordered_set<KernelConfig, FieldHash> wanted;
        for (const KernelConfig& kernel : planned(cases.begin(), others)) wanted.insert(kernel);
        for (const KernelConfig& kernel : planned(others, cases.end()))
            if (asked.has(kernel.signature.family)) wanted.insert(kernel);
        std::copy_if(begin, end, std::back_inserter(kept),
                     [&](const KernelConfig& kernel) { return wanted.contains(kernel); });
        begin = end;
    }
    if (kept.empty())
        throw InputError(fmt::format(
            "--tier {}: no kernel is left; cases are planned on the {} kernels that the other options leave, "
            "and none has a kernel for each of its stages among them",
            tier_, kernels.size()));
    kernels = std::move(kept);
}

std::vector<KernelConfig> KernelRequest::sampled(std::vector<KernelConfig> kernels) const {
    if (!covering_ && !sample_) return kernels;
    if (sample_ && *sample_ == 0) throw InputError("--sample 0: allowed: 1 or more");
    std::vector<KernelConfig> kept;
    // Kernels that are declined cover nothing.
    std::erase_if(kernels,
                  [](const KernelConfig& config) { return generator::declined(config).has_value(); });
    std::optional<std::size_t> limit;
    if (sample_) limit = *sample_;
    for (const std::size_t index : generator::sample_of_each_family(kernels, limit))
        kept.push_back(kernels[index]);
    return kept;
}

} // namespace fmha::cli
