#include "harness/cases/relative_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace fmha::harness {
namespace {

struct TileName {
    std::string_view name;
    std::int16_t Tile::*extent;
};
constexpr std::array<TileName, 2> tile_names{{{"tile_m0", &Tile::m0}, {"tile_n0", &Tile::n0}}};

/// The whole text as a whole number.
std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Reads the language of `tile_grammar`.
class TileArithmetic {
  public:
    TileArithmetic(std::string_view text, const Tile& tile) : rest_(text), tile_(tile) {}

    std::optional<std::int64_t> value() {
        const bool negative = take('-');
        auto sum = product();
        if (sum && negative) sum = -*sum;
        while (sum && !rest_.empty()) {
            const bool minus = take('-');
            if (!minus && !take('+')) return std::nullopt;
            const auto next = product();
            if (!next || *sum > largest_sum || *sum < -largest_sum) return std::nullopt;
            *sum += minus ? -*next : *next;
        }
        return sum;
    }

  private:
    bool take(char wanted) {
        if (!rest_.starts_with(wanted)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::optional<std::int64_t> product() {
        auto result = factor();
        while (result && take('*')) {
            const auto next = factor();
            if (!next || *result > largest) return std::nullopt;
            *result *= *next;
        }
        return result;
    }
    std::optional<std::int64_t> factor() {
        for (const auto& [name, extent] : tile_names)
            if (rest_.starts_with(name)) {
                rest_.remove_prefix(name.size());
                return tile_.*extent;
            }
        const auto digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
        const auto number = whole_number(rest_.substr(0, digits));
        rest_.remove_prefix(digits);
        return number && *number <= largest ? number : std::nullopt;
    }

    /// A product of two such numbers does not overflow, and neither does a sum of two such products.
    static constexpr std::int64_t largest = 1'000'000'000, largest_sum = largest * largest;
    std::string_view rest_;
    const Tile& tile_;
};

} // namespace

bool names_tile(std::string_view text) {
    return std::ranges::any_of(
        tile_names, [&](const TileName& one) { return text.find(one.name) != std::string_view::npos; });
}

std::optional<std::string> at_tile(std::string_view text, const Tile& tile) {
    std::string result;
    while (true) {
        const auto end = std::min(text.find_first_of(":,[]"), text.size());
        const auto part = text.substr(0, end);
        if (names_tile(part)) {
            const auto number = TileArithmetic(part, tile).value();
            if (!number) return std::nullopt;
            result += std::to_string(*number);
        } else {
            result += part;
        }
        if (end == text.size()) return result;
        result += text[end];
        text.remove_prefix(end + 1);
    }
}

namespace {

/// `most`: of "around(n)".
std::optional<std::vector<std::string>> spread(std::string_view text, int most) {
    static constexpr std::string_view opening = "around(";
    const auto begin = text.find(opening);
    if (begin == std::string_view::npos) return std::vector{std::string(text)};
    if (most == 0) return std::nullopt;
    const auto centre_begin = begin + opening.size();
    const auto end = text.find(')', centre_begin);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string centre(text.substr(centre_begin, end - centre_begin));
    std::array<std::string, 3> near;
    if (const auto n = whole_number(centre); n && *n > 0)
        near = {std::to_string(*n - 1), centre, std::to_string(*n + 1)};
    else if (names_tile(centre) && TileArithmetic(centre, Tile{}).value())
        near = {centre + "-1", centre, centre + "+1"};
    else
        return std::nullopt;
    const auto rests = spread(text.substr(end + 1), most - 1);
    if (!rests) return std::nullopt;
    std::vector<std::string> result;
    for (const auto& one : near)
        for (const auto& rest : *rests)
            result.push_back(std::string(text.substr(0, begin)).append(one).append(rest));
    return result;
}

} // namespace

std::optional<std::vector<std::string>> spread(std::string_view text) {
    constexpr int most = 8;
    return spread(text, most);
}

} // namespace fmha::harness
