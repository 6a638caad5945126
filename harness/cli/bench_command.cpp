#include "dispatcher/system/files.hpp"
#include "dispatcher/system/processor.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/bench/bench_run.hpp"
#include "harness/bench/tile_engine_files.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/bench_choice.hpp"
#include "harness/cli/build_kernels.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/memory_limit.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/run_identity.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/cli/target_choice.hpp"
#include "harness/cli/within.hpp"
#include "harness/results/counted.hpp"
#include "harness/run/interrupt.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace fmha::cli {
namespace {

using harness::BenchOutcome;
using harness::BenchRow;
using harness::Case;

class BenchCommand final : public Command {
  public:
    std::string_view name() const override { return "bench"; }
    std::string_view summary() const override { return "Time kernels, judged in the same run"; }
    std::string_view example() const override {
        return "fmha bench --shape dtype=bf16,batch=8,heads=16,seqlen=2048,hdim=128,mask=t\n"
               "  fmha bench matrix.yaml --journal matrix.jsonl --sweep-csv matrix.csv\n"
               "  fmha bench --config cases/sweeps/fwd_ci.json --problems 2,8,1024,128 --csv results.csv\n"
               "  fmha bench fwd/models --target hip --kernels-dir out/sm_90 --json bench.json";
    }

    void declare(OptionSet& options) override {
        choice_.declare(options);
        target_.declare(options);
        options.flag("--compile-only", compile_only_,
                     "Build the kernels of the list into --kernels-dir, and time nothing");
        options.option("--seconds", seconds_, "Time spent on the timed launches of each kernel in a round");
        options.option("--warmup", warm_up_,
                       "Launches before the timed ones, instead of a tenth of --seconds");
        options.option("--repeat,--repeats", launches_,
                       "Timed launches, instead of as many as fit into --seconds");
        options.option(
            "--rounds", rounds_,
            "Rounds over all cases and kernels, one after the other, so that a disturbance of the machine "
            "meets all of them (default: 1, with --store 3, which `fmha gate` compares pair by pair)");
        options.option(
            "--workers,--jobs", workers_,
            "Processes at a time, each with kernels of its own: more than one disturb each other's times; 0: "
            "everything in this process. With --compile-only: compilers at a time");
        options.option("--timeout,--shape-timeout", timeout_,
                       "Seconds after which a kernel on one case is given up; 0: never");
        memory_.declare(options, "not run");
        options.output(
            "--journal", journal_,
            "Append every row to this file as soon as it is known, so that the same command continues a "
            "run that was stopped or killed");
        store_.declare(options);
        options.flag(
            "--verify,--best", always_,
            "For calls of upstream's benchmark, without effect: every kernel is judged in any case, and "
            "the files have the fastest first");
        options.output("--json", json_, "Write the numbers as JSON");
        options.output("--csv", csv_, "Write the 28 columns of upstream's fmha_benchmark");
        options.output("--sweep-csv", sweep_csv_, "Write the 38 columns of upstream's fmha_full_benchmark");
        options.output("--engine-json", engine_json_, "Write the JSON of upstream's tile engine");
        options.format(format_);
    }

