#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/cases/case.hpp"
#include "harness/run/run_cases.hpp"
#include "harness/run/targets.hpp"

#include <string>
#include <vector>

namespace fmha::cli {

/// SHA-256 of this program's file, 64 hexadecimal digits. Throws InputError when the file cannot be read.
std::string program_sha256();

/// SHA-256 of the names, sentences, tiers, labels and fields of `cases`, 64 hexadecimal digits.
std::string cases_sha256(const std::vector<harness::Case>& cases);

/// Everything on which the outcomes of a run depend, as one flat object: the cases with all their fields and seeds, the
/// target, the machine and the driver that it names, the compiler of this program, the architecture, which kernels, the limits, this program and the kernels
/// that it loads. `cases` are those of all shards. Two runs with equal identities may share a journal, and shards of one run have
/// equal ones. Throws InputError when the program's file cannot be read.
Json run_identity(const std::vector<harness::Case>& cases, const harness::Target& target,
                  const harness::RunOptions& options);

} // namespace fmha::cli
