#include "harness/cli/list_options.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "harness/cli/catalog_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace fmha::cli {
namespace {

/// Throws InputError for a file that is no JSON.
bool is_sweep(const std::string& file) {
    const Json document = parse_strict_json(system::read_file(file), file);
    return document.is_object() && (document.contains("variant") || document.contains("trait_config"));
}

/// Whether a kernel of another stage computes for problems of a main kernel.
bool runs_with(const Signature& stage, const Signature& main) {
    const KernelTraits& traits = traits_of(stage.family);
    const bool same_query_dim = !traits.query_dim || stage.hdim_q == main.hdim_q;
    const bool same_value_dim = !traits.value_dim || stage.hdim_v == main.hdim_v;
    return stage.data_type == main.data_type && stage.mode == main.mode && same_query_dim && same_value_dim;
}

} // namespace

bool sweeps_house(const arch::ArchSet& archs, const std::vector<ArchName>& targets) {
    return std::ranges::any_of(
        targets, [&](const ArchName& target) { return !archs.at(target).has_rule_set("claim"); });
}

std::string house_instead(const std::string& config, const std::vector<ArchName>& targets) {
    std::vector<std::string_view> names;
    for (const ArchName& target : targets) names.push_back(target.view());
    return fmt::format("there is no list claim for {}; {} restricts the list house", fmt::join(names, ","),
                       config);
}

void ListOptions::declare(OptionSet& options, const std::string& when, const std::string& config_too) {
    declare_list(options, when, config_too);
    filters_.declare(options);
}

void keep_first(std::vector<KernelConfig>& kernels, std::int64_t limit) {
    if (limit < 0) throw InputError(fmt::format("--max-kernels {}: allowed: 0 or more", limit));
    if (limit == 0) return;
    using Group = std::pair<ArchName, ApiFamily>;
    const auto group_of = [](const KernelConfig& kernel) {
        return Group{kernel.arch, traits_of(kernel.signature.family).api};
    };
    const auto is_main = [](const KernelConfig& kernel) {
        return traits_of(traits_of(kernel.signature.family).api).main == kernel.signature.family;
    };
    std::map<Group, std::vector<Signature>> mains;
    for (const KernelConfig& kernel : kernels) {
        auto& first = mains[group_of(kernel)];
        if (is_main(kernel) && std::ssize(first) < limit) first.push_back(kernel.signature);
    }
    std::map<Group, std::int64_t> taken;
    std::erase_if(kernels, [&](const KernelConfig& kernel) {
        const Group group = group_of(kernel);
        const auto& first = mains[group];
        if (is_main(kernel) || first.empty()) return taken[group]++ >= limit;
        return std::ranges::none_of(first,
                                    [&](const Signature& main) { return runs_with(kernel.signature, main); });
    });
}

void ListOptions::declare_without_where(OptionSet& options, const std::string& when) {
    declare_list(options, when, {});
    filters_.declare_files(options);
}

void ListOptions::declare_list(OptionSet& options, const std::string& when, const std::string& config_too) {
    options.option(
        "--rules", rules_,
        fmt::format("{}which list: {} (default: {}; with a sweep configuration claim, and house for "
                    "an architecture that has no list claim)",
                    when, fmt::join(choices_, ", "), usual_));
    options.list(
        "--config", configs_,
        fmt::format("{}sweep configuration (cases/sweeps), which restricts the list{}", when, config_too));
    options.option("--profile,--receipt", profile_,
                   when + "profile, or upstream's receipt number (fmha enumerate --show-profiles)");
    options.option("--max-kernels", max_kernels_, when + max_kernels_help);
}

bool ListOptions::restricts() const {
    return !rules_.empty() || !profile_.empty() || filters_.any() || limited();
}

std::vector<std::string> ListOptions::arguments() const {
    std::vector<std::string> words;
    const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {option, value});
    };
    for (const std::string& config : configs_) add("--config", config);
    add("--rules", rules_);
    add("--profile", profile_);
    for (const std::string& word : filters_.arguments()) words.push_back(word);
    if (limited()) add("--max-kernels", std::to_string(max_kernels_));
    return words;
}

bool ListOptions::sweeps() const {
    return configs_.size() == 1 && is_sweep(configs_.front());
}

void ListOptions::take_configs(std::vector<std::string>& files) {
    std::erase_if(files, [&](const std::string& file) {
        const bool config = file.ends_with(".json") && std::filesystem::exists(file) && is_sweep(file);
        if (config) configs_.push_back(file);
        return config;
    });
}

catalog::RuleSet ListOptions::rules() const {
    if (!instead_.empty()) return catalog::RuleSet::house;
    if (rules_.empty() && sweeps()) return catalog::RuleSet::claim;
    if (rules_.empty()) return parse_option<catalog::RuleSet>("--rules", usual_);
    if (std::ranges::find(choices_, rules_) == choices_.end())
        throw InputError(
            fmt::format("--rules {}: not known here; allowed: {}", rules_, fmt::join(choices_, ", ")));
    return parse_option<catalog::RuleSet>("--rules", rules_);
}

catalog::Request ListOptions::request(const arch::ArchSet& archs, std::vector<ArchName> targets) {
    if (rules_.empty() && sweeps() && sweeps_house(archs, targets))
        instead_ = house_instead(configs_.front(), targets);
    catalog::Request request;
    request.rules = rules();
    request.targets = std::move(targets);
    if (!profile_.empty()) request.profile = catalog::parse_profile(profile_);
    if (configs_.size() > 1) throw InputError("--config: one sweep configuration at a time");
    if (!configs_.empty())
        request.sweep =
            catalog::read_sweep_config(configs_.front(), catalog::sweep_use(request.rules, false));
    return request;
}

std::string ListOptions::sentence() const {
    if (!filters_.any()) return instead_;
    return instead_.empty() ? filters_.sentence() : instead_ + "\n" + filters_.sentence();
}

void ListOptions::filter(std::vector<KernelConfig>& kernels) {
    if (!filters_.any()) return;
    filters_.keep(kernels, rules());
    if (kernels.empty()) throw InputError(fmt::format("--where {}: no kernel is left", filters_.text()));
}

} // namespace fmha::cli
