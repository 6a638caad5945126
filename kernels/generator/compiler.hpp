#pragma once

#include "dispatcher/types/error.hpp"
#include "kernels/arch/arch.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Compilers of device code: found on the machine, asked for their architectures, never pinned to a version.
namespace fmha::generator {

enum class CompilerKind : std::uint8_t { clang, nvcc };

struct Compiler {
    CompilerKind kind = CompilerKind::clang;
    std::filesystem::path path;
    int major = 0;
    std::string version; ///< one line for people, without a path
    /// Everything about the compiler that decides its output, without paths: two machines with the same packages agree.
    std::string identity;
};

/// Where compilers are looked for.
struct CompilerPlaces {
    std::filesystem::path given{};             ///< --compiler; when it is set nothing else is looked at
    std::vector<std::filesystem::path> path{}; ///< folders of PATH
    std::vector<std::filesystem::path> rocm{}; ///< ROCM_PATH, /opt/rocm*
    std::vector<std::filesystem::path> cuda{}; ///< CUDA_HOME, CUDA_PATH, /usr/local/cuda*

    static CompilerPlaces of_environment(const std::string& given = {});
};

/// This machine has no compiler for an architecture, and none was asked for.
class NoCompiler : public InputError {
  public:
    using InputError::InputError;
};

/// The newest compiler that knows the architecture. Throws NoCompiler with the places, the faults of the compilers that
/// were found, and the package to install; InputError where the one that was given cannot be used.
Compiler find_compiler(const arch::Hardware& hardware, const CompilerPlaces& places);

/// The options of a compiler, beside the include path, the input and the output.
std::vector<std::string> compile_flags(const Compiler& compiler, std::string_view arch);

/// "hsaco" or "cubin".
std::string_view object_extension(const Compiler& compiler);

/// `sm_90` is compiled as `sm_90a`: architecture-specific instructions exist from there on. AMD names stay.
std::string compiled_arch(std::string_view arch);

/// The disassembler of the same LLVM as the compiler; empty when it is not installed.
std::filesystem::path disassembler_of(const Compiler& compiler);

} // namespace fmha::generator
