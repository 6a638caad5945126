#pragma once

#include "kernels/built/manifest.hpp"
#include "kernels/catalog/catalog.hpp"
#include "tests/catalog/working_list.hpp"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace fmha::test {

/// An ELF header without sections for gfx942, which is as much of a code object as a fake device reads.
inline void write_code_object(const std::filesystem::path& file) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_ABIVERSION] = 3;
    header.e_machine = 224;
    header.e_flags = 0x4C;
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&header), sizeof header);
}

/// fp32 kernels of forward, or of `families`, with head dimension 32 for gfx942, as a build would leave them in `folder`. Returns their
/// number.
inline std::size_t
write_built_folder(const std::filesystem::path& folder,
                   catalog::FamilySet families = catalog::FamilySet::of(KernelFamily::fwd)) {
    built::CodeObject object{.file = "all.hsaco",
                             .arch = "gfx942",
                             .compiler = "none",
                             .key = std::string(64, '0'),
                             .kernels = {}};
    for (const KernelConfig& config : catalog::test::working_list("gfx942", families))
        if (config.signature.data_type == DataType::fp32 && config.signature.hdim_q == 32) {
            const std::string name = catalog::name_of(catalog::RuleSet::house, config);
            object.kernels.push_back({name, config, built::symbol_of(name), std::nullopt});
        }
    std::filesystem::create_directories(folder);
    write_code_object(folder / object.file);
    const std::size_t count = object.kernels.size();
    built::write_manifest({{std::move(object)}, {}}, folder);
    return count;
}

} // namespace fmha::test
