#include "dispatcher/explain/explain.hpp"
#include "dispatcher/problem_json.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/registry/kernel_names.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/upstream/ck_policy.hpp"
#include "harness/cli/arch_files.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/plan_snapshot.hpp"
#include "harness/cli/plan_upstream.hpp"
#include "kernels/arch/usual_arch.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace fmha::cli {
namespace {

class PlanCommand final : public Command {
  public:
    std::string_view name() const override { return "plan"; }
    std::string_view summary() const override {
        return "Say which kernels compute a problem, in which stages, and why not the others";
    }
    std::string_view example() const override {
        return R"(echo '{"signature": {"data_type": "bf16", "hdim_q": 128, "hdim_v": 128}, "batch": 2, "nhead_q": 8,
      "nhead_k": 2, "seqlen_q": 1024, "seqlen_k": 1024}' | fmha plan --problem - --arch gfx950 --explain
  fmha plan --policy ck --upstream-problems problems.jsonl --format json     # upstream's own problems)";
    }
    void declare(OptionSet& options) override {
        options.option(
            "--problem", problem_file_,
            "one problem, an array of them or one a line, as JSON (dispatcher/README.md); - for standard "
            "input");
        options.option("--arch", arch_, "architecture of problems that name none, and of every kernel");
        arch_files_.declare(options);
        options.choice("--policy", policy_, {"seqtune", "ck"},
                       "how one of several fitting kernels is chosen");
        options.choice(
            "--rules", rules_, {"", "house", "ck", "claim", "stored", "sweep"},
            "rule set that supplies the kernels; the default is ck with --policy ck, house otherwise");
        options.option("--config", config_,
                       "claim, stored, sweep: configuration file that says which of its kernels");
        options.flag(
            "--explain", explain_,
            "add the runner-up, the nearest kernels that were refused and why, and what a number of splits "
            "that the plan chose follows from");
        options.list("--prefer", preferred_,
                     "a heuristic: names of kernels, or globs, in order; the first that takes the problem is "
                     "chosen, else the policy chooses");
        options.output("--export", export_,
                       "write the kernels that are planned on as registry.json "
                       "(dispatcher/registry/export.schema.json); needs no "
                       "problem");
        options.option(
            "--upstream-problems", upstream_,
            "problems in upstream's terms, JSON lines or a file of cases, gzip or not, - for standard "
            "input; needs --policy ck");
        options.option(
            "--snapshots", snapshots_,
            "folder of recorded plans (parity/plans): compare every shape on every architecture there");
        options.flag("--accept", accept_, "record the present plans instead; needs --reason");
        options.option("--reason", reason_, "why the recorded plans change");
        options.format(format_, "output for people or for programs");
    }
    int run(const Streams& streams) override {
        if (!snapshots_.empty()) {
            const bool alone = problem_file_.empty() && upstream_.empty() && arch_.empty() &&
                               rules_.empty() && policy_ == "seqtune" && !explain_ &&
                               format_ == OutputFormat::text && arch_files_.folder().empty() &&
                               config_.empty() && preferred_.empty() && export_.empty();
            if (!alone) throw InputError("--snapshots goes with --accept and --reason only");
            return plan_snapshots(snapshots_, accept_, reason_, streams);
        }
        if (accept_ || !reason_.empty()) throw InputError("--accept and --reason belong to --snapshots");
        if (!upstream_.empty() && (!arch_files_.folder().empty() || !preferred_.empty() || !export_.empty()))
            throw InputError("--arch-dir, --prefer and --export read --problem, not --upstream-problems");
        if (policy_ == "ck" && !preferred_.empty())
            throw InputError("--prefer asks before the policy seqtune; --policy ck walks upstream's chain");
        if (problem_file_.empty() == upstream_.empty() && export_.empty())
            throw InputError("give either --problem FILE or --upstream-problems FILE");
        if (problem_file_.empty() && upstream_.empty())
            for (const auto& [given, option] : {std::pair{explain_, "--explain"},
                                                {!preferred_.empty(), "--prefer"},
                                                {format_ != OutputFormat::text, "--format"}})
                if (given) throw InputError(fmt::format("{} needs --problem", option));
        if (policy_ == "ck" && !rules_.empty() && rules_ != "ck")
            throw InputError(
                "--policy ck walks upstream's chain, which names kernels of --rules ck only, got " + rules_);
        if (!config_.empty() && !upstream_.empty())
            throw InputError("--config reads --problem, not --upstream-problems");
        if (upstream_.empty()) return plan_problems(streams);
        if (policy_ != "ck") throw InputError("--upstream-problems needs --policy ck, got " + policy_);
        if (explain_) throw InputError("--explain reads --problem, not --upstream-problems");
        plan_upstream_problems(input_text(upstream_), upstream_, format_ == OutputFormat::json, streams.out);
        return all_well;
    }

