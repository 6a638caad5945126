#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cli/build_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/kernel_request.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/store_option.hpp"
#include "harness/cli/today.hpp"
#include "harness/run/interrupt.hpp"
#include "kernels/generator/audit.hpp"
#include "kernels/generator/cache.hpp"
#include "kernels/generator/list_facts.hpp"
#include "kernels/generator/loop_budgets.hpp"
#include "kernels/generator/loop_report.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

namespace fmha::cli {
namespace {

class BuildCommand final : public Command {
  public:
    std::string_view name() const override { return "build"; }
    std::string_view summary() const override {
        return "Compile kernels for GPUs, and audit their use of resources";
    }
    std::string_view example() const override {
        return "fmha build --arch gfx942 --tier smoke --out kernels-gfx942\n"
               "  fmha build --arch gfx90a,gfx942,gfx950,gfx1100,gfx1151,gfx1201 --covering --audit\n"
               "  fmha build --arch gfx950 --config cases/sweeps/fwd.json --filter \"c.hdim_q == 128\" "
               "--workers 16\n"
               "  fmha build --catalogue --arch gfx950 --out kernels-gfx950 --jobs 16";
    }

    void declare(OptionSet& options) override {
        request_.declare(options);
        compile_.declare(options);
        options.option("--jobs,--workers", jobs_, "Compilers at a time; 0: one for each hardware thread");
        options.output(
            "--cache", cache_,
            "Folder of code objects that builds share (default: FMHA_CACHE_DIR, else ~/.cache/fmha/kernels)");
        options.flag("--no-cache", no_cache_, "Neither read nor write that folder");
        options.flag(
            "--audit", audit_,
            "Record the resources of every kernel; fail on scratch, on LDS or registers that the "
            "architecture does "
            "not have, on kernels without matrix instructions, and on loops over keys that cannot be "
            "read; model those loops (loops.md)");
        options.option("--budgets", budgets_,
                       "With --audit: folder of the budgets that plain iterations must keep "
                       "(kernels/generator/budgets in the source tree); 1 where all are of another compiler");
        options.option("--spills", spills_,
                       "With --audit: folder of the spills that were accepted and may not grow "
                       "(kernels/generator/spills in the source tree)");
        options.option(
            "--facts", facts_,
            "With --audit: folder of what the kernels of whole lists took (kernels/generator/facts "
            "in the source tree): a kernel, a spill or a register more is a finding, with "
            "--catalogue a kernel less too");
        options.flag(
            "--accept", accept_,
            "With --budgets, --spills or --facts: write these loops as the budgets of their kernels, their "
            "spills, and the facts of their families, which have to be whole (--catalogue)");
        options.option("--reason", reason_, "Why that is right; kept beside what was accepted");
        options.flag("--keep-held-up", keep_held_up_,
                     "Keep kernels of pipeline ws that spill or that the assembler holds up, which otherwise "
                     "fail: for kernels with known mistakes");
        options.flag("--replace", replace_,
                     "Remove kernels of --out that this build leaves out, which otherwise is an error");
        options.flag("--compile-only", compile_only_,
                     "For scripts that give all commands this option, without effect: nothing is launched in "
                     "any case");
        for (const char* name : {"--warmup", "--repeat,--repeats"})
            options.option(name, launches_, "As --compile-only: kernels are launched by verify and bench");
        store_.declare(options);
        options.format(format_);
    }

