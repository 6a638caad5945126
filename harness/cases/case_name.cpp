#include "harness/cases/case_name.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

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

} // namespace

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
