#pragma once

#include "harness/families/family.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace fmha::harness {

/// What the files of inputs have told.
struct GivenInputs {
    /// `own_bytes` where the case's own content is in the files.
    InputOrigin origin = InputOrigin::caller;
    /// The caches that append-KV updates and whose content before it was given: "k", "v".
    std::vector<std::string> caches{};
};

/// Fills the inputs of a case, which `data` must hold with the case's own content, from .npy files (cases/README.md). Throws InputError for
/// a file that does not fit and ProblemError for tables, lengths and scales that lead out of the tensors or break a rule.
GivenInputs read_given_inputs(const std::filesystem::path& folder, const Family& family, const Case& c,
                              CaseData& data);

/// Fills the outputs of a case from .npy files. Of caches that append-KV updates `data` gets what it has to write; the rest of them keeps its
/// content. Returns the verdict of G5.5 on each of `caches`, those of GivenInputs: what append-KV leaves alone and the inputs define is as
/// it was. None of a file that is NaN in all these places, as fmha reference writes it. Throws InputError for a file that does not fit.
std::vector<GateVerdict> read_given_outputs(const std::filesystem::path& folder, const Family& family,
                                            const Case& c, CaseData& data,
                                            const std::vector<std::string>& caches = {});

} // namespace fmha::harness
