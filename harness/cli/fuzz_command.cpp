#include "dispatcher/system/stopwatch.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/cli/paint.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/run_choice.hpp"
#include "harness/cli/verify_command.hpp"
#include "harness/cli/within.hpp"
#include "harness/fuzz/fuzz.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/run/planned_kernels.hpp"
#include "harness/shrink/isolated_judge.hpp"
#include "reports/report.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ostream.h>

#include <optional>
#include <utility>

namespace fmha::cli {
namespace {

using harness::Case;
using harness::CaseResult;

class FuzzCommand final : public Command {
  public:
    explicit FuzzCommand(KernelSourceFactory kernels) : kernel_factory_(std::move(kernels)) {}

    std::string_view name() const override { return "fuzz"; }
    std::string_view summary() const override {
        return "Run random problems against the reference; make red ones smaller";
    }
    std::string_view example() const override {
        return "fmha fuzz --minutes 10 --family bwd --seed 7\n"
               "  fmha fuzz --count 100000 --minutes 0";
    }

    void declare(OptionSet& options) override {
        options.option("--minutes", minutes_, "Time to draw problems in; 0: until --count problems are done");
        options.option("--count", count_, "Problems to draw; 0: as many as there is time for");
        options.option("--family", family_, "Only problems of this kernel family; all take turns otherwise");
        options.option("--seed", seed_,
                       "Seed of the run; the same one draws the same problems (default: from the clock)");
        options.option("--jobs", jobs_,
                       "Processes at a time (default: one a hardware thread, or one a device)");
        options.option("--shrink", shrink_, "How many red problems are made smaller, one of each kind");
        run_.declare(options);
    }

    int run(const Streams& streams) override {
        check_options();
        const int jobs =
            jobs_ ? static_cast<int>(*jobs_) : harness::default_jobs(run_.target_name(), 1'000'000);
        const auto target = run_.target(jobs);
        const auto source =
            kernel_factory_(target, run_.where(), harness::kernel_families_of(possible_cases()));
        const harness::InterruptWatch interrupt;
        harness::FuzzOptions options = fuzz_options(*target, jobs);
        options.stop = [&] { return interrupt.requested(); };
        fmt::print(streams.out,
                   "fmha fuzz on target {}, catalogue house for {} ({} kernels), seed {}, {} process{}\n",
                   run_.target_name(), target->arch(), run_.kernels(), options.seed, jobs,
                   jobs == 1 ? "" : "es");
        streams.out.flush();

        const system::Stopwatch watch;
        Progress progress(streams.err, streams.progress, static_cast<std::size_t>(count_));
        if (count_ == 0) progress.ends_at(Progress::Clock::now() + options.patience);
        std::vector<std::pair<Case, CaseResult>> red;
        const auto counts =
            harness::fuzz(*source, *target, options, [&](std::size_t n, const CaseResult& result) {
                progress.step(result.name);
                if (is_refusal(result) || harness::is_green(result.outcome)) return;
                progress.red();
                progress.clear();
                fmt::print(streams.out, "{}\n", painted(reports::failure_text(result), streams.colours));
                streams.out.flush();
                keep_one_of_a_kind(red, harness::fuzz_case(options, n), result);
            });
        progress.clear();
        const double seconds = watch.seconds();
        make_smaller(red, *source, options, interrupt, streams);
        const bool interrupted = interrupt.requested();
        const bool green = counts.red == 0 && !interrupted && counts.executed > 0;
        const std::string_view verdict = green            ? "GREEN"
                                         : counts.red > 0 ? "RED"
                                         : interrupted    ? "RED: interrupted"
                                                          : "RED: nothing was executed";
        print_counts(counts, verdict, seconds, streams);
        return green ? all_well : check_failed;
    }

  private:
    static bool is_refusal(const CaseResult& result) {
        return result.outcome == harness::Outcome::refused_unexpectedly;
    }