    int run(const Streams& streams) override {
        check_options();
        if (compile_only_)
            return build_kernels({choice_.list(), choice_.family(), target_.name(), target_.arch(),
                                  target_.arch_files().folder(), target_.kernels_dir(), workers_},
                                 streams);
        for (const std::string* file : {&json_, &csv_, &sweep_csv_, &engine_json_})
            if (!file->empty()) system::check_writable(*file);
        const harness::TargetOptions target_options = target_.options();
        const auto target = harness::make_target(target_.name(), target_options);
        const std::vector<Case> cases = choice_.cases(target->archs(), target->arch());
        const auto source = choice_.source(target, cases);
        harness::BenchRun bench{.cases = cases, .source = *source, .arch = target->arch(), .timing = [&] {
                                    return harness::make_timing_target(target_.name(), target_options);
                                }};
        bench.options = {seconds_, choice_.kernels(), choice_.kernel_filter(),
                         warm_up_, launches_,         memory_.bytes()};
        bench.rounds = rounds();
        bench.workers = static_cast<int>(workers_);
        bench.timeout = std::chrono::seconds(timeout_);
        const harness::InterruptWatch interrupt;
        bench.stop = [&] { return interrupt.requested(); };
        if (format_ == OutputFormat::text) print_head(*target, cases.size(), streams);
        store::RunRecord record = run_record(*target, cases.size(), streams.invocation);
        std::optional<harness::BenchJournal> journal;
        if (!journal_.empty())
            record.id = journal.emplace(journal_, identity(cases, *target), record.id).run_id();
        const auto recording = store_.begin(record);
        const system::Stopwatch watch;
        std::vector<std::pair<std::size_t, BenchRow>> rows;
        std::optional<Progress> progress;
        bench.on_planned = [&](std::size_t measured) {
            progress.emplace(streams.err, streams.progress, measured);
        };
        const auto end = harness::bench_cases(
            bench, journal ? &*journal : nullptr, [&](std::size_t c, const BenchRow& row) {
                if (progress) progress->clear();
                const bool new_round = rows.empty() || rows.back().second.round != row.round;
                if (format_ == OutputFormat::text) print_row(row, new_round, streams);
                if (recording) recording->add(time_record(row));
                if (progress) {
                    progress->red(row.outcome == BenchOutcome::measured ? 0 : 1);
                    progress->step(row.name);
                }
                rows.emplace_back(c, row);
            });
        if (progress) progress->clear();
        const double seconds = watch.seconds();
        const bool green =
            !end.interrupted && !rows.empty() && std::ranges::all_of(rows, [](const auto& of_case) {
                return of_case.second.outcome == BenchOutcome::measured;
            });
        const Json json = document(rows, *target, end, streams.invocation);
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", json.dump(1));
        else
            print_end(rows, end, streams);
        Attempts attempt;
        write_files(attempt, cases, rows, json, target->arch(), seconds);
        attempt([&] {
            if (!end.interrupted) finish(recording.get(), seconds, green);
        });
        if (journal && !journal->failure().empty()) attempt.failed(journal->failure());
        attempt.finish();
        return green ? all_well : check_failed;
    }

  private:
    void print_row(const BenchRow& row, bool begins_a_round, const Streams& streams) const {
        if (begins_a_round && rounds() > 1) fmt::print(streams.out, "round {} of {}\n", row.round, rounds());
        fmt::print(streams.out, "{}", to_text(row));
        streams.out.flush();
    }

    void check_options() {
        if (!(seconds_ > 0.0) || seconds_ > 3600.0)
            throw InputError(fmt::format("--seconds is {}; allowed: above 0, at most 3600", seconds_));
        require_within("--rounds", rounds_, 1, 1000);
        require_within("--repeat", launches_, 1);
        require_within("--warmup", warm_up_);
        require_within("--workers", workers_);
        require_within("--timeout", timeout_);
        target_.check();
        memory_.check();
        choice_.check();
    }

    std::int64_t rounds() const { return rounds_.value_or(store_.file().empty() ? 1 : 3); }

    /// The options that decide the rows of a run that is continued.
    Json identity(const std::vector<Case>& cases, const harness::Target& target) const {
        harness::RunOptions options;
        options.timeout = std::chrono::seconds(timeout_);
        options.of_case.arch = target.arch();
        options.of_case.given.target_flags = target.flags();
        options.of_case.given.cases_root = choice_.cases_root();
        options.of_case.memory_limit = memory_.asked_bytes();
        options.of_case.given.arch_dir = target_.arch_files().folder();
        options.of_case.kernel_filter = choice_.kernel_filter();
        options.of_case.given.catalogue = fmt::format("{}", fmt::join(choice_.list(), " "));
        Json identity = run_identity(cases, target, options);
        identity["kernels"] = to_string(choice_.kernels());
        identity["list"] = options.of_case.given.catalogue;
        identity["seconds"] = seconds_;
        identity["warmup"] = warm_up_.value_or(-1);
        identity["repeat"] = launches_.value_or(-1);
        identity["selection"] = choice_.words();
        return identity;
    }

    store::RunRecord run_record(const harness::Target& target, std::size_t cases,
                                const std::string& invocation) const {
        store::RunRecord record = new_run(store::RunKind::bench, invocation);
        record.selection = fmt::format("{} seconds={}", choice_.words(), seconds_);
        record.machine = machine(target);
        record.target = target_.name();
        record.arch = target.arch();
        record.driver = target.driver();
        if (const std::string kernels = target.kernel_build(); !kernels.empty())
            record.identity["kernels_sha256"] = system::sha256(kernels);
        record.asked = static_cast<std::int64_t>(cases);
        return record;
    }

    static std::string machine(const harness::Target& target) {
        return target.description().empty() ? system::processor_description() : target.description();
    }

    static store::TimeRecord time_record(const BenchRow& row) {
        return {.name = row.name,
                .kernel = row.kernel,
                .round = row.round,
                .outcome = row.outcome,
                .message = row.message,
                .median = row.time.median,
                .low = row.time.low,
                .high = row.time.high,
                .best = row.time.best,
                .samples = row.time.samples,
                .places = row.places,
                .flops = row.work.flops,
                .bytes = row.work.bytes};
    }