    int run(const Streams& streams) override {
        const auto archs = request_.archs();
        audit_ = audit_ || request_.whole_list();
        const generator::Selection selection = request_.select(archs);
        const auto tools = compile_.tools(archs, selection, request_.arguments());
        if (!store_.file().empty() && !audit_)
            throw InputError("--store needs --audit, whose findings it keeps");
        check_budget_options();
        const auto recording = store_.begin(run_record(selection, tools, streams.invocation));
        const harness::InterruptWatch interrupt;
        Progress progress(streams.err, streams.progress, 0);
        auto build_options = options(progress, interrupt);
        build_options.waiting = [&](const std::string& sentence) {
            fmt::print(streams.err, "fmha build: {}\n", sentence);
        };
        auto result = generator::build(selection, tools, build_options);
        std::vector<generator::AuditFinding> findings;
        if (audit_)
            findings = generator::audit(result, tools, archs, build_options, allowed_spills(selection));
        if (accept_ && result.interrupted)
            fmt::print(streams.err, "fmha build: not every kernel was audited, so nothing is accepted\n");
        if (accept_ && !spills_.empty() && !result.interrupted)
            for (const auto& sentence : generator::accept_spills(result.manifest, spills_, reason_, today()))
                fmt::print(streams.err, "{}\n", sentence);
        const auto verdict = judge_budgets(result, streams);
        findings.insert(findings.end(), verdict.findings.begin(), verdict.findings.end());
        judge_facts(result, findings, streams);
        progress.clear();
        if (audit_ && spills_.empty())
            if (const auto advice = generator::advice_without_records(result.manifest); !advice.empty())
                fmt::print(streams.err, "fmha build: {}\n", advice);
        for (const std::string& warning : result.warnings)
            fmt::print(streams.err, "fmha build: {}\n", warning);
        if (format_ == OutputFormat::json)
            fmt::print(streams.out, "{}\n", to_json(selection, result, findings, verdict).dump(1));
        else
            print(selection, result, findings, verdict, streams);
        const bool green = result.failed.empty() && findings.empty() && !result.interrupted &&
                           built(result) > 0 && !verdict.said_nothing();
        if (recording) {
            recording->add(resource_records(result.manifest));
            // An interrupted build has not looked at every kernel, so it stays unfinished.
            if (!result.interrupted) finish(recording.get(), result.compile_seconds, green);
        }
        return green ? all_well : check_failed;
    }

  private:
    void check_budget_options() const {
        if (!budgets_.empty() && !audit_) throw InputError("--budgets needs --audit, which models the loops");
        if (!spills_.empty() && !audit_) throw InputError("--spills needs --audit, which finds them");
        if (!facts_.empty() && !audit_) throw InputError("--facts needs --audit, which finds them");
        if (accept_ && budgets_.empty() && spills_.empty() && facts_.empty())
            throw InputError("--accept needs --budgets, --spills or --facts, the folder to write");
        if (accept_ && !facts_.empty() && !request_.whole_families())
            throw InputError("--facts --accept needs whole families: --catalogue, alone or with --family");
        if (accept_ == reason_.empty())
            throw InputError(accept_ ? "--accept needs --reason, which it keeps" : "--reason needs --accept");
    }

    /// The spills that kernels may have: the accepted ones, or any when they are to be accepted now.
    generator::SpillsByArch allowed_spills(const generator::Selection& selection) const {
        generator::SpillsByArch allowed;
        if (spills_.empty()) return allowed;
        for (const auto& kernel : selection.kernels)
            if (const auto [at, is_new] = allowed.try_emplace(kernel.config.arch.str()); is_new) {
                if (accept_)
                    at->second.every = true;
                else
                    at->second = generator::read_spills(spills_, kernel.config.arch);
            }
        return allowed;
    }

    generator::BudgetVerdict judge_budgets(const generator::BuildResult& result,
                                           const Streams& streams) const {
        if (budgets_.empty()) return {};
        if (accept_ && !result.interrupted)
            for (const auto& sentence :
                 generator::accept_budgets(result.manifest, budgets_, reason_, today()))
                fmt::print(streams.err, "{}\n", sentence);
        auto verdict = generator::over_budget(result.manifest, budgets_);
        for (const auto& note : verdict.notes) fmt::print(streams.err, "fmha build: {}\n", note);
        if (verdict.said_nothing()) fmt::print(streams.err, "fmha build: no loop was judged\n");
        return verdict;
    }

    void judge_facts(const generator::BuildResult& result, std::vector<generator::AuditFinding>& findings,
                     const Streams& streams) const {
        if (facts_.empty()) return;
        const bool whole = request_.whole_families() && !result.interrupted && result.failed.empty();
        if (accept_ && !whole && !result.interrupted)
            fmt::print(streams.err, "fmha build: not every kernel was built, so no facts are written\n");
        else if (accept_ && whole)
            for (const auto& sentence : generator::accept_facts(result.manifest, facts_, reason_, today()))
                fmt::print(streams.err, "{}\n", sentence);
        const auto verdict = generator::against_facts(result.manifest, facts_, whole);
        for (const auto& note : verdict.notes) fmt::print(streams.err, "fmha build: {}\n", note);
        findings.insert(findings.end(), verdict.findings.begin(), verdict.findings.end());
        fmt::print(streams.err, "fmha build: {} groups of kernels judged by their facts\n", verdict.judged);
    }

