#include "harness/cases/mask_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace fmha::harness {
namespace {

/// "l,r" or "l,r,s" as integers; nullopt unless the whole text is a comma-separated list of them.
std::optional<std::vector<std::int64_t>> integers(std::string_view text) {
    std::vector<std::int64_t> values;
    while (true) {
        const auto comma = text.find(',');
        const auto item = text.substr(0, comma);
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
        if (error != std::errc{} || end != item.data() + item.size()) return std::nullopt;
        values.push_back(value);
        if (comma == std::string_view::npos) return values;
        text.remove_prefix(comma + 1);
    }
}

} // namespace

bool parse_mask(std::string_view text, MaskText& mask) {
    if (text == "0") return mask = {}, true;
    if (text == "1" || text == "t") return mask = {MaskType::top_left, -1, 0, 0}, true;
    if (text == "2" || text == "b") return mask = {MaskType::bottom_right, -1, 0, 0}, true;

    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const auto kind = text.substr(0, colon);
    const auto numbers = integers(text.substr(colon + 1));
    if (!numbers) return false;
    const auto& n = *numbers;

    if (kind == "t" || kind == "b") {
        if (n.size() != 2 && n.size() != 3) return false;
        const auto type = kind == "t" ? MaskType::top_left : MaskType::bottom_right;
        mask = {type, n[0], n[1], n.size() == 3 ? n[2] : 0};
        return mask.sink >= 0;
    }
    if (kind == "xt" || kind == "xb") {
        if (n.size() != 1) return false;
        const auto type = kind == "xt" ? MaskType::top_left : MaskType::bottom_right;
        const std::int64_t left = n[0] / 2;
        mask = n[0] > 0 ? MaskText{type, left, n[0] - 1 - left, 0} : MaskText{type, -1, 0, 0};
        return true;
    }
    if (kind != "g" || n.size() != 2 || std::ranges::min(n) == std::numeric_limits<std::int64_t>::min())
        return false;
    mask = {MaskType::window_generic, n[0] - 1, n[1] - 1, 0};
    return true;
}

std::string mask_text(const MaskText& mask) {
    if (mask.type == MaskType::no_mask) return "0";
    if (mask.type == MaskType::window_generic) return fmt::format("g:{},{}", mask.left + 1, mask.right + 1);
    const char anchor = mask.type == MaskType::top_left ? 't' : 'b';
    if (mask.sink > 0) return fmt::format("{}:{},{},{}", anchor, mask.left, mask.right, mask.sink);
    if (mask.left == -1 && mask.right == 0) return std::string(1, anchor);
    return fmt::format("{}:{},{}", anchor, mask.left, mask.right);
}

} // namespace fmha::harness