    void print_head(const harness::Target& target, std::size_t cases, const Streams& streams) const {
        fmt::print(streams.out, "{} on target {}, kernels for {}\n", machine(target), target_.name(),
                   target.arch());
        if (choice_.left_out() > 0)
            fmt::print(streams.out, "{}, and {} with an expected refusal, which takes no time\n",
                       counted(cases, "case"), choice_.left_out());
        if (!choice_.sentence().empty()) fmt::print(streams.out, "{}\n", choice_.sentence());
    }

    Json document(const std::vector<std::pair<std::size_t, BenchRow>>& rows, const harness::Target& target,
                  const harness::BenchEnd& end, const std::string& invocation) const {
        Json json{{"schema_version", 1},      {"command", invocation},          {"machine", machine(target)},
                  {"target", target_.name()}, {"interrupted", end.interrupted}, {"rows", Json::array()}};
        for (const auto& [c, row] : rows) json["rows"].push_back(to_json(row));
        return json;
    }

    void print_end(const std::vector<std::pair<std::size_t, BenchRow>>& rows, const harness::BenchEnd& end,
                   const Streams& streams) const {
        std::map<BenchOutcome, std::size_t> counts;
        for (const auto& [c, row] : rows) ++counts[row.outcome];
        print_ceilings(rows, streams);
        if (end.resumed > 0)
            fmt::print(streams.out, "continued: {} had finished in earlier processes, says {}\n",
                       counted(end.resumed, "row"), journal_);
        fmt::print(streams.out, "{} measured, {} wrong, {} not run", counts[BenchOutcome::measured],
                   counts[BenchOutcome::wrong], counts[BenchOutcome::not_run]);
        if (const std::size_t lost = counts[BenchOutcome::crashed] + counts[BenchOutcome::timed_out];
            lost > 0)
            fmt::print(streams.out, ", {} crashed, {} timed out", counts[BenchOutcome::crashed],
                       counts[BenchOutcome::timed_out]);
        fmt::print(streams.out, "\n");
        if (end.interrupted)
            fmt::print(streams.out, "interrupted; {}\n",
                       journal_.empty() ? "a run with --journal FILE can be continued"
                                        : "the same command continues it");
    }

    void write_files(Attempts& attempt, const std::vector<Case>& cases,
                     const std::vector<std::pair<std::size_t, BenchRow>>& rows, const Json& json,
                     const std::string& arch, double seconds) const {
        std::vector<harness::TileEngineRow> engine_rows;
        for (const auto& [c, row] : rows) engine_rows.push_back({&cases[c], &row});
        attempt.write(json_, [&] { return json.dump(1) + "\n"; });
        attempt.write(csv_, [&] { return harness::tile_engine_csv(engine_rows); });
        attempt.write(sweep_csv_, [&] { return harness::sweep_csv(engine_rows); });
        attempt.write(engine_json_, [&] {
            return harness::tile_engine_json({arch, seconds, cases.size()}, engine_rows).dump(2) + "\n";
        });
    }

    /// The wholes that the shares are of, once each.
    static void print_ceilings(const std::vector<std::pair<std::size_t, BenchRow>>& rows,
                               const Streams& streams) {
        std::set<std::string> lines;
        for (const auto& [c, row] : rows) {
            if (row.outcome != BenchOutcome::measured) continue;
            for (const auto& [what, ceiling, unit] :
                 {std::tuple{"TFLOP/s", &row.matrix, 1e12}, {"GB/s", &row.copy, 1e9}})
                lines.insert(ceiling->known() ? fmt::format("ceiling {:.4g} {}: {}", ceiling->value / unit,
                                                            what, ceiling->how)
                                              : fmt::format("no ceiling in {}: {}", what, ceiling->how));
        }
        for (const std::string& line : lines) fmt::print(streams.out, "{}\n", line);
    }

    BenchChoice choice_;
    TargetChoice target_;
    std::string journal_, json_, csv_, sweep_csv_, engine_json_;
    OutputFormat format_ = OutputFormat::text;
    StoreOption store_;
    MemoryLimit memory_{MemoryLimit::Usual::machine};
    std::optional<std::int64_t> rounds_, warm_up_, launches_;
    std::int64_t workers_ = 1, timeout_ = 600;
    double seconds_ = 0.5;
    bool compile_only_ = false, always_ = false;
};

} // namespace

std::unique_ptr<Command> make_bench_command() {
    return std::make_unique<BenchCommand>();
}

} // namespace fmha::cli
