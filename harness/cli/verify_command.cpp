#include "harness/cli/verify_command.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/processor.hpp"
#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/beside.hpp"
#include "harness/cli/build_kernels.hpp"
#include "harness/cli/case_choice.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/cli/catalogue_choice.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/run_choice.hpp"
#include "harness/cli/run_identity.hpp"
#include "harness/cli/run_processes.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/cli/today.hpp"
#include "harness/cli/verify_reports.hpp"
#include "harness/cli/waiver_choice.hpp"
#include "harness/cli/within.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "harness/run/run_cases.hpp"
#include "harness/shrink/shrink_red.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/ostream.h>
#include <set>
#include <string_view>
#include <utility>

namespace fmha::cli {
namespace {

using harness::Case;

class VerifyCommand final : public Command {
  public:
    explicit VerifyCommand(KernelSourceFactory kernels) : kernel_factory_(std::move(kernels)) {}

    std::string_view name() const override { return "verify"; }
    std::string_view summary() const override {
        return "Run cases against the reference and judge the difference";
    }
    std::string_view example() const override {
        return "fmha verify fwd/ragged_tail --kernels all --html report.html\n"
               "  fmha verify 'fwd/ragged_tail[dtype=bf16,seqlen_k=129]@7'\n"
               "  fmha verify --tier full --journal full.jsonl --junit full.xml --waivers known.yaml\n"
               "  fmha verify --catalogue --rules claim --arch gfx950 --journal claim.jsonl\n"
               "  fmha verify --config cases/sweeps/fwd_ci.json --filter \"c.hdim_q == 128\"";
    }

    void declare(OptionSet& options) override {
        cases_.declare(options);
        run_.declare(options);
        run_.declare_devices(options);
        catalogue_.declare(options);
        processes_.declare(options);
        options.flag("--compile-only", compile_only_,
                     "With --config: build the kernels of the list into --kernels-dir, and run nothing");
        options.option(
            "--not-run-budget", not_run_budget_,
            "Number of results that a green run may have not run; a red run prints the number that it "
            "needs, with the reasons");
        options.flag("--strict", strict_, "A case whose data type the architecture lacks makes the run red");
        waivers_.declare(options);
        options.flag("--fail-fast", fail_fast_, "End the run at the first case that makes it red");
        options.option("--shrink", shrink_,
                       "Make the first so many red cases smaller, half a minute each (see fmha shrink)");
        options.output(
            "--journal", journal_,
            "Append every outcome to this file as soon as it is known, so that the same command continues a "
            "run that was stopped or killed");
        store_.declare(options);
        options.flag("--list", list_, "Print the names of the cases and run nothing");
        options.flag(
            "--pairs", pairs_,
            "Print how often the covering arrays of the cases have each pair of features, and run nothing");
        reports_.declare(options);
    }

    int run(const Streams& streams) override {
        check_options();
        if (compile_only_)
            return build_kernels({catalogue_.arguments(), cases_.family(), run_.target_name(), run_.arch(),
                                  run_.arch_files().folder(), run_.kernels_dir(),
                                  processes_.asked().value_or(0)},
                                 streams);
        if (pairs_) return print_pairs(streams);
        const std::vector<Case> all = cases_.all();
        const std::vector<Case> cases = cases_.of_shard(all);
        if (list_) {
            for (const std::string& sentence : cases_.left_out()) fmt::print(streams.err, "{}\n", sentence);
            return print_names(cases, streams);
        }
        // Found out now rather than after an hour of work.
        reports_.write_usual_page(!catalogue_.on());
        reports_.check_files(
            {{"--journal", journal_}, {"--store", store_.file()}, {"--ledger", catalogue_.ledger_file()}});
        catalogue_.check_ledger_file();
        return run_cases(all, cases, streams);
    }

