#pragma once

#include <filesystem>
#include <optional>
#include <sys/types.h>

namespace fmha::system {

/// Tries to lock a whole file that is open for writing, without waiting. Returns nothing when the lock is this process's now, else the
/// number of the process that has it: 0 for one of another container or machine, which has no number here. Throws InputError with
/// the path where files cannot be locked.
///
/// It is the kind of lock that child processes do not inherit, so a worker that outlives its killed parent for a moment keeps nobody out.
/// It ends with the process, and when the process closes any descriptor of the file.
std::optional<pid_t> locked_by_another(int descriptor, const std::filesystem::path& file);

} // namespace fmha::system
