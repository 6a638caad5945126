#include "harness/cli/parity_command.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/case_snapshot.hpp"
#include "harness/cli/catalog_options.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/output_files.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/today.hpp"
#include "harness/run/planned_kernels.hpp"
#include "parity/between_audit.hpp"
#include "parity/checkout_audit.hpp"
#include "parity/consistency_audit.hpp"
#include "parity/golden_audit.hpp"

#include <fmt/ostream.h>

#include <chrono>

namespace fmha::cli {
namespace {

/// `rules` is the rule set of upstream's dispatcher; its documents quote the flavour `claim`.
catalog::RuleSet parse_rules(std::string_view option, const std::string& text) {
    return text == "rules" ? catalog::RuleSet::claim : parse_option<catalog::RuleSet>(option, text);
}

parity::GoldenScope golden_scope(const arch::ArchSet& archs, const std::vector<std::string>& rules,
                                 const std::vector<std::string>& names, bool with_sweep) {
    parity::GoldenScope scope;
    for (const std::string& text : rules) scope.rules.push_back(parse_rules("--rules", text));
    scope.archs = parse_archs(archs, names);
    scope.with_sweep = with_sweep;
    return scope;
}

/// The legal problems of the whole case matrix, as they stand on an architecture.
std::vector<parity::NamedProblem> case_problems(const std::string& root, const ArchName& arch) {
    std::vector<parity::NamedProblem> problems;
    harness::LoadOptions options;
    options.root = root;
    options.tier = harness::Tier::nightly;
    options.planned_tile = harness::house_tiles(arch.str());
    for (const auto& concrete : harness::load_cases({}, options))
        if (concrete.expect == harness::Expectation::pass)
            problems.push_back({concrete.id, harness::to_problem(concrete, arch.view())});
    return problems;
}

} // namespace

std::string_view ParityCommand::example() const {
    return "fmha parity                                    # everything against parity/golden\n"
           "  fmha parity --arch gfx942 --rules ck --accept --reason \"upstream dropped the 64x128 tile\"\n"
           "  fmha parity --ck-root ~/composable_kernel --arch gfx950 --profile 0,4\n"
           "  fmha parity --between ck rules --arch gfx950";
}

void ParityCommand::declare(OptionSet& options) {
    options.list("--arch", archs_, "architectures (default: all)");
    options.flag("--golden", golden_, "compare with the golden files, which is the default");
    options.list("--rules", rules_, "rule sets of the golden audit (default: all)");
    arch_files_.declare(options);
    options.option("--golden-dir", golden_dir_, "folder of the golden files (default: the source tree's)");
    options.flag("--no-sweep", no_sweep_, "leave out the rule set sweep, which takes longer than all others");
    options.flag("--accept", accept_, "write today's facts as golden files");
    options.option("--reason", reason_, "why the change is right; kept in the golden files");
    options.option("--ck-root", ck_root_, "compare with the generator of this Composable Kernel checkout");
    options.option("--python", python_, "interpreter for the generator");
    options.list("--api", apis_, "APIs to compare with the checkout (default: all)");
    options.list("--profile", profiles_, "profiles or receipt numbers to compare (default: ck_default)");
    options.list("--masks", masks_, "mask vocabularies to compare with the checkout (default: simplified)");
    options.pair("--between", between_,
                 "compare two of our rule sets; rules means claim. That they differ is no failure");
    options.flag("--smoke", smoke_,
                 "names, inputs and planned kernels of the smoke tier against parity/cases/smoke.txt");
    options.flag("--consistency", consistency_,
                 "duplicate names, broken validation rules, dead kernels, holes");
    options.option("--cases", cases_, "folder of case files for --consistency (default: the source tree's)");
    options.option("--examples", examples_, "names shown for each difference");
    options.output("--report", report_dir_,
                   "write parity.json, parity.txt and parity.html into this folder too");
    store_.declare(options);
    options.format(format_, "text for people, json with every name for programs");
}

parity::AuditReport ParityCommand::audit(const arch::ArchSet& archs, const parity::OnCheck& on_check) const {
    if (!between_.empty()) {
        auto on = parse_archs(archs, archs_);
        const auto left = parse_rules("--between", between_[0]);
        const auto right = parse_rules("--between", between_[1]);
        if (on.empty())
            for (const auto& arch : archs.all())
                if (parity::has_rules(arch, left) && parity::has_rules(arch, right))
                    on.push_back(arch.name());
        const auto profile = catalog::parse_profile(profiles_.empty() ? "ck_default" : profiles_.front());
        return parity::audit_between(archs, left, right, on, profile, on_check);
    }
    if (consistency_) {
        const auto scope = golden_scope(archs, rules_, archs_, !no_sweep_);
        return parity::audit_consistency(
            archs, scope.rules, scope.archs, parity::read_lattice(FMHA_PARITY_DIR "/witnesses.json"),
            parity::read_expected(FMHA_PARITY_DIR "/expected.json"),
            [&](const ArchName& arch) { return case_problems(cases_, arch); }, on_check);
    }
    if (!ck_root_.empty()) {
        parity::CheckoutScope scope;
        scope.root = ck_root_;
        scope.python = python_;
        scope.archs = parse_archs(archs, archs_);
        for (const auto& text : apis_) scope.apis.push_back(parse_option<ApiFamily>("--api", text));
        for (const auto& text : profiles_) scope.profiles.push_back(catalog::parse_profile(text));
        for (const auto& text : masks_)
            scope.masks.push_back(parse_option<catalog::MaskVocabulary>("--masks", text));
        return parity::audit_checkout(archs, scope, on_check);
    }
    return parity::audit_golden(archs, golden_dir_, golden_scope(archs, rules_, archs_, !no_sweep_),
                                on_check);
}

int ParityCommand::accept(const arch::ArchSet& archs, const Streams& streams) const {
    if (!ck_root_.empty() || !between_.empty() || consistency_)
        throw InputError(
            "--accept belongs to the golden audit and excludes --ck-root, --between and --consistency");
    const auto scope = golden_scope(archs, rules_, archs_, !no_sweep_);
    for (const auto& sentence : parity::accept_golden(archs, golden_dir_, scope, reason_, today()))
        fmt::print(streams.out, "{}\n", sentence);
    return all_well;
}

void ParityCommand::check_options() const {
    const bool between = !between_.empty(), checkout = !ck_root_.empty();
    if (int{golden_} + int{between} + int{checkout} + int{consistency_} + int{smoke_} > 1)
        throw InputError("--golden, --between, --ck-root, --smoke and --consistency exclude one another");
    const auto needs = [](bool given, std::string_view option, bool there, std::string_view needed) {
        if (given && !there) throw InputError(fmt::format("{} needs {}", option, needed));
    };
    needs(!apis_.empty(), "--api", checkout, "--ck-root");
    needs(!masks_.empty(), "--masks", checkout, "--ck-root");
    needs(python_ != "python3", "--python", checkout, "--ck-root");
    needs(!profiles_.empty(), "--profile", checkout || between, "--ck-root or --between");
    needs(!cases_.empty(), "--cases", consistency_ || smoke_, "--consistency or --smoke");
    needs(!rules_.empty(), "--rules", !checkout && !between && !smoke_, "the golden audit or --consistency");
    needs(no_sweep_, "--no-sweep", !checkout && !between && !smoke_, "the golden audit or --consistency");
    needs(!archs_.empty(), "--arch", !smoke_, "an audit of lists, which --smoke is not");
    needs(!report_dir_.empty(), "--report", !smoke_ && !accept_, "an audit of lists, without --accept");
    needs(!golden_dir_.empty(), "--golden-dir", !checkout && !between && !consistency_,
          "the golden audit or --smoke");
    needs(!reason_.empty(), "--reason", accept_, "--accept, which keeps it");
    if (!store_.file().empty() && (accept_ || smoke_))
        throw InputError("--store keeps the counts of an audit: it excludes --accept and --smoke");
    if (between && profiles_.size() > 1) throw InputError("--between compares one --profile at a time");
    if (!cases_.empty() && !std::filesystem::is_directory(cases_))
        throw InputError(fmt::format("--cases {}: is not a folder", cases_));
    if (!golden_dir_.empty() && !accept_ && !std::filesystem::is_directory(golden_dir_))
        throw InputError(fmt::format("--golden-dir {}: is not a folder", golden_dir_));
}

int ParityCommand::run(const Streams& streams) {
    check_options();
    if (cases_.empty()) cases_ = FMHA_CASES_DIR;
    if (golden_dir_.empty()) golden_dir_ = smoke_ ? FMHA_PARITY_DIR "/cases" : FMHA_PARITY_DIR "/golden";
    if (smoke_)
        return case_snapshot(cases_, std::filesystem::path(golden_dir_) / "smoke.txt", accept_, reason_,
                             static_cast<std::size_t>(examples_), streams);
    const auto archs = arch_files_.load();
    if (accept_) return accept(archs, streams);
    // Found out now rather than after the work.
    store_.check();
    for (const char* name : {"parity.json", "parity.txt", "parity.html"}) {
        if (report_dir_.empty()) break;
        const auto file = std::filesystem::path(report_dir_) / name;
        require_different({{"--store", store_.file()}, {"--report", file}});
        system::check_writable(file);
    }
    const auto start = std::chrono::steady_clock::now();
    Progress progress(streams.err, streams.progress, 0);
    const auto report = audit(archs, [&](std::size_t done, std::size_t all, std::string_view subject) {
        progress.at(done, all, std::string(subject));
    });
    progress.clear();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const auto text = parity::to_text(report, examples_);
    fmt::print(streams.out, "{}",
               format_ == OutputFormat::json ? parity::to_json(report).dump(2) + "\n" : text);
    const bool golden = between_.empty() && ck_root_.empty() && !consistency_;
    if (golden && !report.ok() && format_ == OutputFormat::text) {
        std::string scope;
        for (const std::string& rules : rules_) scope += " --rules " + rules;
        for (const std::string& arch : archs_) scope += " --arch " + arch;
        if (no_sweep_) scope += " --no-sweep";
        fmt::print(streams.out, "if that is right: fmha parity --accept{} --reason \"…\"\n", scope);
    }
    Attempts attempt;
    if (!report_dir_.empty()) {
        const std::filesystem::path folder = report_dir_;
        attempt.write(folder / "parity.json", [&] { return parity::to_json(report).dump(2) + "\n"; });
        attempt.write(folder / "parity.txt", [&] { return text; });
        attempt.write(folder / "parity.html", [&] { return parity::to_html_section(report); });
    }
    attempt([&] { remember(report, spent.count(), streams.invocation); });
    attempt.finish();
    return report.ok() ? all_well : check_failed;
}

void ParityCommand::remember(const parity::AuditReport& report, double seconds,
                             const std::string& invocation) const {
    if (store_.file().empty()) return;
    store::RunRecord record = new_run(store::RunKind::parity, invocation);
    record.selection = report.title;
    record.asked = static_cast<std::int64_t>(report.checks.size());
    const auto recording = store_.begin(record);
    std::vector<store::CountRecord> counts;
    for (const parity::Check& check : report.checks) {
        counts.push_back({check.subject, check.unit, check.compared});
        for (const auto& [family, kernels] : check.counts)
            counts.push_back({fmt::format("{} {}", check.subject, family), "kernels", kernels});
    }
    recording->add(counts);
    finish(recording.get(), seconds, report.ok());
}

std::unique_ptr<Command> make_parity_command() {
    return std::make_unique<ParityCommand>();
}

} // namespace fmha::cli