  private:
    /// Runs `cases`, the shard of `all`, and publishes the findings; an exit code.
    int run_cases(const std::vector<Case>& all, const std::vector<Case>& cases, const Streams& streams) {
        reports::Report report;
        report.sections = reports_.sections();
        const int jobs = processes_.number(cases.size());
        const auto target = processes_.target(jobs);
        const auto source = catalogue_.on()
                                ? catalogue_.source(target)
                                : kernel_factory_(target, run_.where(), harness::kernel_families_of(cases));
        waivers_.read(*target, all, cases_, catalogue_.on());
        const system::Stopwatch watch;
        const harness::InterruptWatch interrupt;
        harness::RunOptions options = run_options(*target, jobs);
        std::optional<harness::Journal> journal;
        store::RunRecord record = run_record(streams.invocation, *target, cases.size());
        if (!journal_.empty() || !store_.file().empty() || reports_.has_json())
            record.identity = identity(all, cases.size(), *target, options);
        if (!journal_.empty()) record.id = journal.emplace(journal_, record.identity, record.id).run_id();
        const auto recording = store_.begin(record);
        report.identity = record.identity;
        report.identity["run"] = record.id;
        report.info = run_info(streams.invocation, *target, options.jobs);
        report.info.left_out = cases_.left_out();
        report.info.resumed = journal ? static_cast<std::int64_t>(journal->finished().size()) : 0;
        Progress progress(streams.err, streams.progress, cases.size(),
                          static_cast<std::size_t>(report.info.resumed));
        options.on_case = [&](const std::string& name) { progress.step(name); };
        options.on_results = [&](const std::string& name, std::span<const harness::CaseResult> results) {
            for (const auto& result : results) progress.red(harness::is_green(result.outcome) ? 0 : 1);
            if (recording) recording->add(name, results);
        };
        options.on_device_lost = [&](const std::string& sentence) {
            report.info.left_out.push_back(sentence);
        };
        report.results =
            harness::run_cases(cases, *source, *target, options, interrupt, journal ? &*journal : nullptr);
        progress.clear();
        harness::shrink_red(report.results, cases, *source, options,
                            {shrink_, run_.root(), {.stop = [&] { return interrupt.requested(); }}});
        report.ledger = harness::Ledger(options.rules);
        report.info.seconds = watch.seconds();
        complete(report, cases, *target);
        if (recording && report.identity.contains(harness::without_results_key))
            recording->identify(
                {{harness::without_results_key, report.identity.at(harness::without_results_key)}});
        std::optional<harness::CatalogueLedger> account;
        if (catalogue_.on()) {
            account = catalogue_.account(cases, report.results);
            if (!report.ledger.interrupted()) account->object_to(report.ledger);
        }
        if (!report.ledger.interrupted())
            for (const std::string& sentence : waivers_.objections()) report.ledger.object(sentence);
        publish(report, account, recording.get(), journal ? journal->failure() : std::string(), streams);
        return report.ledger.green() ? all_well : check_failed;
    }

    /// Prints and writes a finished run. A file that cannot be written, as the journal says with `journal_failure`, takes neither the
    /// others nor the verdict away.
    void publish(const reports::Report& report, const std::optional<harness::CatalogueLedger>& account,
                 store::Recording* recording, const std::string& journal_failure,
                 const Streams& streams) const {
        Attempts attempt;
        attempt([&] { reports_.publish(report, headline(report), journal_, streams); });
        attempt([&] {
            if (account) publish_account(*account, streams);
        });
        attempt([&] {
            if (!report.ledger.interrupted()) finish(recording, report.info.seconds, report.ledger.green());
        });
        if (!journal_failure.empty()) attempt.failed(journal_failure);
        attempt.finish();
    }

    /// Fills in the parts of a report that follow from its results.
    void complete(reports::Report& report, const std::vector<Case>& cases,
                  const harness::Target& target) const {
        for (const auto& result : report.results) report.ledger.add(result);
        if (reports_.has_page())
            report.listed = catalogue_.on() ? catalogue_.tiles()
                                            : harness::house_tiles_of(target.arch(), target.archs(),
                                                                      harness::kernel_families_of(cases));
        if (const auto devices = target.devices(); devices.size() > 1)
            report.info.devices = harness::shares_of_devices(report.results, devices);
        if (auto names = without_results(report.results, cases); !names.empty()) {
            if (!run_.kernel_filter().empty())
                report.info.left_out.push_back(without_kernel(names.size(), cases.size()));
            report.identity[harness::without_results_key] = std::move(names);
        }
        std::ranges::move(waivers_.unused(cases, report.results), std::back_inserter(report.info.left_out));
        if (auto sampled = sampled_shapes(report.results, target.runs_row_tiles()); !sampled.empty())
            report.info.left_out.push_back(std::move(sampled));
    }

