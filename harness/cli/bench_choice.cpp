#include "harness/cli/bench_choice.hpp"

#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/bench/problem_cases.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/shape_ranges.hpp"
#include "harness/cli/cases_root.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/device_splits.hpp"
#include "harness/run/kernel_dims.hpp"
#include "harness/run/planned_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace fmha::cli {

using harness::Case;
using harness::KernelChoice;

void BenchChoice::declare(OptionSet& options) {
    options.positionals("CASES", files_,
                        "Case files, folders, shape matrices (*.yaml), printed names of single cases, or the "
                        "file of --config");
    options.each(
        "--shape", shapes_,
        "A case of your own, \"field=value,…\" in the language of case files (may be repeated); packed, "
        "without LSE unless it says otherwise. A value may be a range, seqlen=32:2048:x2 or batch=1:8:+1");
    options.option("--problems", problems_,
                   "Sizes \"b,h,s,d\" or \"b,hq,hk,sq,sk,d\", with \";\" between: each combination of "
                   "features of the list's "
                   "kernels, with these sizes (a list that is named alone has 2,8,1024,128)");
    options.list("--num-splits", num_splits_,
                 "With --problems, or a list alone: numbers of splits of split-KV (default: 1,2,4,8)");
    declare_cases_root(options, root_);
    options.choice("--tier,--category", tier_,
                   "Highest tier to take from CASES; a tier includes the lower ones (default: smoke)");
    options.option("--family,--variant", family_,
                   "Only cases of files, and kernels of lists, of this family; all: of every one");
    list_.declare(options, "");
    options.choice(
        "--kernels", kernels_,
        "The planned kernel, every accepting kernel with the smallest head dimensions that accept, or every "
        "accepting kernel (default: matching with a shape matrix or --problems, else planned)");
    options.option("--kernel", kernel_filter_,
                   "With other kernels than the planned ones: only those whose name matches this glob");
}

bool BenchChoice::names_matrix() const {
    return std::ranges::any_of(
        files_, [](const std::string& file) { return file.ends_with(".yaml") || file.ends_with(".yml"); });
}

catalog::FamilySet BenchChoice::families() const {
    return parse_families(family_.empty() ? std::vector<std::string>() : std::vector{family_});
}

KernelChoice BenchChoice::kernels() const {
    if (kernels_) return *kernels_;
    const bool list_alone = files_.empty() && shapes_.empty();
    return names_matrix() || !problems_.empty() || list_alone ? KernelChoice::matching
                                                              : KernelChoice::planned;
}

void BenchChoice::check() {
    list_.take_configs(files_);
    if (tier_ && files_.empty())
        throw InputError("--tier needs CASES: a --shape, --problems and kernels of a list have none");
    if (!shapes_.empty() && !families().has(KernelFamily::fwd))
        throw InputError(
            fmt::format("--family {}: a --shape is a case of fwd; allowed beside it: fwd, all", family_));
    if (!kernel_filter_.empty() && kernels() == KernelChoice::planned)
        throw InputError("--kernel needs --kernels matching or all");
    if (!num_splits_.empty() && problems_.empty() && !(files_.empty() && shapes_.empty()))
        throw InputError("--num-splits needs --problems, or a list that is named alone");
    if (files_.empty() && shapes_.empty() && problems_.empty() && list_.configs().empty() &&
        !list_.restricts())
        throw InputError(
            "nothing to time: name cases, or give a --shape, --problems or a list (--config, --rules)");
    if (list_.configs().size() > 1)
        throw InputError("name one sweep configuration: as one of CASES or with --config");
    if (!list_.configs().empty() && !list_.sweeps())
        throw InputError(fmt::format("--config {}: not a sweep configuration, which has a \"variant\"",
                                     list_.configs().front()));
}

namespace {

/// The case of a --shape.
Case case_of(const std::string& shape) {
    Case c;
    c.id = shape;
    c.lse = false;
    c.stride_padding = 0;
    harness::apply_overrides(shape, shape, c);
    harness::check_form(c, "--shape " + shape, harness::Sizes::any); // a shape without room is a result
    if (c.expect != harness::Expectation::pass)
        throw InputError(
            fmt::format("--shape {}: expect is {}; allowed: pass, because a refusal takes no time", shape,
                        to_string(c.expect)));
    return c;
}

/// Why --problems have no case: which head dimensions the kernels of the list have.
std::string no_head_dimension(const std::vector<harness::ListedKernel>& kernels) {
    std::set<std::pair<std::int64_t, std::int64_t>> dims;
    for (const harness::ListedKernel& kernel : kernels) {
        const Signature& signature = kernel.config.signature;
        if (traits_of(traits_of(signature.family).api).main == signature.family)
            dims.emplace(signature.hdim_q, signature.hdim_v);
    }
    std::vector<std::string> names;
    for (const auto& [q, v] : dims) names.push_back(q == v ? std::to_string(q) : fmt::format("{}x{}", q, v));
    return names.empty()
               ? "--problems: the list has no kernel of a main stage, only of those around it"
               : fmt::format(
                     "--problems: no kernel of the list has a head dimension that they name; it has {}",
                     fmt::join(names, ", "));
}

} // namespace

