#pragma once

#include "harness/cli/command.hpp"

#include <filesystem>
#include <string>

namespace fmha::cli {

/// Compares the smoke tier's cases with the recorded ones: the name of each, a digest of its inputs, and the kernel that is
/// planned for it on gfx950 or the rule that refuses it. What differs goes to `streams.err`, at most `examples` of a kind. With
/// `accept`, records them anew in `file`, and adds the day, the number of changes and `reason` to those that stand there. Throws InputError for a file that cannot be read or written and for
/// an accepted change without a reason.
int case_snapshot(const std::filesystem::path& cases_root, const std::filesystem::path& file, bool accept,
                  const std::string& reason, std::size_t examples, const Streams& streams);

} // namespace fmha::cli