    static std::vector<std::string> without_results(const std::vector<harness::CaseResult>& results,
                                                    const std::vector<Case>& cases) {
        std::set<std::string_view> judged;
        for (const auto& result : results) judged.insert(result.name);
        std::vector<std::string> names;
        for (const Case& c : cases)
            if (!judged.contains(c.id)) names.push_back(c.id);
        return names;
    }

    /// Of the cases, how many have no kernel of a name that --kernel asks for.
    std::string without_kernel(std::size_t left, std::size_t cases) const {
        return fmt::format(
            "{} of {} cases were not asked: none of the kernels that accept them has a name like {}", left,
            cases, run_.kernel_filter());
    }

    void check_options() const {
        require_within("--jobs", processes_.asked());
        require_within("--not-run-budget", not_run_budget_);
        require_within("--shrink", shrink_);
        run_.check(&catalogue_);
        catalogue_.check(compile_only_);
        cases_.check();
        if (catalogue_.on() && pairs_) throw InputError("--pairs and --catalogue exclude one another");
        if (catalogue_.on() && shrink_ > 0)
            throw InputError(
                "--shrink and --catalogue exclude one another: a smaller problem has another kernel");
        if (!run_.devices().empty() && shrink_ > 0)
            throw InputError(
                "--shrink and --devices exclude one another: a red case becomes smaller on the device "
                "that its line names, with fmha shrink");
        refuse_what_runs_have();
        if (pairs_ && reports_.prints_json()) throw InputError("--pairs prints a table for people, not JSON");
    }

    /// Options of a run, where none takes place. The store of --list may be the one that divides the cases into shards.
    void refuse_what_runs_have() const {
        const std::string_view instead = list_           ? "--list"
                                         : pairs_        ? "--pairs"
                                         : compile_only_ ? "--compile-only"
                                                         : "";
        if (instead.empty()) return;
        const bool divides = list_ && cases_.is_divided();
        refuse_beside(instead, {{list_ && pairs_, "--pairs"},
                                {pairs_ && cases_.is_divided(), "--shard"},
                                {instead != "--compile-only" && compile_only_, "--compile-only"},
                                {!reports_.asked().empty(), reports_.asked()},
                                {!journal_.empty(), "--journal"},
                                {!store_.file().empty() && !divides, "--store"},
                                {!catalogue_.ledger_file().empty(), "--ledger"},
                                {not_run_budget_ > 0, "--not-run-budget"},
                                {strict_, "--strict"},
                                {!waivers_.file().empty(), "--waivers"},
                                {fail_fast_, "--fail-fast"},
                                {shrink_ > 0, "--shrink"}});
    }

    /// Prints the account of a list's kernels, and writes it to the file of --ledger.
    void publish_account(const harness::CatalogueLedger& account, const Streams& streams) const {
        if (!reports_.prints_json()) {
            if (!catalogue_.sentence().empty()) fmt::print(streams.out, "{}\n", catalogue_.sentence());
            fmt::print(streams.out, "{}", account.text());
        }
        if (!catalogue_.ledger_file().empty()) system::write_file(catalogue_.ledger_file(), account.lines());
    }

    int print_names(const std::vector<Case>& cases, const Streams& streams) const {
        auto names = Json::array();
        for (const auto& c : cases) {
            if (reports_.prints_json())
                names.push_back(c.id);
            else
                fmt::print(streams.out, "{}\n", c.id);
        }
        if (reports_.prints_json()) fmt::print(streams.out, "{}\n", names.dump(0));
        if (cases.empty())
            fmt::print(
                streams.err,
                "fmha verify: no case matches; a run of none is red (CASES, --tier, --family, --shard)\n");
        return cases.empty() ? check_failed : all_well;
    }