  private:
    int plan_problems(const Streams& streams) const {
        const arch::ArchSet archs = arch_files_.load();
        std::vector<StatedProblem> problems;
        if (!problem_file_.empty()) problems = problems_from_text(input_text(problem_file_), problem_file_);
        std::vector<ArchName> names;
        if (problems.empty()) names.push_back(archs.at(arch_.empty() ? arch::usual_arch : arch_).name());
        for (StatedProblem& stated : problems) {
            Problem& problem = stated.problem;
            if (problem.arch.empty())
                problem.arch = archs.at(arch_.empty() ? arch::usual_arch : arch_).name();
            if (!arch_.empty() && problem.arch.view() != arch_)
                throw InputError(problem_file_ + ": a problem names arch " + problem.arch.str() +
                                 ", but --arch is " + arch_);
            if (std::find(names.begin(), names.end(), problem.arch) == names.end())
                names.push_back(archs.at(problem.arch).name());
        }
        const auto rules = *parse_enum<catalog::RuleSet>(!rules_.empty()   ? rules_
                                                         : policy_ == "ck" ? "ck"
                                                                           : "house");
        std::optional<catalog::SweepConfig> sweep;
        if (!config_.empty()) sweep = catalog::read_sweep_config(config_, catalog::sweep_use(rules, false));
        const auto registry = catalogue_registry(archs, rules, names, sweep);
        Dispatcher dispatcher(*registry, devices_of(archs));
        if (policy_ == "ck") dispatcher.set_policy(std::make_shared<const upstream::CkPolicy>(archs, names));
        if (!preferred_.empty()) prefer(*registry, dispatcher);
        if (!export_.empty()) {
            registry->export_json(std::filesystem::path(export_));
            fmt::print(streams.err, "{} kernels in {}\n", registry->size(), export_);
        }
        bool complete = true, planned = true;
        for (const StatedProblem& stated : problems) {
            const std::string which = problems.size() > 1 ? " (" + stated.place + ")" : "";
            for (const std::string& sentence : stated.unused)
                fmt::print(streams.err, "note: {}{}\n", sentence, which);
            try {
                complete = answer(dispatcher, stated, streams) && complete;
            } catch (const WorkspaceError& error) {
                fmt::print(streams.err, "fmha plan: {}: {} ({})\n", stated.problem.to_string(), error.what(),
                           stated.place);
                planned = false;
            }
        }
        return !planned ? bad_input : complete ? all_well : check_failed;
    }

    /// Throws InputError for a name that no kernel has.
    void prefer(const Registry& registry, Dispatcher& dispatcher) const {
        const KernelNames names(registry);
        std::vector<std::string> identifiers;
        for (const std::string& glob : preferred_) {
            const auto found = names.identifiers(glob);
            if (found.empty()) throw InputError(fmt::format("--prefer {}: no kernel has this name", glob));
            identifiers.insert(identifiers.end(), found.begin(), found.end());
        }
        dispatcher.set_heuristic([identifiers](const Problem&) { return identifiers; });
    }

    bool answer(const Dispatcher& dispatcher, const StatedProblem& stated, const Streams& streams) const {
        if (explain_) {
            Explanation explanation = explain(dispatcher, stated.problem);
            explanation.plan = with_lengths(explanation.plan, stated.lengths);
            if (format_ == OutputFormat::json)
                fmt::print(streams.out, "{}\n", to_json(explanation).dump());
            else
                fmt::print(streams.out, "{}", to_text(explanation));
            return explanation.plan.valid();
        }
        const ExecutionPlan plan = with_lengths(dispatcher.plan(stated.problem), stated.lengths);
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", plan_to_json(dispatcher, plan).dump());
        else
            fmt::print(streams.out, "{}{}", plan_to_text(dispatcher, plan),
                       plan.valid() ? "" : "  --explain says why\n");
        return plan.valid();
    }

    ArchFiles arch_files_;
    std::string problem_file_, arch_, policy_ = "seqtune", rules_, config_, upstream_, snapshots_, reason_,
                                      export_;
    OutputFormat format_ = OutputFormat::text;
    std::vector<std::string> preferred_;
    bool explain_ = false, accept_ = false;
};

} // namespace

std::unique_ptr<Command> make_plan_command() {
    return std::make_unique<PlanCommand>();
}

} // namespace fmha::cli
