#pragma once

#include "dispatcher/types/enums.hpp"
#include "harness/regression/side.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::regression {

enum class Kind : std::uint8_t {
    not_green,   ///< a case that was green is not, or a new one is red, or a kernel that was timed is not
    case_lost,   ///< a case that was run is not
    kernel_lost, ///< a kernel that was run, timed or compiled is not
    margin,      ///< a result came nearer to its limit than the seeds of the same program explain
    slower,      ///< a kernel takes longer, and noise does not explain it
    spill,       ///< a kernel began to spill registers
    count,       ///< a list has another number of kernels
    series_lost, ///< a series of runs has no run
};

/// One thing that got worse.
struct Finding {
    Kind kind = Kind::not_green;
    std::string family, series, subject, before, after, by;
    double value = 0.0;     ///< `after` as a number, where it is one
    std::string accepted{}; ///< the reason for which it was accepted; empty: it was not

    bool red() const { return accepted.empty(); }
};

/// The compared subjects of one API family, counted, and those that got worse.
struct FamilyVerdict {
    std::string family; ///< "lists" for counts that belong to none, "runs" for runs that nothing is known of
    std::int64_t cases = 0, kernels = 0, margins = 0, times = 0, resources = 0, counts = 0;
    std::vector<Finding> findings;

    std::int64_t compared() const { return cases + kernels + margins + times + resources + counts; }
    std::int64_t red_findings() const;
};

/// Every name that a FamilyVerdict may have.
std::vector<std::string> family_names();

struct Verdict {
    std::string before, after; ///< the sides, for people
    std::vector<FamilyVerdict> families;
    std::vector<std::string> notes; ///< subjects that were not compared, and why

    std::int64_t compared() const;
    std::int64_t red_findings() const;
    /// Nothing got worse, and something was compared.
    bool green() const { return red_findings() == 0 && compared() > 0; }
};

/// Changes beyond noise that are accepted all the same, as shares.
struct Budget {
    double slower = 0.05, margin = 0.10;
};

/// Compares every series of `before` with the one of the same name. `accepted` findings are no longer red. With `family` only
/// what belongs to it is compared.
Verdict compare(const Side& before, const Side& after, const Budget& budget,
                std::span<const store::AcceptedRecord> accepted, std::optional<ApiFamily> family = {});

/// The findings that can be accepted, as rows of the store: all that are red, apart from cases that are not green. `only`: those of
/// this kind, or whose subject has this text; empty: all.
std::vector<store::AcceptedRecord> acceptable(const Verdict& verdict, std::string_view only,
                                              const std::string& reason, const std::string& date);

/// A line for each family, below it the first findings of each kind and the number of the others, then the notes and the verdict.
std::string to_text(const Verdict& verdict);
Json to_json(const Verdict& verdict);

} // namespace fmha::regression

template <>
struct fmha::EnumTable<fmha::regression::Kind> {
    using enum regression::Kind;
    static constexpr std::array<EnumName<regression::Kind>, 8> names{{{not_green, "not_green"},
                                                                      {case_lost, "case_lost"},
                                                                      {kernel_lost, "kernel_lost"},
                                                                      {margin, "margin"},
                                                                      {slower, "slower"},
                                                                      {spill, "spill"},
                                                                      {count, "count"},
                                                                      {series_lost, "series_lost"}}};
    static constexpr auto& aliases = no_aliases<regression::Kind>;
};
