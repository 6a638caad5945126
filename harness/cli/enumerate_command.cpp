#include "harness/cli/enumerate_command.hpp"

#include "dispatcher/declarations/nearest.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/strict_json.hpp"
#include "harness/cli/beside.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/kernel_output.hpp"
#include "harness/cli/list_options.hpp"
#include "harness/cli/support_table.hpp"
#include "kernels/arch/usual_arch.hpp"
#include "kernels/catalog/query/columns.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <vector>

namespace fmha::cli {
namespace {

/// Records are handed to filters in batches, so that a list of millions is never in memory as a whole.
constexpr std::size_t batch_size = 50'000;

std::vector<int> parse_optdim(const std::vector<std::string>& texts) {
    std::vector<int> dims;
    for (const std::string& text : texts) {
        int dim = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
        if (error != std::errc{} || end != text.data() + text.size() || (dim <= 0 && dim != -1))
            throw InputError(fmt::format("--optdim {}: expected a head dimension, or -1 for all", text));
        dims.push_back(dim);
    }
    // Upstream's spelling of "no restriction".
    if (dims == std::vector<int>{-1}) dims.clear();
    return dims;
}

Json to_json(const catalog::Why& why) {
    auto steps = Json::array();
    for (const catalog::WhyStep& step : why.steps) {
        const std::string_view kind = step.kind == catalog::WhyStep::Kind::table  ? "table"
                                      : step.kind == catalog::WhyStep::Kind::rule ? "rule"
                                                                                  : "option";
        steps.push_back({{"kind", kind}, {"id", step.id}, {"text", step.text}, {"removes", step.removes}});
    }
    Json document = {{"name", why.name}, {"listed", why.listed}, {"steps", std::move(steps)}};
    if (why.config) document["kernel"] = fields_to_json(*why.config);
    if (!why.nearest.empty()) document["nearest"] = why.nearest;
    return document;
}

} // namespace

std::string_view EnumerateCommand::example() const {
    return "fmha enumerate --arch gfx950 --rules ck --profile pytorch --names\n"
           "  fmha enumerate --arch gfx950 --where \"c.hdim_q == 128 and c.pipeline == 'qr_async'\" --count\n"
           "  fmha enumerate cases/sweeps/fwd_ci.json --arch gfx950 --filter-file mine.py --list\n"
           "  fmha enumerate --arch gfx942 --why "
           "fmha_fwd_fp16_batch_h128_qr_async_t64x128x32x128x32x128_pad1111_mask="
           "no_bias=no";
}

void EnumerateCommand::declare(OptionSet& options) {
    options.positionals("CONFIG", configs_, "the file of --config");
    options.list("--arch", archs_, fmt::format("architectures (default {})", arch::usual_arch));
    arch_files_.declare(options);
    options.choice(
        "--rules", rules_,
        "rule set (default: claim; house where a sweep configuration meets an architecture that has "
        "no list claim)");
    options.option("--profile,--receipt", profile_,
                   "profile, or upstream's receipt number (--show-profiles)");
    options.choice("--masks", masks_, "how ck spells masks");
    options.list("--family,--variant", families_,
                 "kernel families, or splitkv, bwd, … for all kernels behind an API");
    options.list("--optdim", optdim_, "query head dimensions to keep");
    options.each("--filter", globs_,
                 "ck: glob over names, PATTERN for every API or API=PATTERN; other rule sets: as --where");
    options.option("--config", config_,
                   "claim, stored, sweep, house: configuration file (variant and trait lists)");
    options.flag("--exhaustive", exhaustive_, "sweep: products without constraints");
    filters_.declare_without_filter(options);
    options.option("--max-kernels", max_kernels_, max_kernels_help);
    options.flag(
        "--custom-factory", custom_factory_,
        "ck: upstream's switch CK_TILE_FMHA_FWD_CUSTOM_FACTORY (one more forward tile, tables of gfx9)");
    options.flag("--count", count_, "table of families and data types (the default)");
    options.flag("--names", names_, "one name a line, in order of emission");
    options.flag(
        "--count-only", count_only_,
        "one line, as upstream's scripts have it: Expanded CONFIG -> N configs (filtered F, kept K)");
    options.flag("--list", list_, "that line, and the kernels as \"  [i] NAME\"");
    options.option("--why", why_, "say which table entry and rules produce a name, or which rule removes it");
    options.option("--correct", correct_,
                   "a kernel configuration as JSON, - for standard input: print the nearest valid one, and "
                   "why each field changed");
    options.flag(
        "--support", support_,
        "table of the targets that compute each family, architecture and data type of the working list "
        "(rule set house)");
    options.flag("--show-rules", show_rules_, "list the rules of the rule set");
    options.flag("--show-profiles", show_profiles_, "list the profiles and their numbers");
    options.flag("--show-columns", show_columns_, "list the columns of c");
    options.format(format_, "text for people, json for programs (records with all fields "
                            "unless --count or --names is given)");
}

Json EnumerateCommand::shown(catalog::RuleSet rules) const {
    auto rows = Json::array();
    if (show_profiles_)
        for (const catalog::ProfileRow& row : catalog::profiles())
            rows.push_back({{"name", to_string(row.id)},
                            {"number", row.number < 0 ? Json() : Json(row.number)},
                            {"content", row.content}});
    else if (show_columns_) {
        for (const catalog::Column& column : catalog::columns()) rows.push_back(column.name);
        rows.push_back("name");
    } else {
        for (const catalog::RuleRow& row : catalog::rules_of(rules))
            rows.push_back({{"id", row.id}, {"families", row.families}, {"says", row.says}});
    }
    return rows;
}

std::string EnumerateCommand::shown_text(catalog::RuleSet rules) const {
    std::string text;
    if (show_profiles_) {
        for (const catalog::ProfileRow& row : catalog::profiles())
            text += fmt::format("{:<18}{:>4}  {}\n", to_string(row.id),
                                row.number < 0 ? std::string("–") : std::to_string(row.number), row.content);
        return text;
    }
    if (show_columns_) {
        for (const catalog::Column& column : catalog::columns()) text += fmt::format("{}\n", column.name);
        return text + "name\n";
    }
    const auto rows = catalog::rules_of(rules);
    std::size_t ids = 0, families = 0;
    for (const catalog::RuleRow& row : rows) {
        ids = std::max(ids, row.id.size());
        families = std::max(families, row.families.size());
    }
    for (const catalog::RuleRow& row : rows)
        text += fmt::format("{:<{}}  {:<{}}  {}\n", row.id, ids, row.families, families, row.says);
    return text;
}

int EnumerateCommand::correct(const arch::ArchSet& archs, const Streams& streams) const {
    const Json stated = parse_strict_json(input_text(correct_), correct_);
    auto wanted = fields_from_json<KernelConfig>(stated, correct_);
    if (archs_.size() > 1) throw InputError("--correct is about one architecture; --arch names several");
    if (wanted.arch.empty())
        wanted.arch = archs.at(archs_.empty() ? std::string(arch::usual_arch) : archs_.front()).name();
    else if (!archs_.empty() && wanted.arch.view() != archs_.front())
        throw InputError(
            fmt::format("{} names arch {}, but --arch is {}", correct_, wanted.arch.view(), archs_.front()));
    const Correction correction = nearest_valid(wanted, archs, stated_fields(stated));
    fmt::print(streams.out, "{}",
               format_ == OutputFormat::json ? to_json(correction).dump(2) + "\n" : to_text(correction));
    return correction.changes.empty() ? all_well : check_failed;
}

std::string EnumerateCommand::support(const arch::ArchSet& archs) const {
    refuse_beside("--support", {{filters_.any(), "--where or --where-file"},
                                {!why_.empty(), "--why"},
                                {!optdim_.empty(), "--optdim"},
                                {!globs_.empty(), "--filter"},
                                {!config_.empty() || !configs_.empty(), "--config"},
                                {max_kernels_ != 0, "--max-kernels"},
                                {count_only_, "--count-only"},
                                {list_, "--list"},
                                {profile_ != "ck_default", "--profile"},
                                {exhaustive_, "--exhaustive"},
                                {names_, "--names"},
                                {count_, "--count"}});
    if (rules_ && *rules_ != catalog::RuleSet::claim && *rules_ != catalog::RuleSet::house)
        throw InputError(
            fmt::format("--support is about the rule set house, --rules is {}", to_string(*rules_)));
    std::vector<ArchName> on;
    if (archs_.empty())
        for (const arch::ArchTables& tables : archs.all()) on.push_back(tables.name());
    else
        on = parse_archs(archs, archs_);
    const SupportTable table(archs, on, parse_families(families_));
    return format_ == OutputFormat::json ? table.to_json().dump(2) + "\n" : table.to_text();
}

void EnumerateCommand::refuse_what_lists_have(std::string_view option, catalog::RuleSet rules) const {
    const bool is_filter = rules != catalog::RuleSet::ck && !globs_.empty();
    refuse_beside(option, {{filters_.any(), "--where or --where-file"},
                           {is_filter, "--filter"},
                           {max_kernels_ != 0, "--max-kernels"},
                           {count_only_, "--count-only"},
                           {list_, "--list"},
                           {names_, "--names"},
                           {count_, "--count"},
                           {!why_.empty() && !correct_.empty(), "--correct"}});
}

void EnumerateCommand::refuse_choices(std::string_view option) const {
    refuse_beside(option, {{!families_.empty(), "--family"},
                           {!config_.empty() || !configs_.empty(), "--config"},
                           {profile_ != "ck_default", "--profile"},
                           {masks_ != catalog::MaskVocabulary::simplified, "--masks"},
                           {!optdim_.empty(), "--optdim"},
                           {!globs_.empty(), "--filter"},
                           {filters_.any(), "--where, --where-file or --python"},
                           {max_kernels_ != 0, "--max-kernels"},
                           {exhaustive_, "--exhaustive"},
                           {custom_factory_, "--custom-factory"}});
}

int EnumerateCommand::run(const Streams& streams) {
    const catalog::RuleSet asked = rules_.value_or(catalog::RuleSet::claim);
    const bool json = format_ == OutputFormat::json;
    if (names_ && count_) throw InputError("--names and --count exclude one another");
    if ((count_only_ || list_) && (names_ || count_ || json))
        throw InputError(
            "--count-only and --list print upstream's lines: leave out --names, --count and --format");
    if (const int shows = int{show_profiles_} + int{show_columns_} + int{show_rules_}; shows > 0) {
        if (shows + int{support_} + int{!why_.empty()} + int{!correct_.empty()} + int{names_} + int{count_} +
                int{count_only_} + int{list_} >
            1)
            throw InputError(
                "--show-rules, --show-profiles and --show-columns print tables of their own: each "
                "excludes the others, --support, --why, --correct, --names, --count, --count-only "
                "and --list");
        const auto shown_option = show_profiles_  ? "--show-profiles"
                                  : show_columns_ ? "--show-columns"
                                                  : "--show-rules";
        refuse_choices(shown_option);
        if (!archs_.empty()) throw InputError(fmt::format("{} and --arch exclude one another", shown_option));
        fmt::print(streams.out, "{}", json ? shown(asked).dump(2) + "\n" : shown_text(asked));
        return all_well;
    }
    const auto archs = arch_files_.load();
    if (support_) {
        fmt::print(streams.out, "{}", support(archs));
        return all_well;
    }
    for (const auto& [told, option] : {std::pair{!why_.empty(), "--why"}, {!correct_.empty(), "--correct"}})
        if (told) refuse_what_lists_have(option, asked);
    if (!correct_.empty()) {
        refuse_choices("--correct");
        if (rules_) throw InputError("--correct and --rules exclude one another");
        return correct(archs, streams);
    }
    const catalog::Request request = this->request(archs, asked, streams);
    if (!why_.empty()) {
        const auto why = catalog::why(archs, request, why_);
        fmt::print(streams.out, "{}", json ? to_json(why).dump(2) + "\n" : why.to_string());
        return why.config ? all_well : check_failed;
    }
    if (count_only_ || list_) {
        expand(archs, request, streams);
        return all_well;
    }
    const catalog::Naming naming(request.rules, request.masks);
    if (names_ || (json && !count_)) {
        KernelWriter writer(streams.out, naming,
                            !json    ? KernelFormat::names
                            : names_ ? KernelFormat::names_json
                                     : KernelFormat::records_json);
        each_kernel(archs, request, [&](const KernelConfig& config) { writer.add(config); });
        writer.finish();
        if (filters_.any()) fmt::print(streams.err, "{}\n", filters_.sentence());
        return all_well;
    }
    // The records of ck carry the names of upstream's architecture groups, several to a run.
    const bool one_table = request.rules == catalog::RuleSet::ck || request.targets.size() == 1;
    std::string title;
    if (one_table) title = fmt::format("{}", fmt::join(archs_, ","));
    KernelCounter counter(title);
    each_kernel(archs, request, [&](const KernelConfig& config) { counter.add(config); });
    fmt::print(streams.out, "{}", json ? counter.to_json() : counter.to_text());
    if (filters_.any()) fmt::print(json ? streams.err : streams.out, "{}\n", filters_.sentence());
    return all_well;
}

catalog::Request EnumerateCommand::request(const arch::ArchSet& archs, catalog::RuleSet rules,
                                           const Streams& streams) {
    catalog::Request request;
    if (archs_.empty()) archs_ = {arch::usual_arch};
    if (configs_.size() + (config_.empty() ? 0U : 1U) > 1)
        throw InputError("name one configuration: as CONFIG or with --config");
    if (!configs_.empty()) config_ = configs_.front();
    if (!rules_ && !config_.empty() && !exhaustive_) {
        const auto targets = parse_archs(archs, archs_);
        if (sweeps_house(archs, targets)) {
            rules = catalog::RuleSet::house;
            fmt::print(streams.err, "{}\n", house_instead(config_, targets));
        }
    }
    request.rules = rules;
    request.targets = parse_targets(archs, rules, archs_);
    request.profile = catalog::parse_profile(profile_);
    request.masks = masks_;
    request.optdim = parse_optdim(optdim_);
    request.families = parse_families(families_);
    if (rules == catalog::RuleSet::ck)
        request.filters = parse_filters(globs_);
    else
        for (const std::string& expression : globs_) filters_.add_expression(expression);
    request.exhaustive = exhaustive_;
    if (!config_.empty())
        request.sweep = catalog::read_sweep_config(config_, catalog::sweep_use(rules, exhaustive_));
    request.custom_factory = custom_factory_;
    return request;
}

void EnumerateCommand::each_kernel(const arch::ArchSet& archs, const catalog::Request& request,
                                   catalog::Sink sink) {
    const catalog::Naming naming(request.rules, request.masks);
    std::vector<KernelConfig> batch, found;
    const auto take = [&](const KernelConfig& config) {
        if (max_kernels_ == 0)
            sink(config);
        else
            found.push_back(config);
    };
    const auto flush = [&] {
        filters_.keep(batch, naming);
        for (const KernelConfig& config : batch) take(config);
        batch.clear();
    };
    if (filters_.any()) {
        batch.reserve(batch_size);
        catalog::enumerate(archs, request, [&](const KernelConfig& config) {
            batch.push_back(config);
            if (batch.size() == batch_size) flush();
        });
        flush();
    } else {
        catalog::enumerate(archs, request, take);
    }
    keep_first(found, max_kernels_);
    for (const KernelConfig& config : found) sink(config);
}

void EnumerateCommand::expand(const arch::ArchSet& archs, const catalog::Request& request,
                              const Streams& streams) {
    const catalog::Naming naming(request.rules, request.masks);
    std::vector<std::string> names;
    std::size_t found = 0;
    each_kernel(archs, request, [&](const KernelConfig& config) {
        ++found;
        if (list_) names.push_back(catalog::name_of(naming, config));
    });
    const std::size_t all = filters_.any() ? filters_.seen() : found;
    fmt::print(streams.out, "Expanded {} -> {} configs",
               config_.empty() ? fmt::format("{} for {}", to_string(request.rules), fmt::join(archs_, ","))
                               : config_,
               all);
    if (all > found) fmt::print(streams.out, " (filtered {}, kept {})", all - found, found);
    fmt::print(streams.out, "\n");
    for (std::size_t i = 0; i < names.size(); ++i) fmt::print(streams.out, "  [{}] {}\n", i, names[i]);
}

std::unique_ptr<Command> make_enumerate_command() {
    return std::make_unique<EnumerateCommand>();
}

} // namespace fmha::cli
