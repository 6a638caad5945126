#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The content of a code object's ELF header, so that a wrong one is refused in words before a runtime refuses it in a number.
namespace fmha::loader {

struct CodeObjectFacts {
    enum class Kind : std::uint8_t { amd, nvidia } kind = Kind::amd;
    std::string arch;   ///< "gfx942", "sm_90"; "" for a machine that is not known here
    int version = 0;    ///< AMD's code object version, 4 to 6; 0 on NVIDIA
    bool whole = false; ///< false: the file ends before the tables that its header announces
};

/// nullopt when `image` is no ELF file for a GPU.
std::optional<CodeObjectFacts> read_code_object(std::string_view image);

/// "code object version 6 for gfx942", "cubin for sm_90", "not a code object"
std::string describe_code_object(std::string_view image);

/// Throws DeviceError that names `name` when the image is no code object, is cut off or is for another architecture
/// than `device_arch`.
void check_code_object(std::string_view image, std::string_view device_arch, const std::string& name);

/// The first ROCm release that reads a code object version, as advice about a runtime that refuses one. "" when the
/// image explains nothing.
std::string code_object_advice(std::string_view image);

} // namespace fmha::loader
