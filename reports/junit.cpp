#include "dispatcher/types/markup.hpp"
#include "reports/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

namespace fmha::reports {
namespace {

using harness::Outcome;

/// What JUnit tells apart.
enum class JunitVerdict : std::uint8_t { success, skipped, error, failure };

JunitVerdict verdict_of(Outcome outcome) {
    switch (outcome) {
    case Outcome::passed:
    case Outcome::refused_as_predicted:
        return JunitVerdict::success;
    case Outcome::not_run:
    case Outcome::type_absent:
    case Outcome::failed_as_known:
        return JunitVerdict::skipped;
    case Outcome::crashed:
    case Outcome::timed_out:
        return JunitVerdict::error;
    case Outcome::failed:
    case Outcome::mistrusted:
    case Outcome::refused_unexpectedly:
    case Outcome::passed_unexpectedly:
        break;
    }
    return JunitVerdict::failure;
}

/// The child element that tells a CI system the verdict; empty for a success.
std::string verdict_element(JunitVerdict verdict, const harness::CaseResult& result) {
    if (verdict == JunitVerdict::success) return {};
    const std::string message = escaped(result.message);
    if (verdict == JunitVerdict::skipped)
        return fmt::format("<skipped message=\"{}: {}\"/>",
                           result.outcome == Outcome::not_run ? to_string(result.not_run_reason)
                                                              : to_string(result.outcome),
                           message);
    return fmt::format("<{0} type=\"{1}\" message=\"{2}\">{3}</{0}>",
                       verdict == JunitVerdict::error ? "error" : "failure", to_string(result.outcome),
                       message, escaped(failure_text(result)));
}

/// A failure for what makes the run red beside its results, such as a missing shard: CI systems that read this file alone would call it
/// green. Empty where the results say everything.
std::string run_suite(const Report& report) {
    const std::vector<std::string> complaints = report.ledger.complaints();
    if (complaints.empty()) return {};
    return fmt::format(
        " <testsuite name=\"run\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0\" "
        "timestamp=\"{}\">\n"
        "  <testcase classname=\"run\" name=\"verdict\" time=\"0\">"
        "<failure type=\"red\" message=\"{}\">{}</failure></testcase>\n </testsuite>\n",
        escaped(report.info.started), escaped(fmt::format("{}", fmt::join(complaints, "; "))),
        escaped(report.ledger.text()));
}

} // namespace

std::string junit(const Report& report) {
    struct Suite {
        std::string cases;
        std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
        double seconds = 0.0;
    };
    std::map<ApiFamily, Suite> suites;
    for (const auto& result : report.results) {
        Suite& suite = suites[result.family];
        const JunitVerdict verdict = verdict_of(result.outcome);
        suite.cases +=
            fmt::format("  <testcase classname=\"{}.{}\" name=\"{}{}{}\" time=\"{:.3f}\">{}</testcase>\n",
                        to_string(result.family), to_string(result.tier), escaped(result.name),
                        result.kernel.empty() ? "" : " on ", escaped(result.kernel), result.seconds,
                        verdict_element(verdict, result));
        ++suite.tests;
        suite.seconds += result.seconds;
        suite.failures += verdict == JunitVerdict::failure ? 1 : 0;
        suite.errors += verdict == JunitVerdict::error ? 1 : 0;
        suite.skipped += verdict == JunitVerdict::skipped ? 1 : 0;
    }
    std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fmha verify\">\n";
    for (const auto& [family, suite] : suites)
        text +=
            fmt::format(" <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
                        "time=\"{:.3f}\" timestamp=\"{}\">\n{} </testsuite>\n",
                        to_string(family), suite.tests, suite.failures, suite.errors, suite.skipped,
                        suite.seconds, escaped(report.info.started), suite.cases);
    return text + run_suite(report) + "</testsuites>\n";
}

} // namespace fmha::reports
