#include "harness/cli/catalogue_choice.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/catalogue/listed_kernels.hpp"
#include "harness/cli/catalog_options.hpp"
#include "kernels/catalog/glob.hpp"
#include "kernels/catalog/query/row_filter.hpp"
#include "kernels/generator/sample.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <utility>

namespace fmha::cli {

void CatalogueChoice::declare(OptionSet& options) {
    options.flag("--catalogue", on_,
                 "Instead of case files: every kernel of the list of --rules, each on a problem of its own");
    options_.declare_without_where(options, "With --catalogue, and --config without it: ");
    options.flag(
        "--covering", covering_,
        "With --catalogue: a sample with every data type, head dimension, tile and pipeline, and every "
        "pair of features, of the kernels that no rule forbids");
    options.option(
        "--sample", sample_,
        "With --catalogue: number of kernels of that sample to keep of each family: the first ones, which "
        "cover most");
    options.output("--ledger", ledger_,
                   "With --catalogue: write a line for each kernel: name, account, and the rule or reason");
}

std::vector<harness::Case> CatalogueChoice::choose(const arch::ArchSet& archs, const std::string& arch,
                                                   const CatalogueFilter& filter) {
    filter_ = filter;
    const catalog::Request request = options_.request(archs, {archs.at(arch).name()});
    list_.clear();
    catalog::enumerate(archs, request, [&](const KernelConfig& listed) {
        // Records of ck carry the name of a group of architectures, which is part of their names.
        list_.push_back({catalog::name_of(request.rules, listed), listed});
        list_.back().config.arch = request.targets.front();
    });
    all_ = harness::witnesses(list_);
    chosen_ = all_;
    keep(kept_kernels(filter));
    std::vector<harness::Witness> named;
    for (const std::string& name : filter.names) {
        const auto found = std::ranges::find(
            chosen_, name, [](const harness::Witness& witness) { return std::string_view(witness.of.id); });
        if (found == chosen_.end())
            throw InputError(
                fmt::format("{}: no witness of {} for {} has this name, or the other options leave "
                            "none of its kernels",
                            name, rules(), arch));
        named.push_back(*found);
    }
    if (!filter.names.empty()) chosen_ = std::move(named);
    if (chosen_.empty())
        throw InputError(fmt::format("--catalogue: no kernel of {} for {} is left", rules(), arch));
    std::vector<harness::Case> cases;
    for (const harness::Witness& witness : chosen_) cases.push_back(witness.of);
    return cases;
}

std::vector<bool> CatalogueChoice::kept_kernels(const CatalogueFilter& filter) {
    std::vector<bool> kept(list_.size(), true);
    std::vector<KernelConfig> configs;
    for (const auto& kernel : list_) configs.push_back(kernel.config);
    if (!filter.family.empty()) {
        const catalog::FamilySet families = parse_families({filter.family});
        for (std::size_t i = 0; i < list_.size(); ++i)
            kept[i] = kept[i] && families.has(configs[i].signature.family);
    }
    if (!filter.kernel.empty())
        for (std::size_t i = 0; i < list_.size(); ++i)
            kept[i] = kept[i] && catalog::glob_match(filter.kernel, list_[i].name);
    if (!filter.where.empty()) {
        const auto naming = options_.rules();
        catalog::RowFilter where(filter.where, [naming](const KernelConfig& config, std::string& name) {
            catalog::append_name(naming, config, name);
        });
        std::vector<bool> hit(list_.size(), false);
        where.select(configs, [&](std::size_t i) { hit[i] = true; });
        for (std::size_t i = 0; i < list_.size(); ++i) kept[i] = kept[i] && hit[i];
    }
    keep_by_options(kept);
    if (!covering_ && !sample_) return kept;
    std::vector<bool> refused(list_.size(), false);
    for (const harness::Witness& witness : all_)
        for (const std::size_t i : witness.kernels)
            refused[i] = witness.of.expect != harness::Expectation::pass;
    std::set<KernelFamily> run;
    for (std::size_t i = 0; i < list_.size(); ++i)
        if (kept[i] && !refused[i]) run.insert(configs[i].signature.family);
    // Of a family's kernels those that run, if there are any.
    std::vector<bool> sampled(list_.size(), false);
    std::vector<std::size_t> positions;
    std::vector<KernelConfig> own;
    for (std::size_t i = 0; i < list_.size(); ++i)
        if (kept[i] && refused[i] != run.contains(configs[i].signature.family)) {
            positions.push_back(i);
            own.push_back(configs[i]);
        }
    for (const std::size_t i : generator::sample_of_each_family(own, sample_)) sampled[positions[i]] = true;
    return sampled;
}

void CatalogueChoice::keep_by_options(std::vector<bool>& kept) {
    std::vector<KernelConfig> rest;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < list_.size(); ++i)
        if (kept[i]) {
            rest.push_back(list_[i].config);
            positions.push_back(i);
        }
    options_.filter(rest);
    options_.keep_first(rest);
    // Both leave a part of the list in its order.
    std::size_t next = 0;
    for (const std::size_t i : positions) {
        kept[i] = next < rest.size() && list_[i].config == rest[next];
        if (kept[i]) ++next;
    }
}

