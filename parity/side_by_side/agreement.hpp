#pragma once

#include "harness/results/result.hpp"
#include "parity/side_by_side/tile_example.hpp"

#include <string>

namespace fmha::parity {

/// Both sides of one case.
enum class Agreement : std::uint8_t {
    both_right,
    both_declined,
    only_ours_computes, ///< theirs has no kernel for it
    only_theirs_computes,
    only_ours_right,
    only_theirs_right,
    both_wrong,
    no_answer,    ///< theirs crashed, hung or said nothing
    not_compared, ///< one side was not run, for a stated reason
};

/// The agreement, and in `sentence` the verdict of each side. `ours` is the worst result of the case.
struct SideBySide {
    Agreement agreement = Agreement::not_compared;
    std::string sentence;
};
SideBySide compare(const harness::CaseResult& ours, const Answer& theirs);

/// Whether a person has to look at it.
constexpr bool is_red(Agreement agreement) {
    return agreement != Agreement::both_right && agreement != Agreement::both_declined &&
           agreement != Agreement::only_ours_computes && agreement != Agreement::not_compared;
}

} // namespace fmha::parity

namespace fmha {

template <>
struct EnumTable<parity::Agreement> {
    using enum parity::Agreement;
    static constexpr std::array<EnumName<parity::Agreement>, 9> names{
        {{both_right, "both_right"},
         {both_declined, "both_declined"},
         {only_ours_computes, "only_ours_computes"},
         {only_theirs_computes, "only_theirs_computes"},
         {only_ours_right, "only_ours_right"},
         {only_theirs_right, "only_theirs_right"},
         {both_wrong, "both_wrong"},
         {no_answer, "no_answer"},
         {not_compared, "not_compared"}}};
    static constexpr auto& aliases = no_aliases<parity::Agreement>;
};

} // namespace fmha