    generator::BuildOptions options(Progress& progress, const harness::InterruptWatch& interrupt) const {
        if (jobs_ < 0 || jobs_ > 4096) throw InputError(fmt::format("--jobs {}: allowed: 0 to 4096", jobs_));
        if (no_cache_ && !cache_.empty()) throw InputError("--cache and --no-cache exclude one another");
        generator::BuildOptions options = compile_.build();
        options.jobs = static_cast<int>(jobs_);
        options.keep_held_up = keep_held_up_;
        options.replace = replace_;
        if (!no_cache_)
            options.cache =
                cache_.empty() ? generator::KernelCache::usual_folder() : std::filesystem::path(cache_);
        options.stop = [&interrupt] { return interrupt.requested(); };
        options.progress = [&progress](std::size_t done, std::size_t all, std::string_view what) {
            progress.at(done, all, std::string(what));
        };
        return options;
    }

    store::RunRecord run_record(const generator::Selection& selection, const generator::BuildTools& tools,
                                const std::string& invocation) const {
        store::RunRecord record = new_run(store::RunKind::build, invocation);
        record.selection = fmt::format("{}", fmt::join(request_.arguments(), " "));
        record.asked = static_cast<std::int64_t>(selection.kernels.size());
        record.compiler.clear();
        for (const auto& [arch, compiler] : tools.compilers)
            if (record.compiler.find(compiler.version) == std::string::npos)
                record.compiler += (record.compiler.empty() ? "" : "; ") + compiler.version;
        return record;
    }

    static std::vector<store::ResourceRecord> resource_records(const built::Manifest& manifest) {
        std::vector<store::ResourceRecord> records;
        for (const auto& object : manifest.objects)
            for (const auto& kernel : object.kernels)
                if (const auto& used = kernel.resources)
                    records.push_back({kernel.name, object.arch.str(), object.compiler, used->vgprs,
                                       used->agprs, used->sgprs, used->lds_bytes, used->scratch_bytes,
                                       used->vgpr_spills, used->sgpr_spills, used->occupancy,
                                       used->code_bytes, used->compile_ms});
        return records;
    }

    static std::size_t built(const generator::BuildResult& result) {
        return result.compiled + result.cached + result.present;
    }

    static double per_minute(const generator::BuildResult& result) {
        constexpr double minute = 60.0;
        return result.compile_seconds > 0.0
                   ? minute * static_cast<double>(result.compiled) / result.compile_seconds
                   : 0.0;
    }

    Json to_json(const generator::Selection& selection, const generator::BuildResult& result,
                 const std::vector<generator::AuditFinding>& findings,
                 const generator::BudgetVerdict& verdict) const {
        auto failed = Json::array(), declined = Json::array();
        for (const auto& kernel : result.failed)
            failed.push_back(
                {{"name", kernel.kernel.name}, {"command", kernel.command}, {"errors", kernel.errors}});
        for (const auto& kernel : selection.declined)
            declined.push_back({{"name", kernel.kernel.name}, {"reason", kernel.reason}});
        Json document{{"kernels", selection.kernels.size()},
                      {"compiled", result.compiled},
                      {"from_cache", result.cached},
                      {"up_to_date", result.present},
                      {"compile_seconds", result.compile_seconds},
                      {"kernels_per_minute", per_minute(result)},
                      {"interrupted", result.interrupted},
                      {"failed", std::move(failed)},
                      {"declined", std::move(declined)}};
        if (!audit_) return document;
        auto wrong = Json::array(), spills = Json::array();
        for (const auto& finding : findings)
            wrong.push_back({{"name", finding.name}, {"sentence", finding.sentence}});
        for (const auto& row : generator::spills(result.manifest))
            spills.push_back({{"kernels", row.what},
                              {"audited", row.audited},
                              {"spilling", row.spilling},
                              {"most_scratch_bytes", row.most_scratch}});
        auto loops = Json::array();
        for (const auto& row : generator::loop_rows(result.manifest))
            loops.push_back({{"kernels", row.what},
                             {"audited", row.kernels},
                             {"vector_a_score", Json::array({row.fewest_a_score, row.most_a_score})},
                             {"matrix_busy_at_most", Json::array({row.least_busy, row.most_busy})}});
        auto spilling = Json::array(), slowest = Json::array();
        for (const auto* kernel : generator::spilling_kernels(result.manifest))
            spilling.push_back(kernel->name);
        for (const auto* kernel : generator::slowest_kernels(result.manifest, most_slow))
            slowest.push_back({{"name", kernel->name}, {"compile_ms", kernel->resources->compile_ms}});
        document["audit"] = {{"findings", std::move(wrong)},
                             {"spills", std::move(spills)},
                             {"spilling_kernels", std::move(spilling)},
                             {"slowest", std::move(slowest)},
                             {"loops", std::move(loops)}};
        if (!budgets_.empty())
            document["audit"]["budgets"] = {{"judged", verdict.judged}, {"not_judged", verdict.not_judged}};
        return document;
    }

