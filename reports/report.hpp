#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/ledger.hpp"
#include "harness/results/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// A run, rendered. Every function is pure: the same run gives the same text.
namespace fmha::reports {

struct Report {
    harness::RunInfo info;
    std::vector<harness::CaseResult> results;
    harness::Ledger ledger;
    /// How many kernels the list has of each family, rows and keys of a tile; empty where nobody counted.
    std::map<std::tuple<KernelFamily, std::int64_t, std::int64_t>, std::int64_t> listed{};
    /// Finished HTML sections of other audits (`fmha parity --report`), put on the page as they are; scripts in them do not run.
    std::vector<std::string> sections;
    /// The facts of a shard for `fmha merge` (harness/results/merge.hpp); null when nobody asked for it.
    Json identity{};
};

/// One object with "schema", "run", "ledger" and "results" (docs/gates.md).
std::string json(const Report& report);

/// JUnit XML: one test suite a family, one test case a result; refusals and results that are not run are as CI
/// systems expect them (skipped with the reason for not_run and for a type that is absent, passed for a predicted refusal).
std::string junit(const Report& report);

/// One self-contained page: ledger, a heat map of families × features, failures with their reports and pictures of where the wrong
/// elements lie, sections of other audits, margins of the gates, the kernels that ran, the slowest results, all results. No
/// external file is referenced and no other script than its own can run; it follows the reader's light or dark preference.
std::string html(const Report& report);

/// The word with which the text about a red result begins: "TIMED OUT".
std::string heading(harness::Outcome outcome);

/// The text for a person about one result that is not green: gate, worst element, ten worst, row pattern,
/// command.
std::string failure_text(const harness::CaseResult& result);
/// All results that are not green, for a terminal or a log: the first three of each family and first gate as `failure_text` has them, of the
/// others the name and why; then their kinds. Empty when all are green.
std::string failures_text(const std::vector<harness::CaseResult>& results);
/// The same without the tables of numbers, which the page shows as such.
std::string failure_words(const harness::CaseResult& result);

} // namespace fmha::reports
