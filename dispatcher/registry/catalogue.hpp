#pragma once

#include "dispatcher/declarations/kernel_set.hpp"
#include "dispatcher/dispatcher.hpp"
#include "kernels/catalog/catalog.hpp"

#include <memory>
#include <optional>
#include <span>

namespace fmha {

/// A registry of the rule set's kernels for these architectures, named as the rule set names them; with a sweep
/// configuration (`claim`, `stored`, `sweep`) of those that it selects.
std::unique_ptr<Registry> catalogue_registry(const arch::ArchSet& archs, catalog::RuleSet rules,
                                             std::span<const ArchName> names,
                                             const std::optional<catalog::SweepConfig>& sweep = {});

/// Both add to a registry that may hold kernels of other origins, under the rule of `Registry::add`: a kernel that several
/// sources list is one kernel, at the highest of their priorities. They return how many kernels the source lists;
/// when they throw (InputError, DeclarationError, KeyConflict) the registry is unchanged.
///
/// The kernels of a request, for each of its targets.
std::size_t add_catalogue(Registry& registry, const arch::ArchSet& archs, const catalog::Request& request,
                          Priority priority = Priority::normal);
/// The expansion of a declared set.
std::size_t add_declared(Registry& registry, const arch::ArchSet& archs, const KernelSet& set,
                         Priority priority = Priority::normal);

/// The properties, for planning, of every architecture that has a file.
std::vector<Device> devices_of(const arch::ArchSet& archs);

/// The number of splits of `problem`: its own, or where it states none the choice of S-6 on the device that it is
/// for, as the compiled-in architectures describe it.
std::int64_t splits_on_device(const Problem& problem);

} // namespace fmha
