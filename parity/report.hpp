#pragma once

#include "dispatcher/types/json.hpp"
#include "parity/set_difference.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::parity {

/// One thing that was compared.
struct Check {
    std::string subject;               ///< "ck gfx950", "fwd gfx942 ck_default"
    std::int64_t compared = 0;         ///< facts, names or problems that were looked at
    std::string unit;                  ///< the things that `compared` counts, plural
    std::vector<std::string> failures; ///< one sentence each; empty = as expected
    std::vector<std::string> notes;    ///< worth knowing, no failure
    std::optional<SetDifference> difference;
    std::map<std::string, std::int64_t>
        counts{}; ///< kernels of each family's widest list, where one is counted

    /// It has failures, or its sides are not the same.
    bool differs() const { return !failures.empty() || (difference && !difference->empty()); }
};

/// The result of an audit. An audit that compared nothing has failed.
struct AuditReport {
    std::string title;
    std::vector<Check> checks;
    /// A difference is the answer and not a failure (rule sets that are known to differ).
    bool differences_are_failures = true;

    std::int64_t compared() const;
    /// Whether this check, or every one and something was compared, leaves nothing to mend.
    bool ok(const Check& check) const;
    bool ok() const;
    /// One sentence on what was found.
    std::string verdict() const;
};

/// Told after each check, one call at a time: how many are done, of how many, and the subject of the last one.
using OnCheck = std::function<void(std::size_t, std::size_t, std::string_view)>;

/// Makes check(0) … check(count - 1) on all processors; they stand in the report in this order.
void run_checks(AuditReport& report, std::size_t count, const OnCheck& on_check,
                const std::function<Check(std::size_t)>& check);

/// For people: a table of the checks, then each failure and difference with its cause, at most
/// `examples` names for each.
std::string to_text(const AuditReport& report, std::size_t examples = 3);

/// For programs: everything, with every name.
Json to_json(const AuditReport& report);

/// A section for the page of a run: one `<section>` element without scripts or styles of its own.
std::string to_html_section(const AuditReport& report, std::size_t examples = 20);

} // namespace fmha::parity
