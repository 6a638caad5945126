#pragma once

#include "kernels/catalog/catalog.hpp"

namespace fmha::catalog::ck {

/// True when `profile` (a group keeps the kernels that any member keeps) keeps this kernel. For backward the candidate is
/// the trait: the dq_dk_dv kernel with the query padding of its two one-dimensional companions.
bool keeps(const Profile& profile, MaskVocabulary masks, const KernelConfig& candidate);

/// True when the profile adds the entries that tables mark `only_extended`.
bool is_extended(const Profile& profile);

} // namespace fmha::catalog::ck
