#include "kernels/generator/resources.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/generator/scan.hpp"
#include "kernels/targets/hip/block_shape.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace fmha::generator {
namespace {

/// Reads a value from anywhere in a file; throws when the file is too short.
template <class T>
T at(std::string_view bytes, std::uint64_t offset, const std::string& where) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
        throw InputError(fmt::format("{}: a damaged ELF file of {} bytes", where, bytes.size()));
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

constexpr std::size_t instruction_bytes = 16; // since Volta

struct Section {
    std::string name;
    std::string_view content;
};

std::vector<Section> code_sections(std::string_view file, const std::string& where) {
    if (!file.starts_with(ELFMAG)) throw InputError(fmt::format("{}: is not an ELF file", where));
    const auto header = at<Elf64_Ehdr>(file, 0, where);
    const auto section = [&](std::uint64_t number) {
        return at<Elf64_Shdr>(file, header.e_shoff + number * sizeof(Elf64_Shdr), where);
    };
    const auto names = section(header.e_shstrndx);
    std::vector<Section> sections;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const auto entry = section(i);
        if (entry.sh_type != SHT_PROGBITS) continue;
        (void)at<char>(file, names.sh_offset + entry.sh_name, where);
        const std::string_view rest = file.substr(names.sh_offset + entry.sh_name);
        const std::string name(rest.substr(0, rest.find('\0')));
        constexpr std::string_view prefix = ".text.";
        if (!name.starts_with(prefix)) continue;
        if (entry.sh_size > file.size() || entry.sh_offset > file.size() - entry.sh_size)
            throw InputError(fmt::format("{}: a damaged ELF file of {} bytes", where, file.size()));
        sections.push_back({name.substr(prefix.size()), file.substr(entry.sh_offset, entry.sh_size)});
    }
    return sections;
}

/// Instructions are 16 bytes since Volta, the operation in the lowest bits: 12 of them where operands come from
/// registers, 9 for warp-group products, whose other three tell where operands lie.
std::string_view matrix_instruction(std::uint64_t word) {
    switch (word & 0xFFFU) {
    case 0x237:
        return "IMMA";
    case 0x23C:
        return "HMMA";
    case 0x23F:
        return "DMMA";
    case 0x27A:
        return "QMMA";
    default:
        break;
    }
    switch (word & 0x1FFU) {
    case 0x1F0:
        return "HGMMA";
    case 0x1F1:
        return "IGMMA";
    case 0x1F3:
        return "QGMMA";
    default:
        return {};
    }
}

} // namespace

ResourcesBySymbol nvidia_resources(std::string_view messages, std::string_view cubin,
                                   const std::string& where) {
    ResourcesBySymbol found;
    built::Resources* current = nullptr;
    std::istringstream lines{std::string(messages)};
    for (std::string line; std::getline(lines, line);) {
        if (const auto entry = behind(line, "Compiling entry function '", "'"))
            current = &found[std::string(*entry)];
        if (current == nullptr) continue;
        const auto read = [](std::int64_t& into, std::optional<std::int64_t> number) {
            if (number) into = *number;
        };
        read(current->scratch_bytes, number_before(line, " bytes stack frame"));
        read(current->vgpr_spills, number_before(line, " bytes spill stores"));
        read(current->vgprs, number_behind(line, "Used "));
        read(current->lds_bytes, number_before(line, " bytes smem"));
    }
    for (const Section& section : code_sections(cubin, where)) {
        const auto kernel = found.find(section.name);
        if (kernel == found.end()) continue;
        kernel->second.code_bytes = static_cast<std::int64_t>(section.content.size());
        for (std::size_t i = 0; i + instruction_bytes <= section.content.size(); i += instruction_bytes)
            if (const auto name = matrix_instruction(at<std::uint64_t>(section.content, i, where));
                !name.empty())
                ++kernel->second.matrix_instructions[std::string(name)];
    }
    for (const auto& [name, resources] : found)
        if (resources.vgprs == 0 || resources.code_bytes == 0)
            throw InputError(fmt::format("{}: {} without registers or code", where, name));
    return found;
}

