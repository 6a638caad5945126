#include "dispatcher/system/files.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/recorded_catalogue.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/cli/today.hpp"
#include "harness/cli/waiver_choice.hpp"
#include "harness/results/counted.hpp"
#include "harness/results/journal.hpp"
#include "harness/results/result_json.hpp"
#include "reports/report.hpp"

#include <algorithm>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

namespace fmha::cli {
namespace {

using harness::Merged;
using harness::Part;

/// The shards of the last run of `fmha verify` in a store.
std::vector<Part> parts_of_store(const std::string& file) {
    const store::Store store(file, store::Access::read);
    std::vector<Part> parts;
    Json last;
    const auto runs = store.runs();
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        if (run->kind != store::RunKind::verify) continue;
        const Json whole = harness::whole_identity(run->identity);
        if (last.is_null()) last = whole;
        if (whole != last) continue;
        Part part{file, run->identity, store.results(run->id)};
        part.identity["run"] = run->id;
        parts.push_back(std::move(part));
    }
    if (parts.empty()) throw InputError(fmt::format("{}: has no run of fmha verify", file));
    return parts;
}

std::optional<Part> part_of_report(const std::string& text, const std::string& file) {
    const auto document = Json::try_parse(text);
    if (!document || !document->is_object() || document->value("schema", std::string()) != "fmha-verify-1")
        return std::nullopt;
    try {
        Part part{file, document->at("identity"), harness::results_from_json(document->at("results"))};
        if (!part.identity.is_object())
            throw InputError(fmt::format("the identity is {}, expected an object", part.identity.dump()));
        // Cases that an interrupted run did not reach are not there.
        std::erase_if(part.results, [](const harness::CaseResult& result) {
            return result.not_run_reason == harness::NotRunReason::interrupted;
        });
        return part;
    } catch (const Error& error) {
        throw InputError(fmt::format("{}: {}", file, error.what()));
    }
}

std::vector<Part> parts_of(const std::string& file) {
    if (file != "-" && store::looks_like_store(file)) return parts_of_store(file);
    const std::string text = input_text(file);
    if (auto part = harness::read_journal(text, file)) return {std::move(*part)};
    if (auto part = part_of_report(text, file)) return {std::move(*part)};
    throw InputError(
        fmt::format("{}: is neither a report (--json) nor a journal nor a store of fmha verify", file));
}

/// The list that the run was of, as `file` records it.
std::optional<RecordedCatalogue> list_of(const Merged& merged, const std::string& file) {
    try {
        return RecordedCatalogue::of(merged.identity);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: catalogue of its identity: {}", file, error.what()));
    }
}

class MergeCommand final : public Command {
  public:
    std::string_view name() const override { return "merge"; }
    std::string_view summary() const override {
        return "Join the shards of a run into one verdict and report";
    }
    std::string_view example() const override {
        return "fmha merge shard-*.jsonl --junit run.xml --html run.html --store runs.db";
    }
    void declare(OptionSet& options) override {
        options.positionals(
            "FILES", files_,
            "Reports (--json), journals and stores of the shards, in any mixture; none of them may be "
            "written to");
        options.option("--not-run-budget", not_run_budget_,
                       "Number of results that a green run may have not run");
        options.flag("--strict", strict_, "A case whose data type the architecture lacks makes the run red");
        options.output("--ledger", ledger_,
                       "Of shards with --catalogue: write a line for each kernel: name, account, and the "
                       "rule or reason");
        store_.declare(options);
        options.output("--json", json_, "Write the results as JSON");
        options.output("--junit", junit_, "Write JUnit XML");
        options.output("--html", html_, "Write the report page");
        options.format(format_);
    }
    int run(const Streams& streams) override {
        if (not_run_budget_ < 0)
            throw InputError(fmt::format("--not-run-budget is {}; allowed: 0 and above", not_run_budget_));
        // Found out now rather than after the work.
        for (const std::string& file : {json_, junit_, html_, ledger_})
            if (!file.empty()) system::check_writable(file);
        store_.check();
        std::vector<Part> parts;
        for (const std::string& file : files_)
            for (Part& part : parts_of(file)) parts.push_back(std::move(part));
        const std::string first = parts.empty() ? std::string() : parts.front().file;
        const Merged merged = harness::merge(std::move(parts));
        const auto list = list_of(merged, first);
        if (!list && !ledger_.empty())
            throw InputError("--ledger: these are no shards of a run with --catalogue");
        reports::Report report = report_of(merged, list.has_value(), streams.invocation);
        std::optional<harness::CatalogueLedger> account;
        if (list) {
            account = list->account(report.results);
            report.listed = list->tiles();
            if (merged.problems.empty()) account->object_to(report.ledger);
        }
        if (format_ == OutputFormat::json) {
            fmt::print(streams.out, "{}", reports::json(report));
        } else {
            print(merged, report, streams);
            if (account) fmt::print(streams.out, "{}", account->text());
        }
        streams.out.flush();
        Attempts attempt;
        attempt.write(json_, [&] { return reports::json(report); });
        attempt.write(junit_, [&] { return reports::junit(report); });
        attempt.write(html_, [&] { return reports::html(report); });
        if (account) attempt.write(ledger_, [&] { return account->lines(); });
        attempt([&] { remember(merged, report, streams.invocation); });
        attempt.finish();
        return report.ledger.green() ? all_well : check_failed;
    }

