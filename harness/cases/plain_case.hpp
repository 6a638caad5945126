#pragma once

#include "harness/cases/case_fields.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// The plainest problem of each family, which is a case file like the others (FOLDER/plain.json). Cases that were made smaller
/// or drawn at random are named by the fields in which they differ from it.
namespace fmha::harness {

/// The plain case of `family` below the case files of `root`. Throws InputError when there is no such file.
Case plain_case(ApiFamily family, const std::filesystem::path& root);

/// `fields` with the plain case's sentence, tier and labels, and with its own name (`plain_name`).
Case named_by_plain(Case fields, const Case& plain);

/// "fwd/plain[seqlen=5:129,mask=t]@1": every field in which `c` differs from `plain`, two halves as one where they go
/// together. Reads back as `c`.
std::string plain_name(const Case& c, const Case& plain);

/// The fields that `plain_name` shows, in its order.
std::vector<const CaseField*> unplain_fields(const Case& c, const Case& plain);

} // namespace fmha::harness
