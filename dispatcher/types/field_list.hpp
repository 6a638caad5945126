#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

/// One field list per value type, from which hash, identifier, JSON, SQL columns and "what differs" follow.
///
///     struct Extents { std::int64_t batch = 0, heads = 0; … };
///     FMHA_FIELDS(Extents, batch, heads)
///
/// defines `each_field(extents, visit)`, which calls `visit(name, member)` for every member in order. The
/// structured binding inside has as many names as the list, so a member that is added to the struct and
/// forgotten in the list does not compile. Equality and order are defaulted by the language and cannot
/// forget one.
namespace fmha {

#define FMHA_PARENS ()
#define FMHA_EXPAND(...) FMHA_EXPAND3(FMHA_EXPAND3(FMHA_EXPAND3(FMHA_EXPAND3(__VA_ARGS__))))
#define FMHA_EXPAND3(...) FMHA_EXPAND2(FMHA_EXPAND2(FMHA_EXPAND2(FMHA_EXPAND2(__VA_ARGS__))))
#define FMHA_EXPAND2(...) FMHA_EXPAND1(FMHA_EXPAND1(FMHA_EXPAND1(FMHA_EXPAND1(__VA_ARGS__))))
#define FMHA_EXPAND1(...) __VA_ARGS__
#define FMHA_VISIT_EACH(...) __VA_OPT__(FMHA_EXPAND(FMHA_VISIT_NEXT(__VA_ARGS__)))
#define FMHA_VISIT_NEXT(member, ...)                                                                         \
    visit(std::string_view(#member), self.member);                                                           \
    __VA_OPT__(FMHA_VISIT_AGAIN FMHA_PARENS(__VA_ARGS__))
#define FMHA_VISIT_AGAIN() FMHA_VISIT_NEXT

#define FMHA_FIELDS(Type, ...)                                                                               \
    template <class Self, class Visit>                                                                       \
    requires std::same_as<std::remove_const_t<Self>, Type>                                                   \
    constexpr void each_field(Self& self, Visit&& visit) {                                                   \
        [[maybe_unused]] auto& [__VA_ARGS__] = self;                                                         \
        FMHA_VISIT_EACH(__VA_ARGS__)                                                                         \
    }

} // namespace fmha
