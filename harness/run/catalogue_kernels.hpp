#pragma once

#include "dispatcher/registry/registry.hpp"
#include "harness/cases/case.hpp"
#include "harness/run/targets.hpp"
#include "kernels/catalog/catalog.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// What lists the working list of `arch`. Throws InputError for an architecture that `archs` lacks.
catalog::Request working_list(const std::string& arch, const arch::ArchSet& archs,
                              catalog::FamilySet families);

/// The kernel families of all stages that `cases` may need; those of forward when there are no cases.
catalog::FamilySet kernel_families_of(std::span<const Case> cases);

/// The kernels of the working list of the target's architecture that are of `families`, through the dispatcher and executed on that
/// target: the plan for a problem, or all that accept it. `where`: an expression over the catalogue that kernels must satisfy,
/// empty for all. Throws InputError for an unknown architecture, a bad expression or one that leaves no kernel.
std::unique_ptr<KernelSource>
house_kernels(const std::shared_ptr<const Target>& target, const std::string& where = {},
              catalog::FamilySet families = catalog::FamilySet::of(KernelFamily::fwd));

/// The same of other kernels for that architecture, under the names that `namer` gives them.
std::unique_ptr<KernelSource> listed_kernels(const std::shared_ptr<const Target>& target,
                                             const std::vector<KernelConfig>& kernels, KernelNamer namer);

} // namespace fmha::harness
