#include "dispatcher/system/files.hpp"
#include "dispatcher/system/shell_word.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "dispatcher/types/visible_text.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/beside.hpp"
#include "harness/cli/checkout_kernels.hpp"
#include "harness/cli/run_choice.hpp"
#include "harness/cli/tensor_difference.hpp"
#include "harness/cli/verify_command.hpp"
#include "harness/cli/within.hpp"
#include "harness/families/given_inputs.hpp"
#include "harness/run/case_tensors.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/run/planned_kernels.hpp"
#include "harness/run/run_cases.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/arch/usual_arch.hpp"
#include "parity/side_by_side/agreement.hpp"
#include "reference/kernel_numerics.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

namespace fmha::cli {
namespace {

namespace fs = std::filesystem;
using harness::Case;
using harness::CaseResult;

/// Both sides of one case on the same tensors.
void print_differences(const Json& tensors, const Streams& streams) {
    for (const Json& one : tensors)
        fmt::print(streams.out, "  {:8} {}\n", one.at("tensor").text(), one.at("text").text());
}

/// A checkout beside our kernels, case by case.
class CompareCommand final : public Command {
  public:
    explicit CompareCommand(KernelSourceFactory kernels) : kernel_factory_(std::move(kernels)) {}

    std::string_view name() const override { return "compare"; }
    std::string_view summary() const override {
        return "Run cases on a Composable Kernel checkout and on ours, or compare outputs";
    }
    std::string_view example() const override {
        return "parity/side_by_side/checkout/build ~/composable_kernel ~/composable_kernel/build ck gfx942\n"
               "  fmha compare --ck-kernels ck --target hip                    # the same tensors on both, "
               "element by element\n"
               "  fmha compare --ck-bin ~/composable_kernel/build/bin --target hip fwd/masks bwd/head_map "
               "--json beside.json\n"
               "  fmha compare 'fwd/decode[dtype=bf16]@1' --tensors mine theirs";
    }

    void declare(OptionSet& options) override {
        options.positionals(
            "CASES", cases_,
            "Case files, folders or printed names of single cases (default: fwd/parity, the fourteen "
            "configurations of upstream's parity test)");
        options.option(
            "--ck-kernels", checkout_,
            "Folder with fmha_ck_fwd and fmha_ck_bwd, which parity/side_by_side/checkout/build makes "
            "from a checkout: its kernels get our tensors, our gates judge their outputs, and both "
            "sides are compared element by element");
        options.option("--ck-bin", programs_,
                       "Folder with tile_example_fmha_fwd and tile_example_fmha_bwd, which draw tensors and "
                       "judge them themselves");
        options.output("--keep", keep_,
                       "With --ck-kernels: folder for inputs and outputs of each case as .npy");
        options.pair(
            "--tensors", tensors_,
            "Instead of running anything: two folders with outputs of one case as .npy (fmha check), "
            "compared with one another and each with the reference");
        options.choice("--tier", tier_, "Highest tier to run; a tier includes the lower ones");
        options.option("--seconds", seconds_, "Time that a program of the checkout may take for one case");
        run_.declare(options);
        options.output("--json", json_, "Write commands, answers and results as JSON");
    }

