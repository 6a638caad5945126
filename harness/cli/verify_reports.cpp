#include "harness/cli/verify_reports.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "harness/cli/attempts.hpp"
#include "harness/cli/input_text.hpp"
#include "harness/cli/paint.hpp"
#include "harness/results/counted.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fmha::cli {

void VerifyReports::declare(OptionSet& options) {
    options.output("--json", json_, "Write the results as JSON");
    options.output("--junit", junit_, "Write JUnit XML");
    options.output("--html", html_, "Write the report page");
    options.each(
        "--section", sections_,
        "HTML section to put on the page, of `fmha gate --html`, `fmha history --html` or `fmha parity "
        "--report`; may be given several times");
    options.format(format_);
}

std::string_view VerifyReports::asked() const {
    return !json_.empty()       ? "--json"
           : !junit_.empty()    ? "--junit"
           : !html_.empty()     ? "--html"
           : !sections_.empty() ? "--section"
                                : "";
}

std::vector<std::string> VerifyReports::sections() const {
    std::vector<std::string> texts;
    for (const std::string& file : sections_) {
        texts.push_back(input_text(file));
        if (!texts.back().starts_with("<section"))
            throw InputError(
                fmt::format("--section {}: is no section of a page, as fmha gate --html, fmha history "
                            "--html and fmha parity --report write them",
                            file));
    }
    return texts;
}

void VerifyReports::check_files(const NamedFiles& others) const {
    // The usual page is no option.
    require_different({{"--html", page_file()}}, others);
    for (const std::string& file : {json_, junit_, html_})
        if (!file.empty()) system::check_writable(file);
}

void VerifyReports::publish(const reports::Report& report, const std::string& headline,
                            const std::string& journal, const Streams& streams) const {
    // The outcome is printed first: a file that cannot be written must not take it away.
    print_report(report, headline, journal, streams);
    streams.out.flush();
    Attempts attempt;
    std::string written;
    const auto write = [&](std::string_view what, const std::string& file,
                           std::string (*text_of)(const reports::Report&)) {
        if (file.empty()) return;
        try {
            system::write_file(file, text_of(report));
            written += fmt::format("   {} {}", what, file);
        } catch (const InputError& error) {
            // The usual page was not asked for.
            if (what == "page" && html_.empty())
                fmt::print(streams.err, "fmha verify: no report page: {}\n", error.what());
            else
                attempt.failed(error.what());
        }
    };
    write("page", page_file(), reports::html);
    write("json", json_, reports::json);
    write("junit", junit_, reports::junit);
    if (!prints_json()) fmt::print(streams.out, "{:.1f} s{}\n", report.info.seconds, written);
    attempt.finish();
}

/// The page that was asked for, or the usual one; empty when other reports were asked for.
std::string VerifyReports::page_file() const {
    if (!html_.empty()) return html_;
    const bool other = has_json() || !junit_.empty() || !usual_page_;
    return other ? "" : "fmha-report/index.html";
}

void VerifyReports::print_report(const reports::Report& report, const std::string& headline,
                                 const std::string& journal, const Streams& streams) const {
    if (prints_json()) {
        fmt::print(streams.out, "{}", reports::json(report));
        return;
    }
    fmt::print(streams.out, "{}", painted(reports::failures_text(report.results), streams.colours));
    fmt::print(streams.out, "{}\n", headline);
    if (report.info.resumed > 0)
        fmt::print(streams.out, "continued: {} had finished in earlier processes, says {}\n",
                   counted(static_cast<std::size_t>(report.info.resumed), "case"), journal);
    for (const std::string& sentence : report.info.left_out) fmt::print(streams.out, "{}\n", sentence);
    if (!report.info.devices.empty()) fmt::print(streams.out, "{}\n", fmt::join(report.info.devices, "\n"));
    fmt::print(streams.out, "{}", painted(report.ledger.text(), streams.colours));
    if (report.ledger.interrupted())
        fmt::print(streams.out, "{}\n",
                   journal.empty() ? "a run with --journal FILE can be continued after an interruption"
                                   : "the same command continues it");
}

std::string sampled_shapes(std::span<const harness::CaseResult> results, bool runs_row_tiles) {
    std::size_t sampled = 0, in_tiles = 0;
    for (const harness::CaseResult& result : results) {
        if (!result.sampled || result.rows == 0 ||
            std::ranges::find(result.labels, "matrix") == result.labels.end())
            continue;
        ++sampled;
        if (runs_row_tiles && traits_of(result.family).contiguous()) ++in_tiles;
    }
    if (sampled == 0) return {};
    std::string sentence = fmt::format("large shapes: {} of sampled rows alone", counted(sampled, "result"));
    if (in_tiles > 0)
        sentence += fmt::format("; for {} only the tiles of these rows were computed", in_tiles);
    return sentence;
}

} // namespace fmha::cli
