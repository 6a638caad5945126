#include "dispatcher/types/error.hpp"
#include "harness/cases/load.hpp"
#include "harness/cases/plain_case.hpp"
#include "harness/cli/paint.hpp"
#include "harness/cli/run_choice.hpp"
#include "harness/cli/verify_command.hpp"
#include "harness/cli/within.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/shrink/isolated_judge.hpp"

#include <fmt/ostream.h>

#include <array>
#include <optional>

namespace fmha::cli {
namespace {

class ShrinkCommand final : public Command {
  public:
    explicit ShrinkCommand(KernelSourceFactory kernels) : kernel_factory_(std::move(kernels)) {}

    std::string_view name() const override { return "shrink"; }
    std::string_view summary() const override {
        return "Make a red case smaller while the same gate stays red, and say what it needs";
    }
    std::string_view example() const override {
        return "fmha shrink 'fwd/ragged_tail[dtype=bf16,seqlen_k=129]@7'";
    }

    void declare(OptionSet& options) override {
        options.positionals("CASE", cases_, "Printed name of the red case, or a file with a single case");
        run_.declare(options);
        options.option("--seconds", seconds_,
                       "Time for looking, after which the smallest case so far is printed; 0: to the end");
    }

    int run(const Streams& streams) override {
        require_within("--seconds", seconds_);
        run_.check();
        const harness::Case c = the_case();
        const harness::Case plain = harness::plain_case(c.family, run_.root());
        const auto target = run_.target(1);
        const auto source =
            kernel_factory_(target, run_.where(), harness::kernel_families_of(std::array{c, plain}));
        const harness::CaseRunOptions options = run_.of_case(*target, 1);
        const harness::InterruptWatch interrupt;
        const auto stop = [&] { return interrupt.requested(); };
        const auto isolated = harness::isolated_judge(*source, options, run_.timeout(), stop);
        std::optional<std::vector<harness::CaseResult>> first; // those of the case itself
        const auto judge = [&](const harness::Case& one) {
            auto results = isolated(one);
            if (!first) first = results;
            return results;
        };
        const auto shrunk = harness::shrink(c, plain, judge, {std::chrono::seconds(seconds_), stop});
        if (!shrunk && interrupt.requested()) {
            fmt::print(streams.out, "interrupted before {} was judged\n", c.id);
            return check_failed;
        }
        if (!shrunk && first) refuse_without_verdict(c.id, *first);
        if (!shrunk) {
            fmt::print(streams.out, "{} is not red: there is nothing to make smaller\n", c.id);
            return all_well;
        }
        fmt::print(streams.out, "{}",
                   painted(harness::to_text(*shrunk, shrunk->result.reproduce), streams.colours));
        return check_failed;
    }

  private:
    /// A case that nothing ran is not green.
    static void refuse_without_verdict(const std::string& name,
                                       const std::vector<harness::CaseResult>& results) {
        if (results.empty())
            throw InputError(
                fmt::format("{}: no kernel that accepts it has the name that --kernel asks for", name));
        for (const harness::CaseResult& result : results)
            if (result.outcome == harness::Outcome::not_run)
                throw InputError(fmt::format("{}: was not run: {}", name, result.message));
    }

    harness::Case the_case() const {
        if (cases_.size() != 1)
            throw InputError(fmt::format("{} cases are named; allowed: one", cases_.size()));
        harness::LoadOptions load{.root = run_.root(), .tier = harness::Tier::nightly};
        auto cases = harness::load_cases(cases_, load);
        if (cases.size() != 1)
            throw InputError(fmt::format("{}: is {} cases; name one of them, for example '{}'",
                                         cases_.front(), cases.size(),
                                         cases.empty() ? "" : cases.front().id));
        return cases.front();
    }

    KernelSourceFactory kernel_factory_;
    RunChoice run_;
    std::vector<std::string> cases_;
    std::int64_t seconds_ = 60;
};

} // namespace

std::unique_ptr<Command> make_shrink_command(KernelSourceFactory kernels) {
    return std::make_unique<ShrinkCommand>(std::move(kernels));
}

std::unique_ptr<Command> make_shrink_command() {
    return make_shrink_command(harness::house_kernels);
}

} // namespace fmha::cli
