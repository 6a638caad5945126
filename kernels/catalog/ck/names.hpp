#pragma once

#include "kernels/catalog/catalog.hpp"

namespace fmha::catalog::ck {

/// The kernel's name without architecture suffix and `.cpp`, as upstream's filters see it.
void append_stem(MaskVocabulary masks, const KernelConfig& config, std::string& out);

/// The blob's file name. `config.arch` is the architecture group, empty for batch prefill.
void append_name(const Naming& naming, const KernelConfig& config, std::string& out);

} // namespace fmha::catalog::ck
