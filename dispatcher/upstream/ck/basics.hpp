#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

/// Types of Composable Kernel's 01_fmha by one name each, in `fmha::ck`: the checkout's where its headers can be included, else
/// declarations of ours with the same names, members and values.
namespace fmha::ck {

/// Philox seed and offset: as values, or as pointers to device memory.
using seed_and_offset =
    std::variant<std::pair<std::uint64_t, std::uint64_t>, std::pair<const void*, const void*>>;

namespace detail {

struct Anything {
    template <class T>
    operator T() const; // NOLINT(google-explicit-constructor): stands for any member
};

template <std::size_t>
using AnythingAt = Anything;

template <class T, std::size_t... n>
constexpr bool takes(std::index_sequence<n...>) {
    return requires {
        T{AnythingAt<n>{}...};
    };
}

/// Whether the aggregate T has `count` members, neither fewer nor more. A base counts as one.
template <class T, std::size_t count>
constexpr bool has_members = takes<T>(std::make_index_sequence<count>{}) &&
                             !takes<T>(std::make_index_sequence<count + 1>{});

} // namespace detail
} // namespace fmha::ck

#define FMHA_CK_DECLARE(type, name) type name{};
#define FMHA_CK_COUNT(type, name) +1 // NOLINT(bugprone-macro-parentheses): a summand
#define FMHA_CK_HAS(type, name)                                                                              \
    static_assert(                                                                                           \
        requires(T & t) { t.name; },                                                                         \
        "this checkout's structure has no member " #name "; the adapter knows the members of May 2026 "      \
        "(dispatcher/upstream/ck/members.hpp)");
#define FMHA_CK_TYPE(type, name)                                                                             \
    if constexpr (requires(T & t) { t.name; })                                                               \
        static_assert(std::is_same_v<decltype(T::name), type>,                                               \
                      "this checkout's member " #name " is no " #type ", as the adapter takes it to be");

/// Checks a structure of a checkout against the list of its members; `bases` of them are base classes.
#define FMHA_CK_CHECK(structure, list, bases)                                                                \
    namespace detail {                                                                                       \
    template <class T>                                                                                       \
    constexpr bool check_##structure() {                                                                     \
        list(FMHA_CK_HAS) list(FMHA_CK_TYPE) return true;                                                    \
    }                                                                                                        \
    static_assert(check_##structure<structure>());                                                           \
    static_assert(has_members<structure, (bases)list(FMHA_CK_COUNT)>,                                        \
                  "this checkout's " #structure                                                              \
                  " has another number of members than the adapter knows, so that one would "                \
                  "be lost on the way (dispatcher/upstream/ck/members.hpp)");                                \
    }