std::vector<AssemblerRemark> held_up(std::string_view messages) {
    std::vector<AssemblerRemark> remarks;
    std::istringstream lines{std::string(messages)};
    for (std::string line; std::getline(lines, line);) {
        const bool tells =
            line.find("Potential Performance Loss") != std::string::npos ||
            (line.find("warpgroup.") != std::string::npos && line.find("is injected") != std::string::npos);
        if (!tells) continue;
        const auto in = behind(line, "function '", "'");
        const std::size_t begin =
            line.find("Potential") != std::string::npos ? line.find("Potential") : line.find("warpgroup.");
        remarks.push_back({std::string(in.value_or("")), "the assembler says: " + line.substr(begin)});
    }
    return remarks;
}

std::vector<std::string> team_refusals(std::string_view messages, std::string_view symbol) {
    std::vector<std::string> sentences;
    for (AssemblerRemark& remark : held_up(messages))
        if (remark.symbol.empty() || remark.symbol == symbol) sentences.push_back(std::move(remark.sentence));
    std::string current;
    std::istringstream lines{std::string(messages)};
    for (std::string line; std::getline(lines, line);) {
        if (const auto entry = behind(line, "Compiling entry function '", "'")) current = *entry;
        if (current != symbol) continue;
        for (const std::string_view what :
             {" bytes stack frame", " bytes spill stores", " bytes spill loads"})
            if (const auto bytes = number_before(line, what); bytes && *bytes > 0)
                sentences.push_back(fmt::format("{}{}, allowed in pipeline ws: 0", *bytes, what));
    }
    return sentences;
}

std::map<std::string, TeamInstructions, std::less<>> team_instructions(std::string_view cubin,
                                                                       const std::string& where) {
    std::map<std::string, TeamInstructions, std::less<>> found;
    for (const Section& section : code_sections(cubin, where)) {
        TeamInstructions& counts = found[section.name];
        for (std::size_t i = 0; i + instruction_bytes <= section.content.size(); i += instruction_bytes) {
            const auto word = at<std::uint64_t>(section.content, i, where);
            switch (word & 0x1FFU) {
            case 0x1B4:
                ++counts.tensor_copies;
                break;
            case 0x1C8:
                ++counts.register_splits;
                break;
            case 0x1F0:
            case 0x1F1:
            case 0x1F3:
                ++counts.products;
                break;
            default:
                break;
            }
            const std::uint64_t operation = word & 0xFFFU;
            counts.local_accesses += operation == 0x983 || operation == 0x387 ? 1 : 0;
        }
    }
    return found;
}

std::vector<std::string> team_violations(const TeamInstructions& found) {
    constexpr int splits = 2; // the feed gives registers away, teams take them
    std::vector<std::string> sentences;
    if (found.products == 0)
        sentences.emplace_back("no product of warp groups (HGMMA, QGMMA), pipeline ws is made of them");
    if (found.tensor_copies == 0)
        sentences.emplace_back("no tensor copy (UTMALDG), pipeline ws has no other");
    if (found.register_splits != splits)
        sentences.push_back(fmt::format("{} splits of registers (USETMAXREG), pipeline ws has {}",
                                        found.register_splits, splits));
    if (found.local_accesses > 0)
        sentences.push_back(fmt::format("{} accesses to local memory (LDL, STL), allowed in pipeline ws: 0",
                                        found.local_accesses));
    return sentences;
}

void add_launch(built::Resources& resources, const KernelConfig& config) {
    // Per multiprocessor, CUDA programming guide, table of compute capabilities.
    constexpr std::int64_t registers = 65536, shared_bytes = 233472, warps = 64, blocks = 32;
    constexpr std::int64_t lanes = 32, register_unit = 8, reserved_shared = 1024;
    const hip_target::BlockShape plan = hip_target::block_shape(config);
    resources.lds_bytes += plan.lds_bytes;
    const std::int64_t block_warps = std::max<std::int64_t>(1, (plan.threads + lanes - 1) / lanes);
    const std::int64_t lane_registers =
        std::max<std::int64_t>(1, (resources.vgprs + register_unit - 1) / register_unit * register_unit);
    resources.occupancy =
        std::min({registers / (lane_registers * lanes * block_warps),
                  shared_bytes / (resources.lds_bytes + reserved_shared), warps / block_warps, blocks});
}

} // namespace fmha::generator