    void print(const generator::Selection& selection, const generator::BuildResult& result,
               const std::vector<generator::AuditFinding>& findings, const generator::BudgetVerdict& verdict,
               const Streams& streams) const {
        for (const auto& kernel : selection.declined)
            fmt::print(streams.out, "declined {}: {}\n", kernel.kernel.name, kernel.reason);
        for (const auto& kernel : result.failed)
            fmt::print(streams.out, "FAILED {}\n  in {}: {}\n{}\n", kernel.kernel.name, compile_.out(),
                       kernel.command, kernel.errors);
        for (const auto& finding : findings)
            fmt::print(streams.out, "AUDIT {}: {}\n", finding.name, finding.sentence);
        if (audit_) print_loops(result, streams);
        if (audit_) print_spills(result, streams);
        if (!budgets_.empty())
            fmt::print(streams.out, "{} loops judged by their budgets, {} not judged\n", verdict.judged,
                       verdict.not_judged);
        if (request_.whole_list()) print_named(result, streams);
        fmt::print(streams.out, "{} of {} kernels built: {} compiled", built(result),
                   selection.kernels.size(), result.compiled);
        if (result.compiled > 0)
            fmt::print(streams.out, " in {:.1f} s ({:.0f} a minute)", result.compile_seconds,
                       per_minute(result));
        fmt::print(streams.out, ", {} from the cache, {} up to date; {} failed, {} declined\n", result.cached,
                   result.present, result.failed.size(), selection.declined.size());
        if (!request_.sentence().empty()) fmt::print(streams.out, "{}\n", request_.sentence());
        if (result.interrupted) fmt::print(streams.out, "interrupted; the same command continues\n");
    }

    static void print_loops(const generator::BuildResult& result, const Streams& streams) {
        for (const auto& row : generator::loop_rows(result.manifest))
            fmt::print(streams.out,
                       "loop {}: {} audited, {:.1f} to {:.1f} vector instructions a score, matrix unit busy "
                       "at most {:.2f} to "
                       "{:.2f}\n",
                       row.what, row.kernels, row.fewest_a_score, row.most_a_score, row.least_busy,
                       row.most_busy);
    }

    static void print_spills(const generator::BuildResult& result, const Streams& streams) {
        const auto rows = generator::spills(result.manifest);
        for (std::size_t i = 1; i < rows.size(); ++i)
            fmt::print(streams.out, "{}: {} of {} spill, up to {} bytes of scratch a lane\n", rows[i].what,
                       rows[i].spilling, rows[i].audited, rows[i].most_scratch);
        fmt::print(streams.out, "{} of {} audited kernels spill\n", rows.front().spilling,
                   rows.front().audited);
    }

    /// Kernels that a reader of a whole list wants to know by name.
    static void print_named(const generator::BuildResult& result, const Streams& streams) {
        for (const auto* kernel : generator::spilling_kernels(result.manifest))
            fmt::print(streams.out, "spills   {}\n", kernel->name);
        for (const auto* kernel : generator::slowest_kernels(result.manifest, most_slow)) {
            constexpr double ms = 1e-3;
            fmt::print(streams.out, "slowest  {:6.1f} s  {}\n",
                       ms * static_cast<double>(kernel->resources->compile_ms), kernel->name);
        }
    }

    static constexpr std::size_t most_slow = 10;
    KernelRequest request_;
    CompileOptions compile_;
    StoreOption store_;
    std::int64_t jobs_ = 0;
    std::optional<std::int64_t> launches_; ///< of other commands
    std::string cache_;
    OutputFormat format_ = OutputFormat::text;
    std::string budgets_, spills_, facts_, reason_;
    bool no_cache_ = false, audit_ = false, accept_ = false, keep_held_up_ = false, compile_only_ = false,
         replace_ = false;
};

} // namespace

std::unique_ptr<Command> make_build_command() {
    return std::make_unique<BuildCommand>();
}

} // namespace fmha::cli
