#pragma once

#include "dispatcher/types/enums.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace fmha::harness {

/// The outcome of one (case, kernel). Exactly one applies; docs/gates.md says when.
enum class Outcome : std::uint8_t {
    passed,
    failed,               ///< a gate said no, or the plan or refusal that the case expects did not happen
    mistrusted,           ///< the numbers cannot be believed either way: oracles disagree, or all zeros
    refused_as_predicted, ///< the case expects the refusal and it named the expected rule
    refused_unexpectedly, ///< refused without being expected to, or for another reason
    type_absent,          ///< the architecture has no kernels of the case's data type (T-1), or of its family
    not_run,              ///< for a stated reason
    crashed,              ///< the process that ran it died
    timed_out,
    failed_as_known,    ///< failed, and an entry of --waivers says so
    passed_unexpectedly ///< green, and an entry of --waivers says that it fails
};

/// The outcome of one kernel on one case that was timed.
enum class BenchOutcome : std::uint8_t {
    measured,
    wrong,     ///< its outputs fail a gate: how fast it is does not matter
    not_run,   ///< no kernel, not built, or the target cannot
    crashed,   ///< the process that ran it died
    timed_out, ///< it took longer than it may
};

/// Why something was not run. The list is closed: a reason that is not here is a failure.
enum class NotRunReason : std::uint8_t {
    none,
    target_cannot, ///< the target does not execute this kernel's family
    no_memory,     ///< the tensors do not fit
    too_much_work, ///< the target is too slow for it
    not_built,     ///< the kernel's code is not where the target loads kernels from
    interrupted,   ///< the run was stopped before it finished; never within a budget
    after_failure, ///< the run ended at an earlier case that made it red (--fail-fast)
    no_device,     ///< every device that it could run on was lost in the course of the run
    waived,        ///< an entry of --waivers says that it crashes or hangs; beside the budget
};

/// What refused a case.
enum class RefusedBy : std::uint8_t {
    nobody,
    problem, ///< a rule that the problem breaks, or whatever else makes it none
    kernels, ///< no kernel takes it
    launch,  ///< a kernel or target that was launched
};

/// The outcomes that leave a run green that is not strict.
constexpr bool is_green(Outcome outcome) {
    return outcome == Outcome::passed || outcome == Outcome::refused_as_predicted ||
           outcome == Outcome::type_absent || outcome == Outcome::not_run ||
           outcome == Outcome::failed_as_known;
}

/// The outcomes in which nothing was found wrong with the numbers of a kernel.
constexpr bool is_pass(Outcome outcome) {
    return outcome == Outcome::passed || outcome == Outcome::passed_unexpectedly;
}

/// The outcomes that say something about a kernel or about a refusal.
constexpr bool is_judged(Outcome outcome) {
    return outcome != Outcome::not_run && outcome != Outcome::type_absent;
}

/// The outcomes for which a kernel ran, or should have.
constexpr bool is_executed(Outcome outcome) {
    return is_judged(outcome) && outcome != Outcome::refused_as_predicted &&
           outcome != Outcome::refused_unexpectedly;
}

} // namespace fmha::harness

namespace fmha {

template <>
struct EnumTable<harness::Outcome> {
    using enum harness::Outcome;
    static constexpr std::array<EnumName<harness::Outcome>, 11> names{
        {{passed, "passed"},
         {failed, "failed"},
         {mistrusted, "mistrusted"},
         {refused_as_predicted, "refused_as_predicted"},
         {refused_unexpectedly, "refused_unexpectedly"},
         {type_absent, "type_absent"},
         {not_run, "not_run"},
         {crashed, "crashed"},
         {timed_out, "timed_out"},
         {failed_as_known, "failed_as_known"},
         {passed_unexpectedly, "passed_unexpectedly"}}};
    static constexpr auto& aliases = no_aliases<harness::Outcome>;
};

template <>
struct EnumTable<harness::NotRunReason> {
    using enum harness::NotRunReason;
    static constexpr std::array<EnumName<harness::NotRunReason>, 9> names{{{none, "none"},
                                                                           {target_cannot, "target_cannot"},
                                                                           {no_memory, "no_memory"},
                                                                           {too_much_work, "too_much_work"},
                                                                           {not_built, "not_built"},
                                                                           {interrupted, "interrupted"},
                                                                           {after_failure, "after_failure"},
                                                                           {no_device, "no_device"},
                                                                           {waived, "waived"}}};
    static constexpr auto& aliases = no_aliases<harness::NotRunReason>;
};

template <>
struct EnumTable<harness::BenchOutcome> {
    using enum harness::BenchOutcome;
    static constexpr std::array<EnumName<harness::BenchOutcome>, 5> names{{{measured, "measured"},
                                                                           {wrong, "wrong"},
                                                                           {not_run, "not_run"},
                                                                           {crashed, "crashed"},
                                                                           {timed_out, "timed_out"}}};
    static constexpr auto& aliases = no_aliases<harness::BenchOutcome>;
};

template <>
struct EnumTable<harness::RefusedBy> {
    using enum harness::RefusedBy;
    static constexpr std::array<EnumName<harness::RefusedBy>, 4> names{
        {{nobody, "nobody"}, {problem, "problem"}, {kernels, "kernels"}, {launch, "launch"}}};
    static constexpr auto& aliases = no_aliases<harness::RefusedBy>;
};

} // namespace fmha

namespace fmha::harness {

/// "refused as predicted".
inline std::string words_of(Outcome outcome) {
    std::string words(to_string(outcome));
    std::ranges::replace(words, '_', ' ');
    return words;
}

} // namespace fmha::harness
