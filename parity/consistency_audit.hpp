#pragma once

#include "dispatcher/types/problem.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "parity/report.hpp"
#include "parity/witness.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fmha::parity {

/// A problem that somebody cares about, and its name.
struct NamedProblem {
    std::string name;
    Problem problem;
};

/// Every problem of the case matrix on an architecture.
using ProblemsOf = std::function<std::vector<NamedProblem>(const ArchName& arch)>;

/// What the working list can lack.
enum class Lack : std::uint8_t {
    dead, ///< a kernel that no problem selects
    hole, ///< a problem, or the problems of an API and type, that no kernel takes
};

/// Findings that are known and right, with the reason (parity/expected.json). Findings beyond these are failures, and
/// so is a reason that fits nothing any more.
struct ExpectedFindings {
    struct Finding {
        Lack kind = Lack::dead;
        std::vector<ArchName> archs;
        std::string names; ///< glob over kernels, cases or API[TYPE]
        std::string reason;
    };
    std::vector<Finding> findings;
};

/// Throws InputError that names file, entry, key and value.
ExpectedFindings read_expected(const std::filesystem::path& file);

/// Audits that need no second list, one check for each rule set and architecture:
/// - every rule set: no name twice;
/// - `house`: no record breaks a validation rule, no record is dead (selected by no problem of the lattice), no legal
///   problem of the case matrix whose data type the hardware has is without a kernel, and no API is without kernels of
///   a data type that the hardware has when another architecture lists such kernels (named `API[TYPE]`).
AuditReport audit_consistency(const arch::ArchSet& archs, const std::vector<catalog::RuleSet>& rules,
                              const std::vector<ArchName>& on, const WitnessLattice& lattice,
                              const ExpectedFindings& expected, const ProblemsOf& problems,
                              const OnCheck& on_check = {});

} // namespace fmha::parity

template <>
struct fmha::EnumTable<fmha::parity::Lack> {
    using enum fmha::parity::Lack;
    static constexpr std::array<EnumName<parity::Lack>, 2> names{{{dead, "dead"}, {hole, "hole"}}};
    static constexpr auto& aliases = no_aliases<parity::Lack>;
};
