#pragma once

#include "dispatcher/types/enums.hpp"
#include "dispatcher/types/field_list.hpp"
#include "dispatcher/types/fixed_string.hpp"
#include "dispatcher/types/long_name.hpp"

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

/// What follows from field lists (`field_list.hpp`): hash, identifier, texts and differences.
namespace fmha {

namespace detail {
struct IgnoreField {
    constexpr void operator()(std::string_view, const auto&) const {}
};
} // namespace detail

/// A type with a field list.
template <class T>
concept Fielded = requires(const T& value) {
    each_field(value, detail::IgnoreField{});
};

/// Text of one leaf value, and back. Integers are decimal, booleans `true`/`false`, enumerations their
/// canonical names. Names may not contain ';' or '=', which separate fields in an identifier.
template <class T>
std::string field_text(const T& value) {
    if constexpr (std::same_as<T, bool>)
        return value ? "true" : "false";
    else if constexpr (NamedEnum<T>)
        return std::string(to_string(value));
    else if constexpr (std::integral<T>)
        return std::to_string(value);
    else
        return std::string(std::string_view(value));
}

template <class T>
bool parse_field_text(std::string_view text, T& value) {
    if constexpr (std::same_as<T, bool>) {
        if (text != "true" && text != "false") return false;
        value = text == "true";
        return true;
    } else if constexpr (NamedEnum<T>) {
        const auto parsed = parse_enum<T>(text, /*accept_aliases=*/false);
        if (!parsed) return false;
        value = *parsed;
        return true;
    } else if constexpr (std::integral<T>) {
        // A value has one spelling: " 5", "+5" and "05" name nothing.
        T number{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc{} || field_text(number) != text) return false;
        value = number;
        return true;
    } else {
        try {
            value = T(text);
            return true;
        } catch (const std::length_error&) {
            return false;
        }
    }
}

/// Calls `visit(path, leaf)` for every leaf, nested lists included; paths are dotted (`algorithm.tile.m0`).
template <Fielded T, class Visit>
void each_leaf(T& value, Visit&& visit, const std::string& prefix = {}) {
    each_field(value, [&](std::string_view name, auto& member) {
        const std::string path = prefix.empty() ? std::string(name) : prefix + '.' + std::string(name);
        if constexpr (Fielded<std::remove_cvref_t<decltype(member)>>)
            each_leaf(member, visit, path);
        else
            visit(path, member);
    });
}

/// Hash over every leaf (boost-style combination; stable within one build only).
template <Fielded T>
constexpr std::size_t hash_value(const T& value) {
    std::size_t seed = 0x9E3779B97F4A7C15ULL;
    const auto mix = [&seed](std::size_t h) {
        seed ^= h + 0x9E3779B97F4A7C15ULL + (seed << 6) + (seed >> 2);
        seed *= 0xFF51AFD7ED558CCDULL;
    };
    each_field(value, [&](std::string_view, const auto& member) {
        using M = std::remove_cvref_t<decltype(member)>;
        if constexpr (Fielded<M>)
            mix(hash_value(member));
        else if constexpr (std::is_enum_v<M> || std::integral<M>)
            mix(static_cast<std::size_t>(member));
        else
            for (const char c : std::string_view(member)) mix(static_cast<unsigned char>(c));
    });
    return seed;
}

/// The injective identifier: `path=value` of every leaf that differs from a default-constructed T, joined by
/// ';' in field order. Two values have the same identifier exactly when they are equal.
template <Fielded T>
std::string identifier(const T& value) {
    std::vector<std::string> defaults;
    const T blank{};
    each_leaf(blank, [&](const std::string&, const auto& leaf) { defaults.push_back(field_text(leaf)); });
    std::string text;
    std::size_t index = 0;
    each_leaf(value, [&](const std::string& path, const auto& leaf) {
        const std::string shown = field_text(leaf);
        if (shown != defaults[index++]) {
            if (!text.empty()) text += ';';
            text += path + '=' + shown;
        }
    });
    return text;
}

/// Inverse of `identifier`. Unknown or repeated paths and unreadable values give nullopt.
template <Fielded T>
std::optional<T> parse_identifier(std::string_view text) {
    struct Item {
        std::string_view path, value;
    };
    std::vector<Item> items;
    while (!text.empty()) {
        const auto end = text.find(';');
        const auto item = text.substr(0, end);
        const auto equals = item.find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        items.push_back({item.substr(0, equals), item.substr(equals + 1)});
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    // One walk over the fields: making their paths takes far longer than comparing them.
    T value{};
    std::size_t read = 0;
    bool good = true;
    each_leaf(value, [&](const std::string& path, auto& leaf) {
        std::size_t own = 0;
        for (const Item& item : items) {
            if (item.path != path) continue;
            ++own;
            good = good && own == 1 && parse_field_text(item.value, leaf);
        }
        read += own;
    });
    return good && read == items.size() ? std::optional(value) : std::nullopt;
}

struct FieldDifference {
    std::string path, left, right;
    friend bool operator==(const FieldDifference&, const FieldDifference&) = default;
};

/// Every leaf in which two values differ, in field order.
template <Fielded T>
std::vector<FieldDifference> differences(const T& left, const T& right) {
    std::vector<std::string> texts;
    each_leaf(right, [&](const std::string&, const auto& leaf) { texts.push_back(field_text(leaf)); });
    std::vector<FieldDifference> result;
    std::size_t index = 0;
    each_leaf(left, [&](const std::string& path, const auto& leaf) {
        std::string shown = field_text(leaf);
        std::string& other = texts[index++];
        if (shown != other) result.push_back({path, std::move(shown), std::move(other)});
    });
    return result;
}

/// Hasher for unordered containers.
struct FieldHash {
    template <Fielded T>
    std::size_t operator()(const T& value) const {
        return hash_value(value);
    }
};

} // namespace fmha
