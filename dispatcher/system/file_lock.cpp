#include "dispatcher/system/file_lock.hpp"

#include "dispatcher/types/error.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>

namespace fmha::system {

std::optional<pid_t> locked_by_another(int descriptor, const std::filesystem::path& file) {
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    if (fcntl(descriptor, F_SETLK, &wanted) == 0) return std::nullopt;
    if (errno != EACCES && errno != EAGAIN)
        throw InputError(fmt::format("{}: cannot be locked: {}", file.string(), std::strerror(errno)));
    struct flock holder = wanted;
    const bool known =
        fcntl(descriptor, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0;
    return known ? holder.l_pid : 0;
}

} // namespace fmha::system
