#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/catalog/sweep_config.hpp"

namespace fmha::catalog {

/// Whether a kernel of the working list serves a sweep configuration. The three audited lists are products of its values; a
/// working kernel may be able to do more than its value says: one with attention sinks also computes without them, one of
/// backward with windows also causal problems. Pipelines that upstream does not have count as those they stand for: `qr_hpad` is
/// `qr`, `v3` is `qr_async_trload_v3`, and `ws` is `qr_async`.
bool accepts(const SweepConfig& config, const KernelConfig& kernel);

} // namespace fmha::catalog
