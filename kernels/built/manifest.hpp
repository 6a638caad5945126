#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/built/loop_model.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The record of a build for loaders of kernels: `manifest.json` in the output folder, beside the code objects
/// that it names.
namespace fmha::built {

/// The resources of one kernel, as the compiler states them. Numbers are per lane (registers, scratch), per wave
/// (sgprs) or per block (lds). NVIDIA has one file of registers, reported as `vgprs`.
struct Resources {
    std::int64_t vgprs = 0, agprs = 0, sgprs = 0;
    std::int64_t lds_bytes = 0;
    std::int64_t scratch_bytes = 0;
    std::int64_t vgpr_spills = 0, sgpr_spills = 0; ///< values on AMD, bytes stored on NVIDIA
    std::int64_t occupancy = 0; ///< waves per SIMD on AMD, blocks per multiprocessor on NVIDIA
    std::int64_t code_bytes = 0;
    std::int64_t compile_ms = 0;        ///< of its translation unit, shared equally among the kernels in it
    std::int64_t direct_copies = 0;     ///< loads from global memory straight to LDS, on AMD
    std::int64_t transposing_reads = 0; ///< of LDS, on AMD
    std::map<std::string, std::int64_t> matrix_instructions; ///< mnemonic → how often it stands in the code
    std::optional<LoopModel> loop; ///< over keys, where the audit has the machine code in words
    friend bool operator==(const Resources&, const Resources&) = default;
};

/// One kernel that can be loaded.
struct BuiltKernel {
    std::string name; ///< of the catalogue
    KernelConfig config;
    std::string
        symbol; ///< exported entry; takes its program's arguments by value, of pipeline ws behind a WsLaunch
    std::optional<Resources> resources; ///< present when the build was audited
    friend bool operator==(const BuiltKernel&, const BuiltKernel&) = default;
};

/// One file for the device's module loader: an ELF code object (.hsaco) or a cubin.
struct CodeObject {
    std::string file; ///< relative to the folder of the manifest
    ArchName arch;
    std::string compiler; ///< its version line, without a path
    std::string key;      ///< SHA-256 of everything that the file follows from, hexadecimal
    std::vector<BuiltKernel> kernels;
    friend bool operator==(const CodeObject&, const CodeObject&) = default;
};

/// A kernel that was asked for and is not there.
struct MissingKernel {
    std::string name;
    KernelConfig config;
    std::string reason; ///< one sentence: the target does not execute it, or it did not compile
    friend bool operator==(const MissingKernel&, const MissingKernel&) = default;
};

struct Manifest {
    std::vector<CodeObject> objects;
    std::vector<MissingKernel> missing;
    friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// f(kernel, its code object) for every kernel, in the order of the manifest.
template <class F>
void each_kernel(const Manifest& manifest, F f) {
    for (const CodeObject& object : manifest.objects)
        for (const BuiltKernel& kernel : object.kernels) f(kernel, object);
}

/// f(kernel, its loop, its code object) for every kernel of which the audit has read one.
template <class F>
void each_loop(const Manifest& manifest, F f) {
    each_kernel(manifest, [&](const BuiltKernel& kernel, const CodeObject& object) {
        if (kernel.resources && kernel.resources->loop) f(kernel, *kernel.resources->loop, object);
    });
}

/// Output folder when nobody names one, relative to where a command runs.
inline constexpr const char* default_folder = "fmha-kernels";

/// File name of the manifest inside an output folder.
inline constexpr std::string_view manifest_file = "manifest.json";

/// "fmha_" and the catalogue's name, every character that C does not allow in an identifier replaced by '_'.
std::string symbol_of(std::string_view kernel_name);

std::string to_json(const Manifest& manifest);

/// A manifest of another program, whose kernels this one cannot load.
class OtherVersion : public InputError {
  public:
    using InputError::InputError;
};

/// Strict inverse of `to_json`. Throws InputError that names `where`, the key and the value for unknown or missing keys, wrong types
/// and, as OtherVersion, an unknown schema_version. So do an identifier that is not that of the configuration, a symbol, name or configuration
/// that appears twice, a file outside of the folder, and an arch that differs from its kernels'.
Manifest manifest_from_json(std::string_view text, const std::string& where);

/// Reads `folder`/manifest.json. Throws InputError, also when there is none.
Manifest read_manifest(const std::filesystem::path& folder);

/// Writes `folder`/manifest.json, whole or not at all. Throws InputError when it cannot be written.
void write_manifest(const Manifest& manifest, const std::filesystem::path& folder);

} // namespace fmha::built
