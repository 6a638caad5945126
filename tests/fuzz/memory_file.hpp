#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace fmha::fuzz {

/// A file in memory, for readers that take paths. Its name ends in `ending`; it is gone when the process ends by itself.
class MemoryFile {
  public:
    explicit MemoryFile(std::string_view ending)
        : path_("/dev/shm/fmha_fuzz_" + std::to_string(getpid()) + std::string(ending)),
          descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
        if (descriptor_ < 0) stop("cannot be made");
    }
    ~MemoryFile() {
        close(descriptor_);
        unlink(path_.c_str());
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

    void hold(const std::uint8_t* data, std::size_t size) const {
        if (ftruncate(descriptor_, 0) != 0 ||
            pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size))
            stop("cannot be written");
    }

  private:
    /// Not the fault of a reader, so no finding.
    [[noreturn]] void stop(const char* what) const {
        std::fprintf(stderr, "%s: %s\n", path_.c_str(), what);
        std::_Exit(2);
    }

    std::filesystem::path path_;
    int descriptor_;
};

} // namespace fmha::fuzz