std::string CatalogueChoice::words() const {
    std::string text = rules();
    const auto given = options_.arguments();
    for (std::size_t i = 0; i + 1 < given.size(); i += 2)
        if (given[i] != "--rules") text += fmt::format(" {} {}", given[i], system::shell_word(given[i + 1]));
    return text;
}

void CatalogueChoice::keep(const std::vector<bool>& kernels) {
    for (harness::Witness& witness : chosen_)
        std::erase_if(witness.kernels, [&](std::size_t i) { return !kernels[i]; });
    std::erase_if(chosen_, [](const harness::Witness& witness) { return witness.kernels.empty(); });
}

harness::TileCounts CatalogueChoice::tiles() const {
    harness::TileCounts counts;
    for (const harness::ListedKernel& kernel : list_) harness::count_tile(kernel.config, counts);
    return counts;
}

std::unique_ptr<harness::KernelSource>
CatalogueChoice::source(std::shared_ptr<const harness::Target> target) const {
    return std::make_unique<harness::ListedKernels>(list_, all_, chosen_, std::move(target));
}

harness::CatalogueLedger CatalogueChoice::account(const std::vector<harness::Case>& cases,
                                                  const std::vector<harness::CaseResult>& results) const {
    std::set<std::string_view> names;
    for (const harness::Case& c : cases) names.insert(c.id);
    std::vector<harness::Witness> asked = chosen_;
    std::erase_if(asked, [&](const harness::Witness& witness) { return !names.contains(witness.of.id); });
    harness::CatalogueLedger ledger(list_, all_, asked);
    for (const harness::CaseResult& result : results) ledger.add(result);
    return ledger;
}

void CatalogueChoice::check_ledger_file() const {
    if (!ledger_.empty()) system::check_writable(ledger_);
}

void CatalogueChoice::check(bool builds) const {
    if (sample_ == 0U) throw InputError("--sample 0: allowed: 1 or more");
    if (on()) return;
    if (const auto given = options_.arguments(); !given.empty() && !builds)
        throw InputError(
            fmt::format("{} needs --catalogue, or --config of a sweep; cases of files run on the "
                        "kernels of house",
                        given.front()));
    for (const auto& [given, option] : {std::pair{!ledger_.empty(), "--ledger"},
                                        {covering_, "--covering"},
                                        {sample_.has_value(), "--sample"}})
        if (given) throw InputError(fmt::format("{} needs --catalogue, or --config of a sweep", option));
}

std::vector<std::string> CatalogueChoice::recorded(const std::string& arch_dir) const {
    std::vector<std::string> words{"--catalogue"};
    const auto add = [&](const char* option, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {option, value});
    };
    for (const std::string& word : options_.arguments()) words.push_back(word);
    if (covering_) words.emplace_back("--covering");
    if (sample_) add("--sample", std::to_string(*sample_));
    add("--family", filter_.family);
    add("--where", filter_.where);
    add("--kernel", filter_.kernel);
    add("--arch-dir", arch_dir);
    words.insert(words.end(), filter_.names.begin(), filter_.names.end());
    return words;
}

} // namespace fmha::cli
