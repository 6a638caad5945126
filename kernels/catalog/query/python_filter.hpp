#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace fmha::catalog {

struct PythonLimits {
    std::string program = "python3";                ///< a Python 3
    std::chrono::milliseconds time{60'000};         ///< of all calls of `select` together
    std::int64_t memory = std::int64_t{4} << 30;    ///< bytes of address space of a process
    std::int64_t file_size = std::int64_t{1} << 26; ///< bytes of a file that it writes
    std::size_t output = std::size_t{1} << 20;      ///< bytes that it may print
};

/// `filter_config(c) -> bool` of a Python file, as upstream's scripts have it. A Python 3 in a process of its own runs it within
/// the limits above, so that it can neither hang nor crash this one. Of this process it has no open files, and of the environment the
/// search paths, the home folder and the language alone. It may read and write the files that its user may. `c` has an attribute
/// for every column (`columns()`) and `name`; columns that are tuples in upstream are tuples.
class PythonFilter {
  public:
    /// Appends the name of a record.
    using NameOf = std::function<void(const KernelConfig& config, std::string& name)>;

    /// Throws InputError for a file that cannot be read.
    PythonFilter(std::filesystem::path file, NameOf name_of, PythonLimits limits = {});

    /// Calls `hit(index)` in ascending order for every record that the function accepts. Throws InputError with Python's words
    /// when there is no Python or no such function, when it raises, returns no truth, or reaches a limit.
    void select(std::span<const KernelConfig> records, const std::function<void(std::size_t)>& hit);

  private:
    std::string answers(std::span<const KernelConfig> records);

    std::filesystem::path file_;
    NameOf name_of_;
    PythonLimits limits_;
    std::chrono::steady_clock::duration time_left_;
};

} // namespace fmha::catalog
