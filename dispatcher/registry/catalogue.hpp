#pragma once

#include "dispatcher/dispatcher.hpp"
#include "kernels/catalog/catalog.hpp"

#include <memory>
#include <span>

namespace fmha {

/// The kernels of a rule set for one architecture, as a registry takes them: every record carries the
/// architecture itself, also where the rule set speaks of architecture groups.
std::vector<KernelConfig> catalogue_of(const arch::ArchSet& archs, catalog::RuleSet rules,
                                       std::string_view arch);

/// A registry of the rule set's kernels for these architectures, named as the rule set names them.
std::unique_ptr<Registry> catalogue_registry(const arch::ArchSet& archs, catalog::RuleSet rules,
                                             std::span<const ArchName> names);

/// What planning needs to know about every architecture that has a file.
std::vector<Device> devices_of(const arch::ArchSet& archs);

} // namespace fmha
