#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <string>

namespace fmha::catalog::audit {

/// Which optional tokens the canonical name has: `claim` and `stored` names show neither the warp tile nor
/// block_per_cu, `sweep` names show both.
enum class SweepNameStyle : std::uint8_t { rules, sweep };

/// Appends the canonical name of a kernel of these sets. Values that no enumeration of the house has
/// (`bottom_right` kernels and the dropouts `p` and `rp` of exhaustive mode) come from the record's
/// constraint.
void append_sweep_name(SweepNameStyle style, const KernelConfig& config, std::string& out);

/// Spelling of the record's values in these names and in sweep configurations.
std::string_view sweep_mask_name(const KernelConfig& config);
std::string_view sweep_bias_name(BiasType bias);
std::string_view sweep_dropout_variant_name(const KernelConfig& config);

/// Constraints that carry the values above; `;` joins two of them.
inline constexpr std::string_view bottom_right_constraint = "mask=bottom_right";
inline constexpr std::string_view dropout_p_constraint = "drv=p";
inline constexpr std::string_view dropout_rp_constraint = "drv=rp";

} // namespace fmha::catalog::audit
