// The power of the smoke cases: runs them on mutants of the tile programs, and prints how many they kill. Ends with 1 when a mutant
// survives that the table of survivors does not list, or a mutant that it lists as equivalent is killed.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/parallel.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/families/family.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/programs/ws_sums.hpp"
#include "tests/mutation/score.hpp"
#include "tests/mutation/subject.hpp"
#include "tests/mutation/survivors.hpp"
#include "tests/mutation/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace fmha;
using namespace fmha::harness;
using namespace fmha::harness::test;
using fmha::test::Mutant;
using fmha::test::mutants;

constexpr std::string_view usage =
    "usage: mutation_score [--every N] [--seed N] [--only TEXT] [--cases FILES] [--per-file N] [--survivors "
    "FILE] "
    "[--record FILE] [--jobs N] [--arch A] [--no-checks]\n"
    "  --every N         every Nth mutant that the table of survivors does not prove equivalent; 1 "
    "(default): "
    "all, proved ones too\n"
    "  --seed N          another sample for each number\n"
    "  --only TEXT       those whose name begins with TEXT, or whose names are the lines of the file @TEXT\n"
    "  --cases FILES     a case file or folder, instead of all\n"
    "  --per-file N      cases of each file of the smoke tier; 0: all\n"
    "  --survivors FILE  the table of survivors, instead of the one beside the sources\n"
    "  --record FILE     write every verdict and all sums as JSON\n"
    "  --jobs N          processes at a time\n"
    "  --arch A          the architecture whose kernels are tried, gfx950 (default) or another\n"
    "  --no-checks       only cases may kill: shows what the smoke tier notices by itself\n";

/// From so many mutants on, all cases are prepared once for all of them.
constexpr std::size_t many = 200;

struct Settings {
    std::size_t every = 1, per_file = 12, seed = 0;
    std::string only, cases, survivors, record, arch = "gfx950";
    int jobs = system::hardware_threads();
    bool checks = true;
};

template <class Number>
void read_number(std::string_view option, std::string_view text, Number& to) {
    const auto end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, to);
        read.ec != std::errc() || read.ptr != end || to < 0)
        throw InputError(
            fmt::format("{}: a whole number of at least 0 is expected, found '{}'", option, text));
}

Settings read_settings(std::vector<std::string> words) {
    Settings settings;
    settings.checks = std::erase(words, "--no-checks") == 0;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const std::string& option = words[i];
        if (i + 1 == words.size()) throw InputError(option + ": a value is missing\n" + std::string(usage));
        const std::string& value = words[i + 1];
        if (option == "--every")
            read_number(option, value, settings.every);
        else if (option == "--seed")
            read_number(option, value, settings.seed);
        else if (option == "--per-file")
            read_number(option, value, settings.per_file);
        else if (option == "--jobs")
            read_number(option, value, settings.jobs);
        else if (option == "--only")
            settings.only = value;
        else if (option == "--cases")
            settings.cases = value;
        else if (option == "--survivors")
            settings.survivors = value;
        else if (option == "--arch")
            settings.arch = value;
        else if (option == "--record")
            settings.record = value;
        else
            throw InputError(option + ": there is no such option\n" + std::string(usage));
    }
    if (settings.every == 0) throw InputError("--every: a number of at least 1 is expected, found 0");
    return settings;
}

/// e4m3 comes with descales of whole tensors or without, and in forward alone.
bool team_types(const Signature& has) {
    switch (has.data_type) {
    case DataType::fp16:
    case DataType::bf16:
        return has.qscale == QScale::no_scale;
    case DataType::fp8:
    case DataType::fp8bf16:
    case DataType::fp8fp32:
        return has.family == KernelFamily::fwd &&
               (has.qscale == QScale::no_scale || has.qscale == QScale::pertensor);
    default:
        return false;
    }
}

/// Kernels of forward and of paged-KV run the warp-specialised program where that has all that they need: no list has it for the
/// architecture that cases are planned for.
KernelConfig with_teams(KernelConfig teams) {
    const Signature& has = teams.signature;
    if ((has.family == KernelFamily::fwd || has.family == KernelFamily::fwd_pagedkv) && !has.has_dropout &&
        team_types(has))
        teams.algorithm.pipeline = Pipeline::ws;
    // Tiles of one of the types have rows of several heads, where a kernel with such tiles exists, and tiles of the others have one head's.
    if (teams.algorithm.pipeline == Pipeline::ws && has.family == KernelFamily::fwd &&
        has.data_type == DataType::bf16 && has.mode == Mode::batch && has.bias == BiasType::no_bias)
        teams.algorithm.max_seq_len_q = teams.algorithm.tile.m0;
    // A tile of e4m3 has fewer keys than rows, so that one number is not taken for the other.
    Tile& tile = teams.algorithm.tile;
    if (teams.algorithm.pipeline == Pipeline::ws && kernels::adds_tiles_apart(has.data_type) &&
        tile.n0 == tile.m0 && tile.n0 % (2 * tile.k1) == 0)
        tile.n0 /= 2;
    return teams;
}

