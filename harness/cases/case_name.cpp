#include "harness/cases/case_name.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace fmha::harness {
namespace {

/// Where the value at the start of `text` ends. Values hold commas themselves (mask texts, lists), so one
/// ends at a comma that `field=` follows.
std::size_t value_end(std::string_view text) {
    for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
        const auto rest = text.substr(comma + 1);
        const auto next = rest.find_first_of("=,");
        if (next != std::string_view::npos && rest[next] == '=') return comma;
    }
    return text.size();
}

/// The bracket that the one at the end of `text` closes. Values may be lists, and folders may have brackets in their names.
std::size_t opening_bracket(std::string_view text) {
    int open = 0;
    for (auto i = text.size(); i-- > 0;) {
        open += text[i] == ']' ? 1 : text[i] == '[' ? -1 : 0;
        if (open == 0) return i;
    }
    return std::string_view::npos;
}

} // namespace

std::optional<SplitName> split_name(std::string_view name,
                                    const std::function<bool(const std::string&)>& is_stem) {
    SplitName parts;
    const auto bracket = name.rfind('[');
    const auto at = name.rfind('@');
    if ((bracket == std::string_view::npos && at == std::string_view::npos) || is_stem(std::string(name)))
        return std::nullopt;
    auto rest = name;
    const auto closing = name.rfind(']');
    if (at != std::string_view::npos && (closing == std::string_view::npos || at > closing)) {
        std::uint64_t seed = 0;
        const auto digits = name.substr(at + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
        if (error != std::errc{} || end != digits.data() + digits.size())
            throw InputError(
                fmt::format("{}: the seed after '@' is not an integer from 0 to 2^64 - 1", name));
        parts.seed = seed;
        rest = name.substr(0, at);
    }
    if (bracket != std::string_view::npos && !is_stem(std::string(rest))) {
        const auto opening = rest.ends_with(']') ? opening_bracket(rest) : std::string_view::npos;
        if (opening == std::string_view::npos)
            throw InputError(fmt::format("{}: '[' without a closing ']'", name));
        parts.overrides = rest.substr(opening + 1, rest.size() - opening - 2);
        rest = rest.substr(0, opening);
    }
    if (rest.empty())
        throw InputError(
            fmt::format("{}: no case file stands before '{}'; expected one, as in fwd/tiny[hdim=8]@1", name,
                        name.front()));
    parts.stem = rest;
    return parts;
}

std::string print_name(std::string_view stem, const Case& concrete, const Case& base,
                       const std::set<const CaseField*>& always) {
    std::string inside;
    std::set<std::string_view> shown;
    for (const auto& field : case_fields()) {
        const bool wanted = always.contains(&field);
        if (field.compound() && !wanted) continue;
        if (shown.contains(field.sets[0])) continue;
        const auto text = field.print(concrete);
        if (field.compound() && text.empty()) continue;
        if (!wanted && text == field.print(base)) continue;
        shown.insert(field.sets.begin(), field.sets.end());
        inside += fmt::format("{}{}={}", inside.empty() ? "" : ",", field.name, text);
    }
    return fmt::format("{}{}@{}", stem, inside.empty() ? "" : "[" + inside + "]", concrete.seed);
}

void apply_overrides(std::string_view overrides, const std::string& shown, Case& into) {
    std::set<std::string_view> seen;
    while (!overrides.empty()) {
        const auto equals = overrides.find('=');
        const auto key = overrides.substr(0, equals);
        const auto* field = &field_of(into.family, key, shown);
        if (equals == std::string_view::npos)
            throw InputError(fmt::format("{}: {} has no value", shown, key));
        for (const auto part : field->elementary())
            if (!seen.insert(part).second) throw InputError(fmt::format("{}: {} is set twice", shown, part));
        overrides.remove_prefix(equals + 1);
        const auto end = value_end(overrides);
        const auto value = overrides.substr(0, end);
        if (!read_text(*field, value, into))
            throw InputError(
                fmt::format("{}: {}: \"{}\" is not allowed; expected {}", shown, key, value, field->takes));
        overrides.remove_prefix(std::min(end + 1, overrides.size()));
    }
}

} // namespace fmha::harness