    int run(const Streams& streams) override {
        require_within("--seconds", seconds_, 1, 86'400);
        run_.check();
        if (!json_.empty()) system::check_writable(json_);
        harness::LoadOptions load{.root = run_.root(), .tier = tier_};
        if (int(!programs_.empty()) + int(!checkout_.empty()) + int(!tensors_.empty()) != 1)
            throw InputError("give one of --ck-kernels FOLDER, --ck-bin FOLDER and --tensors FOLDER FOLDER");
        if (!keep_.empty() && checkout_.empty()) throw InputError("--keep needs --ck-kernels");
        if (!tensors_.empty()) refuse_what_runs_have();
        if (cases_.empty() && tensors_.empty()) cases_.emplace_back("fwd/parity");
        const ArchFiles& files = run_.arch_files();
        const std::string arch = run_.arch().empty() ? arch::usual_arch : run_.arch();
        if (!tensors_.empty()) load.planned_tile = harness::house_tiles(arch, files.load());
        const std::vector<Case> cases = harness::load_cases(cases_, load);
        if (!tensors_.empty()) return two_folders(cases, arch, streams);
        if (checkout_.empty())
            require_programs(cases);
        else
            CheckoutKernels::require_programs(checkout_, cases);
        const auto target = run_.target(1);
        const auto source = kernel_factory_(target, run_.where(), harness::kernel_families_of(cases));
        const harness::InterruptWatch interrupt;
        harness::RunOptions options;
        options.jobs = 1; // a kernel that faults costs its case and no more
        options.timeout = run_.timeout();
        options.of_case = run_.of_case(*target, 1);
        const std::vector<CaseResult> ours = harness::run_cases(cases, *source, *target, options, interrupt);
        fmt::print(streams.out, "fmha compare: ours on target {} for {}, theirs from {}\n",
                   run_.target_name(), target->arch(), checkout_.empty() ? programs_ : checkout_);
        if (!checkout_.empty()) {
            const CheckoutKernels theirs(checkout_, std::chrono::seconds(seconds_),
                                         target->device_of(0).value_or(0), keep_);
            on_same_tensors(cases, ours, theirs, *source, options, interrupt, streams);
            return conclusion(cases.size(), streams);
        }
        for (const Case& c : cases) {
            if (interrupt.requested()) break;
            one(c, worst(c, ours), streams);
        }
        return conclusion(cases.size(), streams);
    }

  private:
    /// Options of a run, where two folders are compared instead.
    void refuse_what_runs_have() const {
        refuse_beside("--tensors", {{!json_.empty(), "--json"},
                                    {run_.target_name() != "host", "--target"},
                                    {!run_.kernels_dir().empty(), "--kernels-dir"},
                                    {run_.kernels() != "planned", "--kernels"},
                                    {!run_.where().empty(), "--where"}});
    }

    /// Both folders against the reference of the case's own inputs, and against one another.
    int two_folders(const std::vector<Case>& cases, const std::string& arch, const Streams& streams) const {
        if (cases.size() != 1)
            throw InputError(fmt::format("--tensors is about one case, {} are named", cases.size()));
        Case c = cases.front();
        c.wide_tensor.clear(); // files have no gaps between rows or entries
        const Fp8Flavour flavour = fp8_flavour(arch);
        const int threads = harness::reference_threads_within(run_.memory_limit(),
                                                              harness::FileUse::judge_outputs, c, flavour);
        const harness::Family& family = harness::family_of(c.family);
        const auto data = family.allocate(c, flavour);
        const auto expectation = data->expectation(threads);
        const Numerics numerics = reference::kernel_numerics(element_types(c.data_type, flavour));
        const std::vector<KernelFamily> stages = family.stages(c);
        std::vector<std::vector<harness::Outputs>> sides;
        bool green = true;
        fmt::print(streams.out, "{}\n", c.id);
        for (const std::string& folder : tensors_) {
            harness::read_given_outputs(folder, family, c, *data);
            const CaseResult result = harness::judge_given_outputs(c, *data, *expectation, numerics);
            double nearest = 0.0;
            for (const harness::GateVerdict& gate : result.gates)
                if (gate.required) nearest = std::max(nearest, gate.ratio);
            green = green && result.outcome == harness::Outcome::passed;
            fmt::print(streams.out, "{:16} {}   {:.3g} of the limit of its tightest gate{}\n",
                       to_string(result.outcome), folder, nearest,
                       result.message.empty() ? "" : "\n    " + result.message);
            sides.push_back(harness::exchanged_outputs(c, *data));
        }
        for (std::size_t stage = 0; stage < sides[0].size(); ++stage)
            for (const harness::Outputs::Tensor& x : sides[0][stage].tensors()) {
                if (!data->tensors().has(x.name())) continue;
                const harness::Outputs::Tensor& y = sides[1][stage].at(x.name());
                TensorDifference difference(x, y);
                expectation->each_bounded(stages[stage], sides[0][stage],
                                          [&](const harness::Bounded& bounded) {
                                              if (bounded.tensor() == x.name()) difference.relate(bounded);
                                          });
                fmt::print(streams.out, "{:16} {}\n", x.name(), difference.text());
            }
        return green ? all_well : check_failed;
    }

    /// Said before an hour of work rather than after it.
    void require_programs(const std::vector<Case>& cases) const {
        for (const Case& c : cases) {
            const parity::TileExample example = parity::tile_example(c);
            const fs::path program = fs::path(programs_) / example.program;
            if (example.cannot.empty() && !fs::is_regular_file(program))
                throw InputError(
                    fmt::format("--ck-bin {}: there is no {}; build it in the checkout: cmake --build BUILD "
                                "--target {}",
                                programs_, example.program, example.program));
        }
    }

    /// The result of a case that a person would look at first.
    static const CaseResult& worst(const Case& c, const std::vector<CaseResult>& results) {
        const CaseResult* found = nullptr;
        for (const CaseResult& result : results)
            if (result.name == c.id && (found == nullptr || rank(result) > rank(*found))) found = &result;
        if (found == nullptr) throw Error(c.id + " has no result");
        return *found;
    }
    static int rank(const CaseResult& result) {
        if (!harness::is_green(result.outcome)) return 3;
        return result.outcome == harness::Outcome::passed ? 2 : 1;
    }

    /// Each case in a process of its own, because our kernels run in it.
    void on_same_tensors(const std::vector<Case>& cases, const std::vector<CaseResult>& ours,
                         const CheckoutKernels& theirs, const harness::KernelSource& source,
                         const harness::RunOptions& options, const harness::InterruptWatch& interrupt,
                         const Streams& streams) {
        const auto task = [&](std::size_t n) -> std::string {
            const Case& c = cases[n];
            const CaseResult& own = worst(c, ours);
            // Why neither side can be run on these tensors.
            std::string cannot = CheckoutKernels::cannot(c);
            if (cannot.empty() && own.outcome == harness::Outcome::not_run) cannot = own.message;
            if (!cannot.empty()) return Json{{"cannot", cannot}}.dump();
            const bool ran =
                own.outcome == harness::Outcome::passed || own.outcome == harness::Outcome::failed;
            return to_json(theirs.run(c, ran ? &source : nullptr, options.of_case)).dump();
        };
        const auto on_end = [&](std::size_t n, const harness::TaskEnd& end) {
            const CaseResult& own = worst(cases[n], ours);
            Json row = row_of(own);
            parity::SideBySide both;
            if (end.kind != harness::TaskEnd::Kind::done) {
                both = {parity::Agreement::no_answer, "the process that ran both was " + end.answer};
            } else if (const Json said = Json::parse(end.answer); said.contains("cannot")) {
                both.sentence = "theirs is not asked: " + said.at("cannot").text();
            } else {
                const CheckoutKernels::Beside beside = beside_of(said);
                row.update(said);
                row["command"] = fmt::format("fmha compare {} --ck-kernels {} --arch {}{} --keep kept",
                                             system::shell_word(own.name), system::shell_word(checkout_),
                                             options.of_case.arch, options.of_case.given.target_flags);
                if (beside.asked)
                    both = parity::compare(own, beside.theirs);
                else
                    both.sentence = "theirs cannot be asked: " + beside.theirs.sentence;
            }
            report(row, own, both, streams);
            if (row.contains("tensors")) print_differences(row.at("tensors"), streams);
            streams.out.flush();
            return true;
        };
        harness::PoolOptions pool;
        if (options.timeout.count() > 0) pool.task_timeout = options.timeout + std::chrono::seconds(seconds_);
        pool.stop = [&] { return interrupt.requested(); };
        harness::run_isolated(cases.size(), pool, task, on_end);
    }

    static Json row_of(const CaseResult& ours) {
        return Json{{"case", ours.name},
                    {"ours", std::string(to_string(ours.outcome))},
                    {"kernel", ours.kernel},
                    {"message", ours.message}};
    }

    const parity::Answer& answer_of(const std::vector<std::string>& command) {
        const auto known = answers_.find(command);
        if (known != answers_.end()) return known->second;
        const std::chrono::seconds limit(seconds_);
        return answers_[command] = parity::read_answer(system::run_process(command, {.time = limit}), limit);
    }

    void one(const Case& c, const CaseResult& ours, const Streams& streams) {
        const parity::TileExample example = parity::tile_example(c);
        Json row = row_of(ours);
        parity::SideBySide both;
        if (!example.cannot.empty()) {
            both.sentence = "theirs cannot be asked: " + example.cannot;
        } else {
            std::vector<std::string> command{(fs::path(programs_) / example.program).string()};
            command.insert(command.end(), example.arguments.begin(), example.arguments.end());
            const parity::Answer& theirs = answer_of(command);
            both = parity::compare(ours, theirs);
            row["command"] = fmt::format("{}", fmt::join(command, " "));
            row["theirs"] = std::string(to_string(theirs.verdict));
            row["their_line"] = theirs.line;
            row["their_milliseconds"] = theirs.milliseconds;
        }
        report(row, ours, both, streams);
        streams.out.flush();
    }

    void report(Json& row, const CaseResult& ours, const parity::SideBySide& both, const Streams& streams) {
        row["agreement"] = std::string(to_string(both.agreement));
        row["sentence"] = both.sentence;
        ++counts_[both.agreement];
        const bool red = parity::is_red(both.agreement);
        fmt::print(streams.out, "{:20} {}\n", to_string(both.agreement), ours.name);
        if (both.agreement != parity::Agreement::both_right)
            fmt::print(streams.out, "  {}\n", visible(both.sentence));
        if (red && row.contains("command"))
            fmt::print(streams.out, "  {}\n", row["command"].get<std::string>());
        if (red) fmt::print(streams.out, "  {}\n", ours.reproduce);
        rows_.push_back(row);
    }

    int conclusion(std::size_t asked, const Streams& streams) {
        std::string text;
        std::int64_t compared = 0, red = 0;
        for (const auto& [agreement, count] : counts_) {
            text += fmt::format("{}{} {}", text.empty() ? "" : "   ", count, to_string(agreement));
            if (agreement != parity::Agreement::not_compared) compared += count;
            if (parity::is_red(agreement)) red += count;
        }
        const bool whole = rows_.size() == asked;
        const bool green = red == 0 && compared > 0 && whole;
        fmt::print(streams.out, "{} asked   {}\n{}\n", asked, text, green ? "GREEN" : "RED");
        if (compared == 0) fmt::print(streams.out, "nothing was compared\n");
        if (!whole) fmt::print(streams.out, "interrupted\n");
        if (!json_.empty())
            system::write_file(json_, Json{{"theirs", checkout_.empty() ? programs_ : checkout_},
                                           {"target", run_.target_name()},
                                           {"green", green},
                                           {"cases", rows_}}
                                              .dump(2) +
                                          "\n");
        return green ? all_well : check_failed;
    }

    KernelSourceFactory kernel_factory_;
    RunChoice run_;
    std::vector<std::string> cases_, tensors_;
    std::string checkout_, programs_, keep_, json_;
    harness::Tier tier_ = harness::Tier::smoke;
    std::int64_t seconds_ = 300;
    std::map<std::vector<std::string>, parity::Answer> answers_;
    std::map<parity::Agreement, std::int64_t> counts_;
    Json rows_ = Json::array();
};

} // namespace

std::unique_ptr<Command> make_compare_command(KernelSourceFactory kernels) {
    return std::make_unique<CompareCommand>(std::move(kernels));
}

std::unique_ptr<Command> make_compare_command() {
    return make_compare_command(harness::house_kernels);
}

} // namespace fmha::cli
