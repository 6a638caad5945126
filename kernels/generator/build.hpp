#pragma once

#include "kernels/built/manifest.hpp"
#include "kernels/generator/build_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::generator {

class ClaimedFolder; // write.hpp

struct BuildOptions {
    std::filesystem::path folder;
    std::optional<std::filesystem::path> cache{};
    int jobs = 0;             ///< compilers at a time; 0: one for each hardware thread
    std::size_t per_file = 1; ///< kernels a translation unit
    /// Keeps kernels of pipeline ws that spill or that the assembler holds up, which fail otherwise.
    bool keep_held_up = false;
    /// Lets kernels of the folder go that the selection lacks. Otherwise they are an error.
    bool replace = false;
    /// Told after each unit: how many units are done, of how many, and the last one's name.
    std::function<void(std::size_t, std::size_t, std::string_view)> progress{};
    /// Told whom the build waits for, where another process is at work in the folder.
    std::function<void(const std::string&)> waiting{};
    /// Asked now and then; true ends the build early. Finished units are kept.
    std::function<bool()> stop{};
};

struct FailedKernel {
    NamedKernel kernel;
    std::string command; ///< to be repeated in the output folder
    std::string errors;  ///< everything that the compiler said
};

struct BuildResult {
    /// Keeps other processes out of the folder, until the last result that has it is gone.
    std::shared_ptr<const ClaimedFolder> claim;
    built::Manifest manifest;             ///< without resources
    std::vector<PlannedUnit> units;       ///< those that are there, in the order of the manifest's objects
    std::vector<std::int64_t> compile_ms; ///< of each of them
    std::vector<FailedKernel> failed;
    std::size_t compiled = 0, cached = 0,
                present = 0;      ///< kernels: compiled now, from the cache, there already
    double compile_seconds = 0.0; ///< wall time of the compilers
    bool interrupted = false;
    std::vector<std::string> warnings; ///< sentences about faults that did not stop the build
};

/// Writes the sources and build.ninja of `selection` and runs Ninja on the units that neither the folder nor the cache has. A unit
/// of several kernels that fails is compiled again kernel by kernel, so that only the broken ones are missing. Writes the
/// manifest. Throws InputError (no Ninja, files, kernels that would go, stopped while waiting for another process) and BuildError when
/// Ninja itself fails.
BuildResult build(const Selection& selection, const BuildTools& tools, const BuildOptions& options);

/// Writes build.ninja for units whose sources are in a claimed folder.
std::vector<PlannedUnit> write_build(std::span<const Unit> units, const BuildTools& tools,
                                     const std::filesystem::path& folder);

} // namespace fmha::generator
