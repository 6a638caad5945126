#include "harness/cli/case_choice.hpp"

#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/beside.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/run/kernel_dims.hpp"
#include "harness/run/planned_kernels.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>

namespace fmha::cli {

using harness::Case;

void CaseChoice::declare(OptionSet& options) {
    options.positionals(
        "CASES", names_,
        "Case files, folders, an upstream shape matrix (*.yaml), or printed names of single cases; "
        "without any, every case file");
    options.choice("--tier,--category", tier_,
                   "Highest tier to run; a tier includes the lower ones (default: smoke)");
    options.option("--family,--variant", family_, "Only cases of this kernel family; all: of every one");
    options.option("--seed", seed_,
                   "Give every case another seed, derived from this one and the case's name");
    options.option("--shard", shard_,
                   "i/n: every n-th case, beginning with the i-th; with a --store that knows how long "
                   "they took, the i-th of n "
                   "shards that take equally long");
}

void CaseChoice::check() const {
    if (!of_.catalogue.on() && !family_.empty() && family_ != "all")
        static_cast<void>(parse_option<ApiFamily>("--family", family_));
    // Each kernel of a list is run once, on data that follow from its name.
    if (of_.catalogue.on())
        refuse_beside("--catalogue", {{seed_.has_value(), "--seed"}, {tier_.has_value(), "--tier"}});
}

std::vector<Case> CaseChoice::all() {
    if (!of_.catalogue.on()) return harness::load_cases(names_, load_options());
    return of_.catalogue.choose(
        of_.run.arch_files().load(), of_.processes.arch(),
        {family_, of_.run.where(), of_.run.kernel_filter(), std::exchange(names_, {})});
}

std::vector<Case> CaseChoice::of_shard(const std::vector<Case>& all) {
    const harness::Shard here = shard();
    if (here.count == 1) return all;
    std::map<std::string, double> seconds;
    std::error_code none;
    if (std::filesystem::exists(of_.store.file(), none)) {
        try {
            seconds = store::Store(of_.store.file(), store::Access::read)
                          .case_seconds(of_.run.target_name(), of_.processes.arch());
        } catch (const store::EmptyStore&) {
            // The run is the first one of the file.
        }
    }
    if (seconds.empty()) return harness::take_shard(all, here);
    const auto shards = harness::balanced_shards(all, here.count, seconds);
    balance_ = system::sha256(fmt::format("{}", fmt::join(shards, " ")));
    std::vector<Case> mine;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (shards[i] == here.index) mine.push_back(all[i]);
    return mine;
}

std::vector<Case> CaseChoice::at_every_tier(const std::vector<std::string>& names) {
    harness::LoadOptions load = load_options();
    load.tier = harness::Tier::nightly;
    load.family.reset();
    load.run_seed.reset();
    return harness::load_cases(names, load);
}

std::vector<std::string> CaseChoice::left_out() {
    return harness::left_out(names_, load_options());
}

std::vector<std::pair<std::string, harness::PairTable>> CaseChoice::pairs() {
    for (const std::string& name : names_)
        if (name.ends_with(']') || name.find("]@") != std::string::npos)
            throw InputError(
                fmt::format("--pairs {}: is the name of a case; allowed: case files and folders", name));
    auto tables = harness::pair_tables(names_, load_options());
    if (tables.empty()) throw InputError("--pairs: none of the case files has a cover");
    return tables;
}

harness::Shard CaseChoice::shard() const {
    return shard_.empty() ? harness::Shard{} : harness::parse_shard(shard_);
}

std::string CaseChoice::words() const {
    return fmt::format("{} tier={} family={}",
                       of_.catalogue.on() ? "list " + of_.catalogue.words()
                       : names_.empty()   ? "all"
                                          : fmt::format("{}", fmt::join(names_, " ")),
                       to_string(tier()), family_);
}

harness::LoadOptions CaseChoice::load_options() {
    harness::LoadOptions load{.root = of_.run.root(), .tier = tier()};
    load.family = parse_enum<ApiFamily>(family_);
    load.run_seed = seed_;
    load.kernel_dims = [this](ApiFamily family) {
        return harness::kernel_dims(of_.processes.arch(), family, of_.run.arch_files().load());
    };
    load.planned_tile = [this, tiles = harness::TilePlanner()](const Case& c) mutable {
        if (!tiles) tiles = harness::house_tiles(of_.processes.arch(), of_.run.arch_files().load());
        return tiles(c);
    };
    return load;
}

} // namespace fmha::cli
