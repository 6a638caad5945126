#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/built/manifest.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The words of compilers and their tools about kernels, read into records by exported symbol. A number that a text does not
/// have is an InputError: an audit of nothing must not pass.
namespace fmha::generator {

using ResourcesBySymbol = std::map<std::string, built::Resources, std::less<>>;

/// `remarks`: clang's output under -Rpass-analysis=kernel-resource-usage; `listing`: llvm-objdump's under
/// `-t -d`. `where` names them in messages.
ResourcesBySymbol amd_resources(std::string_view remarks, std::string_view listing, const std::string& where);

/// `messages`: the output of ptxas under -v; `cubin`: the object, whose sections give code size and matrix instructions.
/// Dynamic shared memory and occupancy are the launcher's and not in there, see `add_launch`.
ResourcesBySymbol nvidia_resources(std::string_view messages, std::string_view cubin,
                                   const std::string& where);

/// The assembler's word that a kernel is right but not as intended: products of warp groups that run one after
/// another, waits that it puts in front of them, registers that it does not hand over.
struct AssemblerRemark {
    std::string symbol; ///< of the kernel; empty: the assembler does not say which
    std::string sentence;
    friend bool operator==(const AssemblerRemark&, const AssemblerRemark&) = default;
};
/// All of them in the output of ptxas.
std::vector<AssemblerRemark> held_up(std::string_view messages);

/// The reasons against a kernel of pipeline ws: messages of the assembler, spills, a stack. Empty: nothing.
std::vector<std::string> team_refusals(std::string_view messages, std::string_view symbol);

/// Instructions that tell whether a warp-specialised kernel is one.
struct TeamInstructions {
    std::int64_t products = 0;        ///< HGMMA, IGMMA, QGMMA
    std::int64_t tensor_copies = 0;   ///< UTMALDG
    std::int64_t register_splits = 0; ///< USETMAXREG
    std::int64_t local_accesses = 0;  ///< LDL, STL
    friend bool operator==(const TeamInstructions&, const TeamInstructions&) = default;
};
/// By symbol, of a cubin.
std::map<std::string, TeamInstructions, std::less<>> team_instructions(std::string_view cubin,
                                                                       const std::string& where);
/// The faults among those of a kernel of pipeline ws.
std::vector<std::string> team_violations(const TeamInstructions& found);

/// Adds the resources of a launch on NVIDIA: shared memory of a block, and how many blocks a multiprocessor of
/// compute capability 9.0 holds.
void add_launch(built::Resources& resources, const KernelConfig& config);

} // namespace fmha::generator
