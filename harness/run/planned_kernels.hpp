#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/relative_text.hpp"
#include "kernels/arch/arch.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// Those of `kernels`, in their order, that the dispatcher plans for one of `cases` on `arch`. A case whose kernel
/// `declined` turns away is planned once more without the kernels that it turns away. Cases that the specification
/// rejects and cases that no kernel takes ask for none.
std::vector<KernelConfig>
planned_kernels(std::span<const KernelConfig> kernels, std::span<const Case> cases, const std::string& arch,
                const std::function<std::optional<std::string>(const KernelConfig&)>& declined,
                const arch::ArchSet& archs = arch::ArchSet::built_in());

/// Tiles of the kernels that the dispatcher plans on the working list of `arch`, one of `archs`, which is made when the first case is
/// asked about. Throws InputError then for an unknown architecture, and for a case that does not run the main stage of its API.
TilePlanner house_tiles(std::string arch, arch::ArchSet archs = arch::ArchSet::built_in());

} // namespace fmha::harness