/// Kernels over a cache are for few rows where these are padded, so that a tile has rows of several heads. The lists of one architecture have
/// such kernels alone. Of more rows every head has tiles of its own.
KernelConfig with_few_rows(KernelConfig few) {
    if (few.signature.family != KernelFamily::fwd) few.algorithm.max_seq_len_q = few.algorithm.tile.m0 / 2;
    return few;
}

/// Another target, which makes another kernel than it is asked for.
class ChangedTarget final : public Target {
  public:
    using Change = KernelConfig (*)(KernelConfig);
    ChangedTarget(std::shared_ptr<const Target> inner, Change change)
        : inner_(std::move(inner)), change_(change) {}
    std::string_view name() const override { return inner_->name(); }
    const std::string& arch() const override { return inner_->arch(); }
    std::optional<std::string> cannot_execute(const KernelConfig& config) const override {
        return inner_->cannot_execute(config);
    }
    StageKernel make(const KernelConfig& config) const override { return inner_->make(change_(config)); }

  private:
    std::shared_ptr<const Target> inner_;
    Change change_;
};

bool is_over_a_cache(const Case& c) {
    return c.family == ApiFamily::fwd_pagedkv || c.family == ApiFamily::fwd_splitkv ||
           c.family == ApiFamily::batch_prefill;
}

bool is_of_teams(const Mutant& mutant) {
    return mutant.header == "fmha_fwd_ws.hpp" || mutant.header == "ws_keys.hpp" ||
           mutant.expression.starts_with("fmha_fwd_ws(");
}

/// At most `per_file` cases of each file of the smoke tier that need no more work, spread over the file; the first of every file, then the second.
std::vector<Case> smoke_cases(const Settings& settings, double most_work) {
    const std::size_t per_file = settings.per_file;
    const auto named = settings.cases.empty() ? std::vector<std::string>{} : std::vector{settings.cases};
    std::map<std::string, std::vector<Case>> files;
    for (Case& c : load_cases(named, {.root = FMHA_CASES_DIR, .planned_tile = house_tiles(settings.arch)}))
        if (c.expect == Expectation::pass && family_of(c.family).flops(c) <= most_work)
            files[c.id.substr(0, c.id.find_first_of("[@"))].push_back(std::move(c));
    std::vector<Case> chosen;
    bool found = true;
    for (std::size_t n = 0; found; ++n) {
        found = false;
        for (const auto& [file, cases] : files) {
            const std::size_t taken = per_file == 0 ? cases.size() : std::min(per_file, cases.size());
            if (n >= taken) continue;
            chosen.push_back(cases[n * cases.size() / taken]);
            found = true;
        }
    }
    return chosen;
}

/// Whether `name` is wanted by --only.
bool wanted(const std::string& name, const std::string& only, const std::string& names) {
    if (only.starts_with('@')) return names.find("\n" + name + "\n") != std::string::npos;
    return name.starts_with(only);
}

/// FNV-1a: whether a mutant is in the sample depends on its name and the seed alone, so that a change of one program keeps those of
/// the others.
std::uint64_t stable_hash(std::string_view name, std::uint64_t seed) {
    std::uint64_t hash = 0xcbf29ce484222325U + seed;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return hash;
}

/// Whether a mutant is equivalent by another target's table of the programs.
bool is_proved(const std::map<std::string, KnownSurvivor>& of_programs, const std::string& name) {
    const KnownSurvivor* survivor = find_survivor(of_programs, name);
    return survivor != nullptr && survivor->equivalent && survivor->why.find("host") == std::string::npos;
}

std::vector<Mutant> chosen_mutants(const Settings& settings,
                                   const std::map<std::string, KnownSurvivor>& known,
                                   const std::map<std::string, KnownSurvivor>& of_programs) {
    const std::string names =
        settings.only.starts_with('@') ? "\n" + system::read_file(settings.only.substr(1)) : "";
    std::vector<Mutant> chosen;
    for (const Mutant& mutant : mutants()) {
        const std::string name = mutant.name();
        if (!wanted(name, settings.only, names) || is_proved(of_programs, name)) continue;
        // There are few missing waits and barriers, and each is one of its own kind.
        const bool sampled =
            mutant.operation == "wait" || stable_hash(name, settings.seed) % settings.every == 0;
        const KnownSurvivor* survivor = find_survivor(known, name);
        if (sampled && (settings.every == 1 || survivor == nullptr || !survivor->equivalent))
            chosen.push_back(mutant);
    }
    if (chosen.empty()) throw InputError(fmt::format("--only {}: no mutant's name begins so", settings.only));
    return chosen;
}

/// Entries of the table whose places are gone.
std::size_t report_stale(const std::map<std::string, KnownSurvivor>& known) {
    std::size_t stale = 0;
    for (const auto& [name, survivor] : known) {
        const std::map<std::string, KnownSurvivor> one{{name, survivor}};
        const auto all = mutants();
        if (std::ranges::any_of(all,
                                [&](const Mutant& m) { return find_survivor(one, m.name()) != nullptr; }))
            continue;
        fmt::print("{}: the table of survivors lists it, and the programs have no such place\n", name);
        ++stale;
    }
    return stale;
}

