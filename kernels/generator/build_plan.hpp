#pragma once

#include "kernels/generator/compiler.hpp"
#include "kernels/generator/source.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The units that will be compiled, their commands and the names under which they are kept.
namespace fmha::generator {

/// How all sources of a build are compiled.
struct BuildTools {
    std::map<std::string, Compiler> compilers; ///< by architecture
    std::filesystem::path root;                ///< of the kernels' headers
    std::string headers;                       ///< their digest
    std::string launcher;                      ///< put before the compiler, ccache for example; empty: none
    /// Writes the sources and build.ninja anew, for Ninja to run when a header or this program changed; empty: nobody does.
    std::string regenerate{};

    const Compiler& compiler_of(const Unit& unit) const;
};

/// Whether a launcher is distcc, by which other machines compile.
bool distributes(std::string_view launcher);

/// Of sources: "hip", or for distcc, which sends none of these, "cpp".
std::string_view source_extension(std::string_view launcher);

/// What the sources of an architecture include, parsed once for all of them: a quarter of the time that a kernel takes clang.
/// Only clang does that for device code, and launchers neither send nor keep it. Where it cannot be done the sources are
/// compiled without, and say what is wrong.
struct ParsedHeaders {
    /// "pch/<arch>.<beginning of a digest of compiler, flags and headers>", inside the output folder, of two files:
    /// `.pch`, and `.args` with the compiler's arguments that name it, if it is there.
    std::string stem;
    std::string command; ///< makes them from `parsed_source`, for a shell in the output folder
    std::string arguments() const { return stem + ".args"; }
};

/// By architecture, without those that go without.
std::map<std::string, ParsedHeaders> parsed_headers(const BuildTools& tools);

/// Where they lie inside the output folder, the source that they are made of, and its text.
inline constexpr std::string_view parsed_folder = "pch/", parsed_source = "pch/entry.hip";
std::string parsed_source_text();

struct PlannedUnit {
    Unit unit;
    std::string key;    ///< SHA-256 of compiler, flags, architecture, headers and source
    std::string object; ///< "obj/<stem>.<beginning of key>.hsaco"; inside the output folder, like the next
    std::string source;
    std::string log() const { return object + ".log"; }
};

/// Compilers for the architectures of `units`, newest first. Throws InputError when one has none.
BuildTools find_tools(const arch::ArchSet& archs, std::span<const NamedKernel> kernels,
                      const CompilerPlaces& places, const std::filesystem::path& root, std::string launcher);

std::vector<PlannedUnit> plan_units(std::span<const Unit> units, const BuildTools& tools);

/// build.ninja: a rule for every architecture, an edge for every unit, and one for the file itself. A function of its
/// arguments and of the names of the headers.
std::string ninja_file(std::span<const PlannedUnit> units, const BuildTools& tools);

/// A second Ninja file: build.ninja, and a target `wanted` for some of its units.
std::string ninja_selection(std::span<const PlannedUnit* const> units);

/// The command line that compiles a unit, for people to repeat in the output folder.
std::string command_line(const PlannedUnit& unit, const BuildTools& tools);

} // namespace fmha::generator
