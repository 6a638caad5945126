#include "dispatcher/types/markup.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>

#include <map>

namespace fmha::reports {
namespace {

using harness::Outcome;

/// The child element that tells a CI system the outcome; empty for a success.
std::string verdict_element(const harness::CaseResult& result) {
    switch (result.outcome) {
    case Outcome::passed:
    case Outcome::refused_as_predicted:
        return {};
    case Outcome::not_run:
        return fmt::format("<skipped message=\"{}: {}\"/>", to_string(result.not_run_reason),
                           escaped(result.message));
    case Outcome::type_absent:
    case Outcome::failed_as_known:
        return fmt::format("<skipped message=\"{}: {}\"/>", to_string(result.outcome),
                           escaped(result.message));
    case Outcome::crashed:
    case Outcome::timed_out:
        return fmt::format("<error type=\"{}\" message=\"{}\">{}</error>", to_string(result.outcome),
                           escaped(result.message), escaped(failure_text(result)));
    case Outcome::failed:
    case Outcome::mistrusted:
    case Outcome::refused_unexpectedly:
    case Outcome::passed_unexpectedly:
        break;
    }
    return fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", to_string(result.outcome),
                       escaped(result.message), escaped(failure_text(result)));
}

/// A failure for what makes the run red beside its results, such as a missing shard: CI systems that read this file alone would call it
/// green. Empty where the results say everything.
std::string run_suite(const Report& report) {
    const std::string verdict = report.ledger.verdict();
    const auto reason = verdict.find(": ");
    if (reason == std::string::npos) return {};
    return fmt::format(
        " <testsuite name=\"run\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0\" "
        "timestamp=\"{}\">\n"
        "  <testcase classname=\"run\" name=\"verdict\" time=\"0\">"
        "<failure type=\"red\" message=\"{}\">{}</failure></testcase>\n </testsuite>\n",
        escaped(report.info.started), escaped(verdict.substr(reason + 2)), escaped(report.ledger.text()));
}

} // namespace

std::string junit(const Report& report) {
    struct Suite {
        std::string cases;
        std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
        double seconds = 0.0;
    };
    std::map<std::string, Suite> suites;
    for (const auto& result : report.results) {
        Suite& suite = suites[result.family];
        const std::string verdict = verdict_element(result);
        suite.cases +=
            fmt::format("  <testcase classname=\"{}.{}\" name=\"{}{}{}\" time=\"{:.3f}\">{}</testcase>\n",
                        escaped(result.family), escaped(result.tier), escaped(result.name),
                        result.kernel.empty() ? "" : " on ", escaped(result.kernel), result.seconds, verdict);
        ++suite.tests;
        suite.seconds += result.seconds;
        suite.failures += verdict.starts_with("<failure") ? 1 : 0;
        suite.errors += verdict.starts_with("<error") ? 1 : 0;
        suite.skipped += verdict.starts_with("<skipped") ? 1 : 0;
    }
    std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fmha verify\">\n";
    for (const auto& [family, suite] : suites)
        text +=
            fmt::format(" <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
                        "time=\"{:.3f}\" timestamp=\"{}\">\n{} </testsuite>\n",
                        escaped(family), suite.tests, suite.failures, suite.errors, suite.skipped,
                        suite.seconds, escaped(report.info.started), suite.cases);
    return text + run_suite(report) + "</testsuites>\n";
}

} // namespace fmha::reports