    /// An empty cell is a check that failed.
    int print_pairs(const Streams& streams) {
        bool complete = true;
        for (const auto& [stem, table] : cases_.pairs()) {
            fmt::print(streams.out, "{}\n\n{}", stem, table.to_text());
            complete = complete && table.empty_cells() == 0;
        }
        return complete ? all_well : check_failed;
    }

    Json identity(const std::vector<Case>& all, std::size_t cases, const harness::Target& target,
                  const harness::RunOptions& options) const {
        Json identity = run_identity(all, target, options);
        identity["shards"] = cases_.shard().count;
        identity["balance_sha256"] = cases_.balance();
        identity["selection"] = selection();
        if (catalogue_.on()) identity["catalogue"] = catalogue_.recorded(run_.arch_files().folder());
        waivers_.identify(identity);
        identity["target_name"] = run_.target_name();
        identity["commit"] = std::string(built_commit());
        identity["shard"] = cases_.shard().index;
        identity["shard_cases"] = cases;
        return identity;
    }

    std::string selection() const {
        return fmt::format("{} kernels={} kernel={} where={}", cases_.words(), run_.kernels(),
                           run_.kernel_filter(), run_.where());
    }

    store::RunRecord run_record(const std::string& invocation, const harness::Target& target,
                                std::size_t cases) const {
        store::RunRecord record = new_run(store::RunKind::verify, invocation);
        record.selection = selection();
        record.target = run_.target_name();
        record.arch = target.arch();
        record.driver = target.driver();
        if (!target.description().empty()) record.machine = target.description();
        record.shard = static_cast<std::int64_t>(cases_.shard().index);
        record.shards = static_cast<std::int64_t>(cases_.shard().count);
        record.asked = static_cast<std::int64_t>(cases);
        return record;
    }

    harness::RunInfo run_info(const std::string& invocation, const harness::Target& target, int jobs) const {
        harness::RunInfo info;
        info.version = FMHA_VERSION;
        info.command = invocation;
        info.target = run_.target_name();
        info.arch = target.arch();
        info.kernels = run_.kernels();
        info.started = now_utc();
        info.machine = system::processor_description();
        if (!target.description().empty()) info.machine = target.description() + "; " + info.machine;
        info.compiler = __VERSION__;
        info.seed_given = cases_.seed().has_value();
        info.seed = cases_.seed().value_or(0);
        info.jobs = jobs;
        return info;
    }

    harness::RunOptions run_options(const harness::Target& target, int jobs) const {
        harness::RunOptions options;
        options.jobs = jobs;
        options.timeout = run_.timeout();
        options.rules = {not_run_budget_, strict_, catalogue_.on(), cases_.shard().count > 1};
        options.fail_fast = fail_fast_;
        options.of_case = run_.of_case(target, jobs);
        options.of_case.waivers = waivers_.entries();
        if (catalogue_.on()) {
            options.of_case.all_kernels = true;
            options.of_case.given.catalogue = catalogue_.words();
        }
        return options;
    }

    /// The command, and the target that it ran on.
    std::string headline(const reports::Report& report) const {
        return fmt::format("{} on target {}, catalogue {} for {} ({} kernels)", report.info.command,
                           run_.target_name(), catalogue_.on() ? catalogue_.words() : "house",
                           report.info.arch, catalogue_.on() ? "all" : run_.kernels());
    }

    KernelSourceFactory kernel_factory_;
    RunChoice run_;
    RunProcesses processes_{run_};
    CatalogueChoice catalogue_;
    StoreOption store_;
    VerifyReports reports_;
    CaseChoice cases_{{run_, processes_, catalogue_, store_}};
    WaiverChoice waivers_;
    std::string journal_;
    std::int64_t not_run_budget_ = 0, shrink_ = 0;
    bool list_ = false, pairs_ = false, compile_only_ = false, strict_ = false, fail_fast_ = false;
};

} // namespace

std::unique_ptr<Command> make_verify_command(KernelSourceFactory kernels) {
    return std::make_unique<VerifyCommand>(std::move(kernels));
}

std::unique_ptr<Command> make_verify_command() {
    return make_verify_command(harness::house_kernels);
}

} // namespace fmha::cli
