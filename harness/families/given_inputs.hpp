#pragma once

#include "harness/families/family.hpp"

#include <filesystem>

namespace fmha::harness {

/// Fills the inputs of a case from .npy files (cases/README.md). Throws InputError for a file that does not fit and ProblemError
/// for tables, lengths and scales that lead out of the tensors or break a rule. Returns `own_bytes` where the files have the case's own
/// content, which `data` must have before.
InputOrigin read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                              CaseData& data);

/// Fills the outputs of a case from .npy files. Of caches that append-KV updates only what it has to write is looked at; the rest of
/// them keeps its content. Throws InputError for a file that does not fit.
void read_given_outputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                        CaseData& data);

} // namespace fmha::harness
