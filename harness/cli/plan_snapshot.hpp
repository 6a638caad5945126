#pragma once

#include "harness/cli/command.hpp"

#include <filesystem>
#include <string>

namespace fmha::cli {

/// Compares the plans of every shape in `directory/shapes.jsonl` on each architecture with `directory/ARCH.txt`.
/// Differences go to `streams.err`, one line each, and make the result check_failed. With `accept` the files that differ are
/// written instead, and keep the reason below earlier ones. Throws InputError for unreadable files and for
/// `accept` without a reason.
int plan_snapshots(const std::filesystem::path& directory, bool accept, const std::string& reason,
                   const Streams& streams);

} // namespace fmha::cli
