#pragma once

#include "kernels/catalog/profile.hpp"

#include "dispatcher/types/kernel_config.hpp"

namespace fmha::catalog::audit {

/// Upstream's second set of profiles: predicates on finished kernels, applied when kernels are generated ahead of
/// time, not while they are enumerated. They share names with the numeric filters and disagree with them.
/// A group keeps the kernels that any member keeps; transformer_engine and unlisted profiles are unknown here (InputError).
bool profile_keeps(ProfileId profile, const KernelConfig& config);

} // namespace fmha::catalog::audit