    void check_options() const {
        require_within("--count", count_, 0, 1'000'000'000);
        require_within("--shrink", shrink_, 0, 1'000'000'000);
        if (!(minutes_ >= 0.0 && minutes_ <= 1e6))
            throw InputError(fmt::format("--minutes is {}; allowed: 0 to 1000000", minutes_));
        if (minutes_ == 0.0 && count_ == 0)
            throw InputError("--minutes 0 needs --count: the run would have no end");
        require_within("--jobs", jobs_, 1, 1024);
        run_.check();
        static_cast<void>(chosen_family());
    }

    /// None: problems of all families.
    std::optional<ApiFamily> chosen_family() const {
        if (family_.empty()) return std::nullopt;
        return parse_option<ApiFamily>("--family", family_);
    }

    std::vector<Case> plain_cases() const {
        const std::optional<ApiFamily> chosen = chosen_family();
        std::vector<Case> plain;
        for (const auto& [family, name] : EnumTable<ApiFamily>::names)
            if (!chosen || family == *chosen) plain.push_back(harness::plain_case(family, run_.root()));
        return plain;
    }

    /// Cases with all stages that a drawn one may have.
    std::vector<Case> possible_cases() const {
        std::vector<Case> cases = plain_cases();
        for (Case c : plain_cases()) {
            c.backward.forward = harness::ForwardResults::kernel;
            cases.push_back(std::move(c));
        }
        return cases;
    }

    harness::FuzzOptions fuzz_options(const harness::Target& target, int jobs) const {
        harness::FuzzOptions options;
        options.plain = plain_cases();
        options.seed = seed_
                           ? *seed_
                           : static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                                        std::chrono::seconds(1));
        options.most = static_cast<std::size_t>(count_);
        options.patience =
            std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(minutes_ * 60'000.0)));
        options.timeout = run_.timeout();
        options.jobs = jobs;
        options.of_case = run_.of_case(target, jobs);
        options.planned_tile = harness::house_tiles(target.arch(), target.archs());
        return options;
    }

    /// Of problems that are red by the same mark the first is kept.
    void keep_one_of_a_kind(std::vector<std::pair<Case, CaseResult>>& red, const Case& c,
                            const CaseResult& result) const {
        const harness::RedMark mark(result);
        const bool known = std::ranges::any_of(red, [&](const auto& other) {
            return other.first.family == c.family && harness::RedMark(other.second).is_like(mark);
        });
        if (!known && static_cast<std::int64_t>(red.size()) < shrink_) red.emplace_back(c, result);
    }

    void make_smaller(const std::vector<std::pair<Case, CaseResult>>& red,
                      const harness::KernelSource& source, const harness::FuzzOptions& options,
                      const harness::InterruptWatch& interrupt, const Streams& streams) const {
        harness::ShrinkOptions shrink;
        shrink.stop = [&] { return interrupt.requested(); };
        const auto judge = harness::isolated_judge(source, options.of_case, options.timeout, shrink.stop);
        for (const auto& [c, result] : red) {
            if (interrupt.requested()) return;
            const auto shrunk = harness::shrink(c, harness::plain_case(c.family, run_.root()), judge, shrink,
                                                harness::RedMark(result));
            fmt::print(streams.out, "{}\n",
                       shrunk ? painted(to_text(*shrunk, shrunk->result.reproduce), streams.colours)
                              : fmt::format("{} was not red by the same gate when it ran again", c.id));
            streams.out.flush();
        }
    }

    void print_counts(const harness::FuzzCounts& counts, std::string_view verdict, double seconds,
                      const Streams& streams) const {
        const auto list = [&](const char* title, const std::map<std::string, std::int64_t>& entries) {
            if (entries.empty()) return;
            fmt::print(streams.out, "{}:", title);
            const char* before = " ";
            for (const auto& [what, count] : entries) {
                fmt::print(streams.out, "{}{} {}", before, what, count);
                before = ", ";
            }
            fmt::print(streams.out, "\n");
        };
        fmt::print(streams.out,
                   "{} generated   {} executed   {} red   {} refused   {} not run   kernels touched {}\n",
                   counts.generated, counts.executed, counts.red, counts.all_refused(), counts.all_not_run(),
                   counts.kernels.size());
        list("executed", counts.executed_of);
        list("refused", counts.refused);
        list("not run", counts.not_run);
        fmt::print(streams.out, "{}\n{}, {:.0f} problems an hour\n", painted(verdict, streams.colours),
                   duration_text(seconds),
                   static_cast<double>(counts.generated) * 3600.0 / std::max(seconds, 1e-9));
    }

    KernelSourceFactory kernel_factory_;
    RunChoice run_;
    std::string family_;
    std::optional<std::uint64_t> seed_;
    std::optional<std::int64_t> jobs_;
    double minutes_ = 1.0;
    std::int64_t count_ = 0, shrink_ = 10;
};

} // namespace

std::unique_ptr<Command> make_fuzz_command(KernelSourceFactory kernels) {
    return std::make_unique<FuzzCommand>(std::move(kernels));
}

std::unique_ptr<Command> make_fuzz_command() {
    return make_fuzz_command(harness::house_kernels);
}

} // namespace fmha::cli
