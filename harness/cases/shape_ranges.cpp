#include "harness/cases/shape_ranges.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

namespace fmha::harness {
namespace {

constexpr std::size_t most_shapes = 10'000;

[[noreturn]] void refuse(std::string_view range, const char* why) {
    throw InputError(fmt::format("range {}: {}; a range is first:last:xN or first:last:+N", range, why));
}

std::int64_t whole_number(std::string_view range, std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        refuse(range, "not of this form");
    return value;
}

/// "32", "2048" and "x2" of a range.
struct RangeParts {
    std::string_view first, last, step;
};
std::optional<RangeParts> parts_of(std::string_view text) {
    const auto one = text.find(':');
    const auto two = one == std::string_view::npos ? one : text.find(':', one + 1);
    if (two == std::string_view::npos) return std::nullopt;
    return RangeParts{text.substr(0, one), text.substr(one + 1, two - one - 1), text.substr(two + 1)};
}

/// The values of a range; nullopt for a value of another form, such as the "32:8" of heads.
std::optional<std::vector<std::int64_t>> values_of(std::string_view text) {
    const auto parts = parts_of(text);
    if (!parts) return std::nullopt;
    const bool multiplies = parts->step.starts_with('x');
    if (!multiplies && !parts->step.starts_with('+')) refuse(text, "not of this form");
    const std::int64_t from = whole_number(text, parts->first), to = whole_number(text, parts->last),
                       by = whole_number(text, parts->step.substr(1));
    if (from > to) refuse(text, "the first value exceeds the last one");
    if (multiplies ? by < 2 || from < 1 : by < 1) refuse(text, "it does not grow");
    std::vector<std::int64_t> values;
    for (std::int64_t value = from; value <= to;) {
        values.push_back(value);
        if (values.size() > most_shapes) refuse(text, "more than 10000 values");
        if (multiplies ? value > to / by : value > to - by) break;
        value = multiplies ? value * by : value + by;
    }
    return values;
}

} // namespace

std::vector<std::string> expand_ranges(std::string_view text) {
    std::vector<std::string> shapes{""};
    const std::string_view whole = text;
    while (true) {
        const auto comma = text.find(',');
        const std::string_view field = text.substr(0, comma);
        if (field.empty())
            throw InputError(fmt::format("\"{}\": nothing is set {}; expected field=value,…", whole,
                                         whole.empty() ? "in it" : "on one side of a comma"));
        const auto equals = field.find('=');
        const auto values =
            equals == std::string_view::npos ? std::nullopt : values_of(field.substr(equals + 1));
        if (values && shapes.size() > most_shapes / values->size())
            throw InputError(fmt::format("{}: more than {} shapes", whole, most_shapes));
        std::vector<std::string> longer;
        for (const std::string& shape : shapes) {
            const std::string head = shape.empty() ? shape : shape + ',';
            if (!values) longer.push_back(fmt::format("{}{}", head, field));
            for (const std::int64_t value : values.value_or(std::vector<std::int64_t>()))
                longer.push_back(fmt::format("{}{}{}", head, field.substr(0, equals + 1), value));
        }
        shapes = std::move(longer);
        if (comma == std::string_view::npos) return shapes;
        text.remove_prefix(comma + 1);
    }
}

} // namespace fmha::harness
