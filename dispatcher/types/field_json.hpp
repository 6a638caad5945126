#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/file_boolean.hpp"
#include "dispatcher/types/json.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace fmha {

/// JSON object of every field, nested lists as nested objects, keys in field order.
template <Fielded T>
Json fields_to_json(const T& value) {
    auto object = Json::object();
    each_field(value, [&](std::string_view name, const auto& member) {
        using M = std::remove_cvref_t<decltype(member)>;
        if constexpr (Fielded<M>)
            object[std::string(name)] = fields_to_json(member);
        else if constexpr (std::same_as<M, bool> || (std::integral<M> && !std::is_enum_v<M>))
            object[std::string(name)] = member;
        else
            object[std::string(name)] = field_text(member);
    });
    return object;
}

/// Strict inverse of `fields_to_json`: absent keys keep their defaults, unknown keys and wrong types throw
/// InputError that names `where` (a file and path), the key and the value. `others` are keys beside the fields that the caller has taken
/// out of the object, for the list of what is allowed.
template <Fielded T>
T fields_from_json(const Json& object, const std::string& where, std::string_view others = {}) {
    T value{};
    if (!object.is_object()) throw InputError(where + ": expected an object, got " + object.dump());
    std::size_t known = 0;
    each_field(value, [&](std::string_view name, auto& member) {
        using M = std::remove_cvref_t<decltype(member)>;
        const auto found = object.find(std::string(name));
        if (found == object.end()) return;
        ++known;
        const std::string path = where + "." + std::string(name);
        if constexpr (Fielded<M>) {
            member = fields_from_json<M>(*found, path);
        } else if constexpr (std::same_as<M, bool>) {
            const std::optional<bool> stated = file_boolean(*found);
            if (!stated)
                throw InputError(std::string(path).append(": expected ").append(file_boolean_takes) +
                                 ", got " + found->dump());
            member = *stated;
        } else if constexpr (std::integral<M>) {
            if (!found->is_number_integer())
                throw InputError(path + ": expected an integer, got " + found->dump());
            if (!parse_field_text(found->dump(), member))
                throw InputError(path + ": " + found->dump() + " is out of range");
        } else {
            if (!found->is_string()) throw InputError(path + ": expected a string, got " + found->dump());
            if (!parse_field_text(found->template get<std::string>(), member)) {
                std::string message = path + ": " + found->dump() + " is not known";
                if constexpr (NamedEnum<M>) message += "; allowed: " + allowed_names<M>();
                throw InputError(message);
            }
        }
    });
    if (known != object.size())
        for (const auto& [key, unused] : object.items()) {
            bool found = false;
            each_field(value,
                       [&, &key = key](std::string_view name, const auto&) { found = found || name == key; });
            if (found) continue;
            std::string allowed;
            each_field(value, [&](std::string_view name, const auto&) {
                allowed += allowed.empty() ? "" : ", ";
                allowed += name;
            });
            if (!others.empty()) allowed.append(", ").append(others);
            throw InputError(
                std::string(where).append(": unknown key \"").append(key).append("\"; allowed: ") + allowed);
        }
    return value;
}

} // namespace fmha