std::vector<Case> BenchChoice::cases(const arch::ArchSet& archs, const std::string& arch) {
    std::vector<Case> chosen;
    if (!files_.empty()) add_files(archs, arch, chosen);
    for (const std::string& text : shapes_)
        for (const std::string& shape : harness::expand_ranges(text)) chosen.push_back(case_of(shape));
    if (!problems_.empty() || (files_.empty() && shapes_.empty())) {
        const auto problems = harness::parse_problems(problems_.empty() ? "2,8,1024,128" : problems_);
        std::vector<std::int64_t> splits;
        for (const std::string& text : num_splits_) {
            if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 4)
                throw InputError(fmt::format("--num-splits {}: allowed: 0 (automatic) to 9999", text));
            splits.push_back(std::stoll(text));
        }
        if (splits.empty()) splits = {1, 2, 4, 8};
        std::vector<harness::ListedKernel> kernels;
        for (const KernelConfig& config : kernels_of(archs, arch, families()))
            kernels.push_back({catalog::name_of(list_.rules(), config), config});
        for (Case& c : harness::problem_cases(kernels, problems, splits)) chosen.push_back(std::move(c));
        if (chosen.empty()) throw InputError(no_head_dimension(kernels));
    }
    if (chosen.empty())
        throw InputError(
            left_out_ > 0 ? "every case named expects a refusal, which takes no time"
                          : fmt::format("--family {}: no case named is of this family{}", family_,
                                        names_matrix() ? "; a shape matrix has cases of fwd and bwd" : ""));
    std::set<std::string> names;
    for (Case& c : chosen) {
        // Rows of one name would be one in journals and stores.
        if (!names.insert(c.id).second) throw InputError(fmt::format("the case {} is named twice", c.id));
        c = harness::with_device_splits(std::move(c), arch, archs);
    }
    return chosen;
}

void BenchChoice::add_files(const arch::ArchSet& archs, const std::string& arch, std::vector<Case>& chosen) {
    harness::LoadOptions load{.root = fmha::cli::cases_root(root_),
                              .tier = tier(),
                              .planned_tile = harness::house_tiles(arch, archs)};
    if (!family_.empty() && family_ != "all") load.family = parse_option<ApiFamily>("--family", family_);
    load.kernel_dims = [&](ApiFamily family) { return harness::kernel_dims(arch, family, archs); };
    for (Case& c : harness::load_cases(files_, load)) {
        if (c.expect == harness::Expectation::pass)
            chosen.push_back(std::move(c));
        else
            ++left_out_;
    }
}

const std::vector<KernelConfig>& BenchChoice::kernels_of(const arch::ArchSet& archs, const std::string& arch,
                                                         catalog::FamilySet families) {
    if (is_listed_) return listed_;
    catalog::Request request = list_.request(archs, {archs.at(arch).name()});
    if (!request.sweep) request.families = families;
    listed_ = catalog::list(archs, request);
    // Records of audit lists may break rules; no plan may have them.
    const auto& limits = archs.at(arch).hardware().limits;
    if (request.rules != catalog::RuleSet::house)
        std::erase_if(listed_, [&](const KernelConfig& config) {
            return std::ranges::any_of(validate(config, limits), [](const RuleFinding& finding) {
                return finding.severity == Severity::error;
            });
        });
    list_.filter(listed_);
    list_.keep_first(listed_);
    if (listed_.empty()) throw InputError(fmt::format("the list has no kernel for {}", arch));
    is_listed_ = true;
    return listed_;
}

std::unique_ptr<harness::KernelSource>
BenchChoice::source(const std::shared_ptr<const harness::Target>& target, const std::vector<Case>& cases) {
    const auto naming = list_.rules();
    return harness::listed_kernels(
        target, kernels_of(target->archs(), target->arch(), harness::kernel_families_of(cases)),
        [naming](const KernelConfig& config) { return catalog::name_of(naming, config); });
}

std::string BenchChoice::words() const {
    return fmt::format("{} {} tier={} family={} problems={} splits={} kernels={} kernel={} list={}",
                       fmt::join(files_, " "), fmt::join(shapes_, " "), to_string(tier()), family_, problems_,
                       fmt::join(num_splits_, ","), to_string(kernels()), kernel_filter_,
                       fmt::join(list_.arguments(), " "));
}

} // namespace fmha::cli
