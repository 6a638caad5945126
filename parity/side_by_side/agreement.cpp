#include "parity/side_by_side/agreement.hpp"

#include <fmt/format.h>

namespace fmha::parity {
namespace {

using harness::Outcome;

enum class Ours { right, wrong, declined, not_run };

Ours ours_of(const harness::CaseResult& result) {
    switch (result.outcome) {
    case Outcome::passed:
    case Outcome::passed_unexpectedly:
        return Ours::right;
    case Outcome::refused_as_predicted:
    case Outcome::refused_unexpectedly:
    case Outcome::type_absent:
        return Ours::declined;
    case Outcome::not_run:
        return Ours::not_run;
    default:
        return Ours::wrong;
    }
}

Agreement agreement(Ours ours, Verdict theirs) {
    using enum Agreement;
    if (ours == Ours::not_run) return not_compared;
    switch (theirs) {
    case Verdict::right:
        return ours == Ours::right   ? both_right
               : ours == Ours::wrong ? only_theirs_right
                                     : only_theirs_computes;
    case Verdict::wrong:
        return ours == Ours::right ? only_ours_right : both_wrong;
    case Verdict::declined:
        return ours == Ours::right ? only_ours_computes : ours == Ours::wrong ? both_wrong : both_declined;
    default:
        return no_answer;
    }
}

} // namespace

SideBySide compare(const harness::CaseResult& ours, const Answer& theirs) {
    SideBySide result;
    result.agreement = agreement(ours_of(ours), theirs.verdict);
    const auto said = [](std::string_view word, const std::string& why) {
        return why.empty() ? std::string(word) : fmt::format("{} ({})", word, why);
    };
    result.sentence = fmt::format("ours {}; theirs {}", said(to_string(ours.outcome), ours.message),
                                  said(to_string(theirs.verdict), theirs.sentence));
    return result;
}

} // namespace fmha::parity
