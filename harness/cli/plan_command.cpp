#include "dispatcher/types/error.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/plan_upstream.hpp"

#include <memory>
#include <string>

namespace fmha::cli {
namespace {

class PlanCommand final : public Command {
  public:
    std::string_view name() const override { return "plan"; }
    std::string_view summary() const override {
        return "say which kernels compute a problem, in which stages, and why not the others";
    }
    std::string_view example() const override {
        return "fmha plan --problem problem.json --explain\n"
               "  fmha plan --policy ck --upstream-problems problems.jsonl --format json";
    }
    void declare(OptionSet& options) override {
        options.choice("--policy", policy_, {"seqtune", "ck"},
                       "how one of several fitting kernels is chosen");
        options.option(
            "--upstream-problems", upstream_,
            "problems in upstream's terms, JSON lines or a file of cases, gzip or not, - for standard "
            "input; needs --policy ck");
        options.choice("--format", format_, {"text", "json"}, "output for people or for programs");
    }
    int run(const Streams& streams) override {
        if (upstream_.empty()) throw InputError("give --problem FILE or --upstream-problems FILE");
        if (policy_ != "ck") throw InputError("--upstream-problems needs --policy ck, got " + policy_);
        plan_upstream_problems(input_text(upstream_), upstream_, format_ == "json", streams.out);
        return all_well;
    }

  private:
    std::string policy_ = "seqtune", upstream_, format_ = "text";
};

} // namespace

std::unique_ptr<Command> make_plan_command() {
    return std::make_unique<PlanCommand>();
}

} // namespace fmha::cli
