#include "kernels/generator/listing.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <charconv>

namespace fmha::generator {
namespace {

std::uint64_t hexadecimal(std::string_view text, const std::string& where) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end == text.data())
        throw InputError(fmt::format("{}: \"{}\" is not an address", where, text));
    return value;
}

template <class F>
void each_line(std::string_view text, F f) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        f(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
}

void split(std::string_view code, Instruction& into) {
    const auto space = code.find_first_of(" \t");
    into.mnemonic = code.substr(0, space);
    if (space != std::string_view::npos) into.operands = trimmed(code.substr(space));
}

Flow amd_flow(std::string_view mnemonic) {
    if (mnemonic == "s_branch") return Flow::jump;
    if (mnemonic.starts_with("s_cbranch_")) return Flow::branch;
    if (mnemonic == "s_endpgm" || mnemonic == "s_setpc_b64") return Flow::end;
    return Flow::next;
}

/// The conditions of a jump stand before it: "@!P0 BRA 0x40".
Flow nvidia_flow(std::string_view mnemonic, bool predicated) {
    const auto name = mnemonic.substr(0, mnemonic.find('.'));
    if (name == "EXIT" || name == "RET") return predicated ? Flow::next : Flow::end;
    if (name == "BRA") return predicated ? Flow::branch : Flow::jump;
    return Flow::next;
}

/// From bit 105 on of an instruction's 128: four bits of stall, one to yield, the scoreboards that are set, the mask of those that are waited for.
Scoreboards scoreboards_of(std::uint64_t upper_half) {
    const auto bits = [&](unsigned first, unsigned count) {
        return upper_half >> (first - 64U) & ((1U << count) - 1U);
    };
    constexpr std::uint64_t none = 7;
    const auto board = [](std::uint64_t number) {
        return static_cast<std::int8_t>(number == none ? -1 : static_cast<int>(number));
    };
    return {static_cast<std::uint8_t>(bits(105, 4)), static_cast<std::uint8_t>(bits(116, 6)),
            board(bits(110, 3)), board(bits(113, 3))};
}

} // namespace

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string_view> operands_of(std::string_view text) {
    std::vector<std::string_view> all;
    while (!text.empty()) {
        const auto end = text.find(", ");
        all.push_back(trimmed(text.substr(0, end)));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
    }
    // Offsets and the like stand behind the last one, without a comma.
    if (!all.empty()) all.back() = all.back().substr(0, all.back().find(' '));
    return all;
}

// "\ts_cbranch_scc0 923   // 00000000176C: BF84039B <fmha_k+0xedc>": the comment has the address, and where a branch goes.
Listing amd_listing(std::string_view text, const std::string& where) {
    Listing found;
    std::vector<Instruction>* current = nullptr;
    std::uint64_t base = 0;
    each_line(text, [&](std::string_view raw) {
        const std::string_view line = trimmed(raw);
        if (line.ends_with(">:")) {
            const auto name = line.find('<') + 1;
            base = hexadecimal(line.substr(0, name - 2), where);
            current = &found[std::string(line.substr(name, line.size() - 2 - name))];
            return;
        }
        const auto comment = line.find("//");
        if (current == nullptr || comment == std::string_view::npos) return;
        Instruction instruction;
        split(trimmed(line.substr(0, comment)), instruction);
        const std::string_view note = trimmed(line.substr(comment + 2));
        instruction.address = hexadecimal(note.substr(0, note.find(':')), where);
        instruction.flow = amd_flow(instruction.mnemonic);
        if (instruction.flow == Flow::jump || instruction.flow == Flow::branch) {
            const auto place = note.find('<');
            if (place == std::string_view::npos)
                throw InputError(fmt::format("{}: {} at {:x} has no target", where, instruction.mnemonic,
                                             instruction.address));
            const auto plus = note.rfind("+0x");
            instruction.target = base + (plus == std::string_view::npos || plus < place
                                             ? 0
                                             : hexadecimal(note.substr(plus + 1), where));
        }
        current->push_back(std::move(instruction));
    });
    return found;
}

// "        /*0120*/              @!P0 BRA 0x3c0 ;     /* 0x… */", below "Function : name"; the line behind it has the upper half of
// the instruction's bits alone, "/* 0x… */".
Listing nvidia_listing(std::string_view text, const std::string& where) {
    Listing found;
    std::vector<Instruction>* current = nullptr;
    each_line(text, [&](std::string_view raw) {
        std::string_view line = trimmed(raw);
        constexpr std::string_view function = "Function : ";
        if (line.starts_with(function)) {
            current = &found[std::string(trimmed(line.substr(function.size())))];
            return;
        }
        constexpr std::string_view upper_half = "/* 0x";
        if (current != nullptr && !current->empty() && line.starts_with(upper_half)) {
            line.remove_prefix(upper_half.size());
            current->back().scoreboards = scoreboards_of(hexadecimal(line, where));
            return;
        }
        const auto end = line.find(';');
        if (current == nullptr || !line.starts_with("/*") || end == std::string_view::npos) return;
        const auto close = line.find("*/");
        if (close == std::string_view::npos || close > end) return;
        Instruction instruction;
        instruction.address = hexadecimal(line.substr(2, close - 2), where);
        std::string_view code = trimmed(line.substr(close + 2, end - close - 2));
        const bool predicated = code.starts_with('@');
        if (predicated) code = trimmed(code.substr(code.find(' ')));
        split(code, instruction);
        // A jump by a uniform predicate or a vote names it as an operand: "BRA.U !UP0, 0x40", "BRA P0, 0x40".
        const auto last = instruction.operands.rfind("0x");
        const bool named = instruction.operands.find(',') != std::string::npos;
        instruction.flow = nvidia_flow(instruction.mnemonic, predicated || named);
        if (instruction.flow == Flow::jump || instruction.flow == Flow::branch) {
            if (last == std::string::npos)
                throw InputError(fmt::format("{}: {} at {:x} has no target", where, instruction.mnemonic,
                                             instruction.address));
            instruction.target = hexadecimal(std::string_view(instruction.operands).substr(last), where);
        }
        current->push_back(std::move(instruction));
    });
    return found;
}

} // namespace fmha::generator
