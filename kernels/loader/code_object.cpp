#include "kernels/loader/code_object.hpp"

#include "dispatcher/types/error.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

namespace fmha::loader {
namespace {

constexpr std::uint16_t machine_amd = 224, machine_nvidia = 190;

/// The low byte of an AMD code object's flags.
constexpr std::array<std::pair<std::uint8_t, std::string_view>, 6> amd_machines{{{0x3F, "gfx90a"},
                                                                                 {0x41, "gfx1100"},
                                                                                 {0x4A, "gfx1151"},
                                                                                 {0x4C, "gfx942"},
                                                                                 {0x4E, "gfx1201"},
                                                                                 {0x4F, "gfx950"}}};

std::string_view amd_arch(std::uint32_t flags) {
    for (const auto& [number, name] : amd_machines)
        if (number == (flags & 0xFFU)) return name;
    return {};
}

/// CUDA 13 (ABI version 8) moved the number of the architecture up by a byte.
std::string nvidia_arch(std::uint32_t flags, unsigned char abi) {
    return fmt::format("sm_{}", abi >= 8 ? flags >> 8U & 0xFFU : flags & 0xFFU);
}

} // namespace

std::optional<CodeObjectFacts> read_code_object(std::string_view image) {
    Elf64_Ehdr header{};
    if (image.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, image.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return std::nullopt;
    const unsigned char abi = header.e_ident[EI_ABIVERSION];
    CodeObjectFacts facts;
    if (header.e_machine == machine_amd) {
        facts.kind = CodeObjectFacts::Kind::amd;
        facts.arch = amd_arch(header.e_flags);
        facts.version = abi + 2;
    } else if (header.e_machine == machine_nvidia) {
        facts.kind = CodeObjectFacts::Kind::nvidia;
        facts.arch = nvidia_arch(header.e_flags, abi);
    } else {
        return std::nullopt;
    }
    const auto ends_inside = [&](std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
        return offset <= image.size() && count * size <= image.size() - offset;
    };
    facts.whole = ends_inside(header.e_shoff, header.e_shnum, header.e_shentsize) &&
                  ends_inside(header.e_phoff, header.e_phnum, header.e_phentsize);
    return facts;
}

std::string describe_code_object(std::string_view image) {
    const auto facts = read_code_object(image);
    if (!facts) return "not a code object";
    const std::string arch = facts->arch.empty() ? "an unknown architecture" : facts->arch;
    return facts->kind == CodeObjectFacts::Kind::nvidia
               ? fmt::format("cubin for {}", arch)
               : fmt::format("code object version {} for {}", facts->version, arch);
}

void check_code_object(std::string_view image, std::string_view device_arch, const std::string& name) {
    const auto facts = read_code_object(image);
    if (!facts)
        throw DeviceError(fmt::format("{} is not a code object: its {} bytes are no ELF file for a GPU", name,
                                      image.size()));
    if (!facts->whole)
        throw DeviceError(fmt::format("{} is cut off after {} bytes: build it again", name, image.size()));
    if (!facts->arch.empty() && facts->arch != device_arch)
        throw DeviceError(fmt::format("wrong arch: the device is {}, {} holds kernels for {}", device_arch,
                                      name, facts->arch));
}

std::string code_object_advice(std::string_view image) {
    const auto facts = read_code_object(image);
    if (!facts || facts->kind != CodeObjectFacts::Kind::amd) return {};
    if (facts->version >= 6)
        return fmt::format(
            "code object version {} needs ROCm 6.3 or later: update ROCm, or build the kernels "
            "with its own compiler (--compiler amdclang++)",
            facts->version);
    return fmt::format("code object version {} needs ROCm {} or later", facts->version,
                       facts->version == 5 ? "5.4" : "4.3");
}

} // namespace fmha::loader
