#include "tests/generator/listing_text.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <vector>

namespace fmha::generator {
namespace {

struct Line {
    std::string text, target;
};

/// Code with labels ("loop:") and jumps to them, line by line, and with the address of each label.
std::vector<Line> assembled(const std::string& code, std::map<std::string, std::uint64_t>& labels) {
    std::vector<Line> lines;
    std::istringstream in(code);
    for (std::string line; std::getline(in, line);) {
        const auto begin = line.find_first_not_of(' ');
        if (begin == std::string::npos) continue;
        line.erase(0, begin);
        if (line.back() == ':') {
            labels[line.substr(0, line.size() - 1)] = 8 * lines.size();
            continue;
        }
        const auto arrow = line.find(" -> ");
        lines.push_back({line.substr(0, arrow), arrow == std::string::npos ? "" : line.substr(arrow + 4)});
    }
    return lines;
}

} // namespace

std::string amd_text(const std::string& code) {
    constexpr std::uint64_t base = 0x1700;
    std::map<std::string, std::uint64_t> labels;
    const auto lines = assembled(code, labels);
    std::string text = "Disassembly of section .text:\n\n0000000000001700 <fmha_k>:\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += fmt::format("\t{} // {:012X}: BF840000", lines[i].text, base + 8 * i);
        if (!lines[i].target.empty())
            text += labels.at(lines[i].target) == 0
                        ? std::string(" <fmha_k>")
                        : fmt::format(" <fmha_k+0x{:x}>", labels.at(lines[i].target));
        text += '\n';
    }
    return text;
}

std::uint64_t upper_half(std::uint64_t stall, std::uint64_t sets, std::uint64_t waits) {
    constexpr std::uint64_t reads_none = 7;
    return stall << 41U | sets << 46U | reads_none << 49U | waits << 52U;
}

std::string nvidia_text(const std::string& code) {
    std::map<std::string, std::uint64_t> labels;
    const auto lines = assembled(code, labels);
    std::string text = "\t\tFunction : fmha_k\n\t.headerflags\t@\"EF_CUDA_SM90\"\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto mark = lines[i].text.find(" ! ");
        const auto upper = mark == std::string::npos ? "000fc00000000000" : lines[i].text.substr(mark + 3);
        text += fmt::format("        /*{:04x}*/                   {}", 8 * i, lines[i].text.substr(0, mark));
        if (!lines[i].target.empty()) text += fmt::format(" 0x{:x}", labels.at(lines[i].target));
        text += fmt::format(
            " ;     /* 0x0000000000007918 */\n                                   /* 0x{} */\n", upper);
    }
    return text;
}

} // namespace fmha::generator