  private:
    /// The members by which the joined run is a whole one, the same one however often its shards are joined.
    static Json undivided(const Merged& merged) {
        constexpr std::size_t digits = 32;
        const auto& runs = merged.runs;
        return {{"shards", 1},
                {"run", runs.size() == 1
                            ? runs.front()
                            : system::sha256(fmt::format("{}", fmt::join(runs, " "))).substr(0, digits)}};
    }

    reports::Report report_of(const Merged& merged, bool of_list, const std::string& invocation) const {
        reports::Report report;
        report.results = merged.results;
        report.ledger = harness::Ledger({not_run_budget_, strict_, of_list});
        for (const auto& result : report.results) {
            report.ledger.add(result);
            report.info.seconds += result.seconds;
        }
        const auto text = [&](const char* key) { return merged.identity.value(key, std::string()); };
        report.info.command = invocation;
        report.info.version = text("version");
        report.info.target = text("target");
        report.info.arch = text("arch");
        report.info.kernels = text("kernels");
        report.info.machine = text("machine");
        report.info.compiler = text("compiler");
        report.info.started = now_utc();
        for (const std::string& problem : merged.problems) report.ledger.object(problem);
        for (const std::string& sentence : waiver_objections(merged.identity)) report.ledger.object(sentence);
        report.identity = merged.identity;
        if (merged.problems.empty()) report.identity.update(undivided(merged));
        return report;
    }

    static void print(const Merged& merged, const reports::Report& report, const Streams& streams) {
        fmt::print(streams.out, "{}", reports::failures_text(report.results));
        const auto shards = merged.identity.value("shards", std::uint64_t{1});
        fmt::print(streams.out, "{} of {}\n{}", counted(merged.runs.size(), "run"), counted(shards, "shard"),
                   report.ledger.text());
    }

    /// A whole run in the store, once however often its shards are merged.
    void remember(const Merged& merged, const reports::Report& report, const std::string& invocation) const {
        if (store_.file().empty() || !merged.problems.empty()) return;
        store::RunRecord run = new_run(store::RunKind::verify, invocation);
        run.id = report.identity.value("run", std::string());
        run.selection = merged.identity.value("selection", std::string());
        run.target = merged.identity.value("target_name", report.info.target);
        run.arch = report.info.arch;
        run.version = report.info.version;
        run.driver = merged.identity.value("driver", run.driver);
        run.compiler = merged.identity.value("compiler", run.compiler);
        run.commit = merged.identity.value("commit", run.commit);
        if (!report.info.machine.empty()) run.machine = report.info.machine;
        run.asked = static_cast<std::int64_t>(merged.identity.value("cases", std::uint64_t{0}));
        run.identity = harness::whole_identity(report.identity);
        if (report.identity.contains(harness::without_results_key))
            run.identity[harness::without_results_key] = report.identity.at(harness::without_results_key);
        const auto recording = store_.begin(run);
        for (std::size_t i = 0; i < report.results.size();) {
            std::size_t end = i;
            while (end < report.results.size() && report.results[end].name == report.results[i].name) ++end;
            recording->add(report.results[i].name, std::span(report.results).subspan(i, end - i));
            i = end;
        }
        finish(recording.get(), report.info.seconds, report.ledger.green());
    }

    std::vector<std::string> files_;
    StoreOption store_;
    std::string json_, junit_, html_, ledger_;
    OutputFormat format_ = OutputFormat::text;
    std::int64_t not_run_budget_ = 0;
    bool strict_ = false;
};

} // namespace

std::unique_ptr<Command> make_merge_command() {
    return std::make_unique<MergeCommand>();
}

} // namespace fmha::cli
