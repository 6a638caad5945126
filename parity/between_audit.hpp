#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "parity/report.hpp"

#include <string>
#include <vector>

namespace fmha::parity {

/// A kernel in words that every rule set has, tokens joined by '_' from coarse to fine:
/// family, data type, head dimensions, tile, pipeline, mode, V layout, paddings, features. Features that only
/// some rule sets record are left out (README, "Between rule sets").
std::string neutral_key(const KernelConfig& config);

/// Which level of a neutral key its first `beginning` tokens end at: "the tile t128x128x32x128x32x128", "the data
/// type fp16", …; "these paddings and features" for a whole key.
std::string level_of(std::string_view beginning);

/// The kernels that `left` has and `right` has not, and the other way round, on each architecture, by the level at which
/// they part. `ck` takes part with the generic mask vocabulary, which alone tells causal masks from
/// windows.
AuditReport audit_between(const arch::ArchSet& archs, catalog::RuleSet left, catalog::RuleSet right,
                          const std::vector<ArchName>& on, const catalog::Profile& profile,
                          const OnCheck& on_check = {});

} // namespace fmha::parity
