#include "kernels/generator/resources.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/generator/listing.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>
#include <sstream>

namespace fmha::generator {
namespace {

struct Key {
    std::string_view name;
    std::int64_t built::Resources::*member;
};

/// Architectures without accumulation registers have no such remark.
constexpr std::string_view accumulation = "AGPRs";

constexpr std::array keys{Key{"TotalSGPRs", &built::Resources::sgprs},
                          Key{"VGPRs", &built::Resources::vgprs},
                          Key{accumulation, &built::Resources::agprs},
                          Key{"ScratchSize [bytes/lane]", &built::Resources::scratch_bytes},
                          Key{"Occupancy [waves/SIMD]", &built::Resources::occupancy},
                          Key{"SGPRs Spill", &built::Resources::sgpr_spills},
                          Key{"VGPRs Spill", &built::Resources::vgpr_spills},
                          Key{"LDS Size [bytes/block]", &built::Resources::lds_bytes}};

std::int64_t number(std::string_view text, int base, const std::string& where) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size())
        throw InputError(fmt::format("{}: \"{}\" is not a number", where, text));
    return value;
}

/// "remark: file:1:1:     VGPRs: 18 [-Rpass-analysis=…]" gives "VGPRs: 18".
std::string_view remark_of(std::string_view line) {
    constexpr std::string_view mark = "remark: ";
    const auto begin = line.find(mark), end = line.rfind(" [-Rpass-analysis");
    if (begin == std::string_view::npos || end == std::string_view::npos) return {};
    return trimmed(line.substr(begin + mark.size(), end - begin - mark.size()));
}

bool is_matrix_instruction(std::string_view mnemonic) {
    for (const std::string_view prefix : {"v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"})
        if (mnemonic.starts_with(prefix)) return true;
    return false;
}

/// "buffer_load_dword v2, s[8:11], 0 offen lds // 000000003590: E0511000 8002": the destination stands last; or in the name,
/// "global_load_lds_dwordx4 v[2:3], off".
bool is_direct_copy(std::string_view instruction) {
    const std::string_view code = trimmed(instruction.substr(0, instruction.find("//")));
    return (code.starts_with("buffer_load_") && code.ends_with(" lds")) ||
           code.starts_with("global_load_lds_");
}

bool is_transposing_read(std::string_view mnemonic) {
    return mnemonic.starts_with("ds_read_") && mnemonic.find("_tr_") != std::string_view::npos;
}

ResourcesBySymbol read_remarks(std::string_view text, const std::string& where) {
    ResourcesBySymbol found;
    built::Resources* current = nullptr;
    constexpr std::size_t required = keys.size() - 1;
    std::size_t given = 0;
    std::string name;
    const auto complete = [&] {
        if (current != nullptr && given != required)
            throw InputError(
                fmt::format("{}: {} of {} resource remarks about {}", where, given, required, name));
    };
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        const std::string_view remark = remark_of(line);
        const auto colon = remark.rfind(": ");
        if (colon == std::string_view::npos) continue;
        const std::string_view key = remark.substr(0, colon), value = remark.substr(colon + 2);
        if (key == "Function Name") {
            complete();
            name = std::string(value);
            current = &found[name];
            given = 0;
        }
        for (const Key& known : keys)
            if (current != nullptr && key == known.name) {
                current->*known.member = number(value, 10, where);
                if (key != accumulation) ++given;
            }
    }
    complete();
    return found;
}

/// "0000000000001700 g     F .text	0000000000000250 .protected name": size and name of a function.
bool function_symbol(std::string_view line, std::string_view& size, std::string_view& name) {
    constexpr std::string_view mark = " F .text";
    const auto at = line.find(mark);
    if (at == std::string_view::npos) return false;
    const std::string_view rest = trimmed(line.substr(at + mark.size()));
    size = rest.substr(0, rest.find(' '));
    name = rest.substr(rest.rfind(' ') + 1);
    return true;
}

} // namespace

ResourcesBySymbol amd_resources(std::string_view remarks, std::string_view listing,
                                const std::string& where) {
    ResourcesBySymbol found = read_remarks(remarks, where);
    built::Resources* current = nullptr;
    std::set<std::string, std::less<>> listed;
    std::istringstream lines{std::string(listing)};
    for (std::string line; std::getline(lines, line);) {
        std::string_view size;
        std::string_view name;
        if (function_symbol(line, size, name)) {
            if (const auto kernel = found.find(name); kernel != found.end())
                kernel->second.code_bytes = number(size, 16, where);
            continue;
        }
        const std::string_view text = trimmed(line);
        if (text.ends_with(">:")) {
            const auto begin = text.find('<') + 1;
            const auto kernel = found.find(text.substr(begin, text.size() - 2 - begin));
            current = kernel == found.end() ? nullptr : &kernel->second;
            if (current != nullptr) listed.insert(kernel->first);
        } else if (current != nullptr) {
            const auto mnemonic = text.substr(0, text.find(' '));
            if (is_matrix_instruction(mnemonic)) ++current->matrix_instructions[std::string(mnemonic)];
            current->direct_copies += is_direct_copy(text);
            current->transposing_reads += is_transposing_read(mnemonic);
        }
    }
    for (const auto& [name, resources] : found)
        if (!listed.contains(name) || resources.code_bytes == 0)
            throw InputError(fmt::format("{}: {} is not in the disassembly", where, name));
    return found;
}

} // namespace fmha::generator