int run(const Settings& settings) {
    const Subject subject = harness::test::subject(settings.arch);
    const auto known = read_survivors(settings.survivors.empty() ? FMHA_MUTATION_DIR "/" + subject.survivors
                                                                 : settings.survivors);
    const std::string& other = subject.survivors_of_programs;
    const std::vector<Mutant> tried =
        chosen_mutants(settings, known,
                       other.empty() ? std::map<std::string, KnownSurvivor>{}
                                     : read_survivors(FMHA_MUTATION_DIR "/" + other));
    const std::vector<Case> cases = smoke_cases(settings, subject.most_work);
    fmt::print("{} mutants of {}, {} cases\n", tried.size(), mutants().size(), cases.size());

    ScoreTable table(known);
    std::size_t told = 0, unreached = 0;
    const auto is_proved_here = [&known](const Mutant& mutant) {
        const KnownSurvivor* survivor = find_survivor(known, mutant.name());
        return survivor != nullptr && survivor->equivalent;
    };
    const auto try_on = [&](std::vector<Case> on, const std::vector<Mutant>& some,
                            const std::shared_ptr<const Target>& mutated,
                            const std::shared_ptr<const Target>& original,
                            std::vector<Mutant>* elsewhere = nullptr) {
        if (some.empty()) return;
        const auto families = kernel_families_of(on);
        const std::shared_ptr<const KernelSource> right = house_kernels(original, {}, families);
        // An architecture lacks data types, which says nothing about a mutant.
        std::erase_if(on, [&](const Case& c) { return !right->has_type(c.data_type); });
        Trials trials(std::move(on), house_kernels(mutated, {}, families), right, settings.arch,
                      settings.checks);
        if (some.size() >= many) trials.prepare_all();
        trials.run(some, settings.jobs, [&](std::size_t i, const harness::test::Verdict& verdict) {
            const bool is_unreached = verdict.kind == harness::test::Verdict::Kind::unreached;
            if (elsewhere != nullptr && (is_unreached || (verdict.survives() && !is_proved_here(some[i]))))
                return elsewhere->push_back(some[i]);
            if (is_unreached && !subject.counts_unreached)
                ++unreached;
            else
                table.add(some[i], verdict);
            fmt::print("{}: {} {} {}\n", some[i].name(), to_string(verdict.kind), verdict.gate,
                       verdict.case_name);
            for (; told < table.contradictions().size(); ++told)
                fmt::print("RED {}\n", table.contradictions()[told]);
            std::fflush(stdout);
        });
    };
    std::vector<Mutant> of_teams, of_few_rows, others;
    std::ranges::partition_copy(
        tried, std::back_inserter(of_teams), std::back_inserter(others),
        [&](const Mutant& mutant) { return subject.other_kernels_are_teams && is_of_teams(mutant); });
    // Teams come through places of shared headers that nobody else comes through, and with numbers that nobody else has.
    try_on(cases, others, subject.mutated, subject.original,
           subject.other_kernels_are_teams ? &of_teams : nullptr);
    std::vector<Case> for_teams = cases, for_few_rows = cases;
    std::erase_if(for_teams, [](const Case& c) {
        return c.family != ApiFamily::fwd && c.family != ApiFamily::fwd_pagedkv;
    });
    std::erase_if(for_few_rows, [](const Case& c) { return !is_over_a_cache(c); });
    if (for_teams.empty()) for_teams = cases;
    try_on(for_teams, of_teams, std::make_shared<ChangedTarget>(subject.mutated, with_teams),
           std::make_shared<ChangedTarget>(subject.original, with_teams),
           for_few_rows.empty() ? nullptr : &of_few_rows);
    // So do tiles of a few tokens.
    try_on(for_few_rows, of_few_rows, std::make_shared<ChangedTarget>(subject.mutated, with_few_rows),
           std::make_shared<ChangedTarget>(subject.original, with_few_rows));
    if (!settings.record.empty()) {
        Json record = table.record(mutants().size());
        record["sample"] = Json{{"arch", settings.arch},     {"every", settings.every},
                                {"seed", settings.seed},     {"cases_per_file", settings.per_file},
                                {"checks", settings.checks}, {"unreached", unreached}};
        system::write_file(settings.record, record.dump(1) + "\n");
    }
    fmt::print("\n{}", table.text());
    if (unreached > 0) fmt::print("{} mutants lie where no case comes through\n", unreached);
    const std::size_t stale = report_stale(known);
    const bool green = table.contradictions().empty() && stale == 0;
    fmt::print("{}: {} of {} mutants tried, {} killed, {} contradict the table of survivors\n",
               green ? "GREEN" : "RED", table.all().tried(), mutants().size(), table.all().killed,
               table.contradictions().size() + stale);
    return green ? 0 : 1;
}

} // namespace

int main(int count, char** words) try {
    return run(read_settings({words + 1, words + count}));
} catch (const std::exception& error) {
    fmt::print(stderr, "mutation_score: {}\n", error.what());
    return 2;
}
