#include "dispatcher/system/files.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/bench/bench.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/cases_root.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/planned_kernels.hpp"
#include "reports/report.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <chrono>
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
               "  fmha bench fwd/models --target hip --kernels-dir out/sm_90 --json bench.json";
    }

    void declare(OptionSet& options) override {
        options.positionals("CASES", cases_,
                            "Case files, folders, shape matrices (*.yaml) or printed names of single cases");
        options.each(
            "--shape", shapes_,
            "A case of your own, \"field=value,…\" in the language of case files (may be repeated); packed, "
            "without LSE unless it says otherwise");
        options.option(
            "--cases-root", root_,
            "Folder that relative case names start from (default: cases here, else the source tree's)");
        options.choice("--tier", tier_, {"smoke", "full", "nightly"},
                       "Highest tier to take from files; a tier includes the lower ones");
        options.choice("--target", target_, harness::target_names(), "Where kernels run");
        options.option("--arch", arch_,
                       "Architecture whose catalogue is planned on (default: gfx950, or the device's)");
        options.option("--kernels-dir", kernels_dir_, "With --target hip: folder that `fmha build` filled");
        options.option("--device", device_, "With --target hip: number of the device (default: 0)");
        options.choice("--kernels", kernels_, {"planned", "all"},
                       "The planned kernel, or every kernel that accepts the problem");
        options.option("--kernel", kernel_filter_,
                       "With --kernels all: only kernels whose name matches this glob");
        options.option("--where", where_,
                       "Python expression over a kernel c: only kernels for which it is true");
        options.option("--seconds", seconds_, "Time spent on the timed launches of each kernel in a round");
        options.option(
            "--rounds", rounds_,
            "Rounds over all cases and kernels, one after the other, so that a disturbance of the machine "
            "meets all of them (default: 1, with --store 3, which `fmha gate` compares pair by pair)");
        store_.declare(options);
        options.option("--json", json_, "Write the numbers as JSON");
        options.choice("--format", format_, {"text", "json"}, "What goes to standard output");
    }

    int run(const Streams& streams) override {
        check_options();
        if (!json_.empty()) system::check_writable(json_);
        harness::TargetOptions target_options{arch_, kernels_dir_};
        if (device_) target_options.device = static_cast<int>(*device_);
        const auto timing = harness::make_timing_target(target_, target_options);
        const std::vector<Case> cases = chosen_cases(timing->target()->arch());
        const auto source =
            harness::house_kernels(timing->target(), where_, harness::kernel_families_of(cases));
        if (format_ == "text") print_head(*timing, streams);
        const auto recording = store_.begin(run_record(*timing, cases.size(), streams.invocation));
        const auto start = std::chrono::steady_clock::now();
        std::vector<BenchRow> rows;
        const harness::BenchOptions options{seconds_, kernels_ == "all", kernel_filter_};
        for (std::int64_t round = 1; round <= rounds(); ++round) {
            if (format_ == "text" && rounds() > 1)
                fmt::print(streams.out, "round {} of {}\n", round, rounds());
            for (const Case& c : cases)
                for (BenchRow& row : harness::bench_case(c, *source, *timing, options)) {
                    if (format_ == "text") fmt::print(streams.out, "{}", to_text(row));
                    streams.out.flush();
                    row.round = round;
                    if (recording) recording->add(time_record(row));
                    rows.push_back(std::move(row));
                }
        }
        const int code = conclude(rows, *timing, streams);
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        finish(recording.get(), spent.count(), code == all_well);
        return code;
    }

  private:
    void check_options() const {
        if (!(seconds_ > 0.0) || seconds_ > 3600.0)
            throw InputError(fmt::format("--seconds is {}; allowed: above 0, at most 3600", seconds_));
        if (rounds_ && (*rounds_ < 1 || *rounds_ > 1000))
            throw InputError(fmt::format("--rounds is {}; allowed: 1 to 1000", *rounds_));
        if (!kernel_filter_.empty() && kernels_ != "all") throw InputError("--kernel needs --kernels all");
        if (device_ && (*device_ < 0 || *device_ > 1'000'000))
            throw InputError(fmt::format("--device is {}; allowed: 0 to 1000000", *device_));
        if (cases_.empty() && shapes_.empty())
            throw InputError("nothing to time: name cases, or give a --shape");
    }

    std::int64_t rounds() const { return rounds_.value_or(store_.file().empty() ? 1 : 3); }

    store::RunRecord run_record(const harness::TimingTarget& timing, std::size_t cases,
                                const std::string& invocation) const {
        store::RunRecord record = new_run("bench", invocation);
        record.selection =
            fmt::format("{} {} tier={} kernels={} kernel={} where={} seconds={}", fmt::join(cases_, " "),
                        fmt::join(shapes_, " "), tier_, kernels_, kernel_filter_, where_, seconds_);
        record.machine = timing.machine();
        record.target = target_;
        record.arch = timing.target()->arch();
        record.driver = timing.target()->driver();
        if (const std::string kernels = timing.target()->kernel_build(); !kernels.empty())
            record.identity["kernels_sha256"] = system::sha256(kernels);
        record.asked = static_cast<std::int64_t>(cases);
        return record;
    }

    static store::TimeRecord time_record(const BenchRow& row) {
        return {.name = row.name,
                .kernel = row.kernel,
                .round = row.round,
                .outcome = std::string(to_string(row.outcome)),
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

    /// Cases that are there to be refused are left out: there is nothing to time.
    std::vector<Case> chosen_cases(const std::string& arch) const {
        std::vector<Case> chosen;
        if (!cases_.empty()) {
            const harness::LoadOptions load{.root = cases_root(root_),
                                            .tier = *parse_enum<harness::Tier>(tier_),
                                            .planned_tile = harness::house_tiles(arch)};
            for (Case& c : harness::load_cases(cases_, load))
                if (c.expect == harness::Expectation::pass) chosen.push_back(std::move(c));
        }
        for (const std::string& shape : shapes_) {
            Case c;
            c.id = shape;
            c.lse = false;
            c.stride_padding = 0;
            harness::apply_overrides(shape, shape, c);
            chosen.push_back(std::move(c));
        }
        if (chosen.empty()) throw InputError("every case named expects a refusal, which takes no time");
        return chosen;
    }

    void print_head(harness::TimingTarget& timing, const Streams& streams) const {
        fmt::print(streams.out, "{} on target {}, kernels for {}\n", timing.machine(), target_,
                   timing.target()->arch());
    }

    int conclude(const std::vector<BenchRow>& rows, const harness::TimingTarget& timing,
                 const Streams& streams) const {
        std::size_t measured = 0, wrong = 0;
        for (const BenchRow& row : rows) {
            measured += row.outcome == BenchOutcome::measured ? 1U : 0U;
            wrong += row.outcome == BenchOutcome::wrong ? 1U : 0U;
        }
        auto json = Json{{"schema_version", 1},
                         {"command", streams.invocation},
                         {"machine", timing.machine()},
                         {"target", target_},
                         {"rows", Json::array()}};
        for (const BenchRow& row : rows) json["rows"].push_back(to_json(row));
        if (format_ == "json") {
            fmt::print(streams.out, "{}\n", json.dump(1));
        } else {
            print_ceilings(rows, streams);
            fmt::print(streams.out, "{} measured, {} wrong, {} not run\n", measured, wrong,
                       rows.size() - measured - wrong);
        }
        if (!json_.empty()) system::write_file(json_, json.dump(1) + "\n");
        return measured == rows.size() && measured > 0 ? all_well : check_failed;
    }

    /// What the shares are shares of, once each.
    static void print_ceilings(const std::vector<BenchRow>& rows, const Streams& streams) {
        std::set<std::string> lines;
        for (const BenchRow& row : rows) {
            if (row.outcome != BenchOutcome::measured) continue;
            for (const auto& [what, ceiling, unit] :
                 {std::tuple{"TFLOP/s", &row.matrix, 1e12}, {"GB/s", &row.copy, 1e9}})
                lines.insert(ceiling->known() ? fmt::format("ceiling {:.4g} {}: {}", ceiling->value / unit,
                                                            what, ceiling->how)
                                              : fmt::format("no ceiling in {}: {}", what, ceiling->how));
        }
        for (const std::string& line : lines) fmt::print(streams.out, "{}\n", line);
    }

    std::vector<std::string> cases_, shapes_;
    std::string root_, tier_ = "smoke", target_ = harness::target_names().front(), arch_, kernels_dir_,
                       kernels_ = "planned", kernel_filter_, where_, json_, format_ = "text";
    StoreOption store_;
    std::optional<std::int64_t> device_, rounds_;
    double seconds_ = 0.5;
};

} // namespace

std::unique_ptr<Command> make_bench_command() {
    return std::make_unique<BenchCommand>();
}

} // namespace fmha::cli
