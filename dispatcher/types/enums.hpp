#pragma once

#include "dispatcher/types/enumerations.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of the enumerations. Strings and bare numbers exist only at the edges: `to_string`, `parse_enum` and `enum_of_code` are the
/// converters, driven by one table for each enumeration.
namespace fmha {

template <class E>
struct EnumName {
    E value;
    std::string_view name;
};

/// Specialised once per enumeration: `names` holds the canonical spelling of every member in order of
/// declaration; `aliases` holds further spellings that parsers accept.
template <class E>
struct EnumTable;

template <class E>
concept NamedEnum = requires {
    EnumTable<E>::names;
};

template <NamedEnum E>
constexpr std::string_view to_string(E value) {
    for (const auto& entry : EnumTable<E>::names)
        if (entry.value == value) return entry.name;
    return "?";
}

/// Canonical names only, or also the aliases; unknown text gives nullopt.
template <NamedEnum E>
constexpr std::optional<E> parse_enum(std::string_view text, bool accept_aliases = true) {
    for (const auto& entry : EnumTable<E>::names)
        if (entry.name == text) return entry.value;
    if (accept_aliases)
        for (const auto& entry : EnumTable<E>::aliases)
            if (entry.name == text) return entry.value;
    return std::nullopt;
}

/// The member with this number; nullopt for a number that no member has.
template <NamedEnum E>
constexpr std::optional<E> enum_of_code(std::int64_t code) {
    for (const auto& entry : EnumTable<E>::names)
        if (static_cast<std::int64_t>(entry.value) == code) return entry.value;
    return std::nullopt;
}

/// "a, b or c", for messages that name the allowed values.
template <NamedEnum E>
std::string allowed_names() {
    std::string text;
    for (std::size_t i = 0; i < EnumTable<E>::names.size(); ++i) {
        if (i > 0) text += i + 1 == EnumTable<E>::names.size() ? " or " : ", ";
        text += EnumTable<E>::names[i].name;
    }
    return text;
}

template <class E>
inline constexpr std::array<EnumName<E>, 0> no_aliases{};

template <>
struct EnumTable<ApiFamily> {
#define FMHA_NAME(name, ...) EnumName<ApiFamily>{ApiFamily::name, #name},
    static constexpr std::array names{FMHA_API_FAMILIES(FMHA_NAME)};
#undef FMHA_NAME
    static constexpr std::array<EnumName<ApiFamily>, 4> aliases{
        {{ApiFamily::fwd_pagedkv, "pagedkv"},
         {ApiFamily::fwd_splitkv, "splitkv"},
         {ApiFamily::fwd_appendkv, "appendkv"},
         {ApiFamily::fwd_pagedkv, "pagedkv_prefill"}}};
};

template <>
struct EnumTable<KernelFamily> {
#define FMHA_NAME(name, ...) EnumName<KernelFamily>{KernelFamily::name, #name},
    static constexpr std::array names{FMHA_KERNEL_FAMILIES(FMHA_NAME)};
#undef FMHA_NAME
    static constexpr auto& aliases = no_aliases<KernelFamily>;
};

template <>
struct EnumTable<DataType> {
    using enum DataType;
    static constexpr std::array<EnumName<DataType>, 9> names{{{fp32, "fp32"},
                                                              {fp16, "fp16"},
                                                              {bf16, "bf16"},
                                                              {fp8, "fp8"},
                                                              {bf8, "bf8"},
                                                              {fp8bf16, "fp8bf16"},
                                                              {fp8fp32, "fp8fp32"},
                                                              {mxfp8, "mxfp8"},
                                                              {mxfp4, "mxfp4"}}};
    static constexpr auto& aliases = no_aliases<DataType>;
};

template <>
struct EnumTable<Mode> {
    static constexpr std::array<EnumName<Mode>, 2> names{{{Mode::batch, "batch"}, {Mode::group, "group"}}};
    static constexpr auto& aliases = no_aliases<Mode>;
};

template <>
struct EnumTable<VLayout> {
    using enum VLayout;
    static constexpr std::array<EnumName<VLayout>, 2> names{{{row, "row"}, {column, "column"}}};
    static constexpr std::array<EnumName<VLayout>, 3> aliases{{{row, "r"}, {column, "c"}, {column, "col"}}};
};

template <>
struct EnumTable<MaskType> {
    using enum MaskType;
    static constexpr std::array<EnumName<MaskType>, 4> names{{{no_mask, "no_mask"},
                                                              {top_left, "top_left"},
                                                              {bottom_right, "bottom_right"},
                                                              {window_generic, "window_generic"}}};
    static constexpr std::array<EnumName<MaskType>, 1> aliases{{{no_mask, "no"}}};
};

template <>
struct EnumTable<MaskClass> {
    using enum MaskClass;
    static constexpr std::array<EnumName<MaskClass>, 3> names{
        {{none, "none"}, {causal, "causal"}, {generic, "generic"}}};
    static constexpr std::array<EnumName<MaskClass>, 6> aliases{{{none, "no"},
                                                                 {none, "no_mask"},
                                                                 {none, "0"},
                                                                 {causal, "top_left"},
                                                                 {causal, "bottom_right"},
                                                                 {generic, "window_generic"}}};
};

template <>
struct EnumTable<BiasType> {
    using enum BiasType;
    static constexpr std::array<EnumName<BiasType>, 3> names{
        {{no_bias, "none"}, {elementwise, "elementwise"}, {alibi, "alibi"}}};
    static constexpr std::array<EnumName<BiasType>, 5> aliases{
        {{no_bias, "no"}, {no_bias, "no_bias"}, {elementwise, "bias"}, {elementwise, "e"}, {alibi, "a"}}};
};

template <>
struct EnumTable<QScale> {
    using enum QScale;
    static constexpr std::array<EnumName<QScale>, 6> names{{{no_scale, "none"},
                                                            {pertensor, "pertensor"},
                                                            {blockscale, "blockscale"},
                                                            {kv_blockscale, "kv_blockscale"},
                                                            {mx, "mx"},
                                                            {per_token_head, "per_token_head"}}};
    static constexpr std::array<EnumName<QScale>, 6> aliases{{{no_scale, "no"},
                                                              {no_scale, "no_scale"},
                                                              {pertensor, "pt"},
                                                              {blockscale, "bs"},
                                                              {per_token_head, "pth"},
                                                              {per_token_head, "ph"}}};
};

template <>
struct EnumTable<Rope> {
    using enum Rope;
    static constexpr std::array<EnumName<Rope>, 3> names{
        {{none, "none"}, {interleaved, "interleaved"}, {half_rotated, "half_rotated"}}};
    static constexpr std::array<EnumName<Rope>, 3> aliases{
        {{none, "no"}, {interleaved, "inter"}, {half_rotated, "half"}}};
};

template <>
struct EnumTable<KvLayout> {
    using enum KvLayout;
    static constexpr std::array<EnumName<KvLayout>, 3> names{
        {{unset, "unset"}, {vectorized, "vectorized"}, {linear, "linear"}}};
    static constexpr auto& aliases = no_aliases<KvLayout>;
};

template <>
struct EnumTable<KvLookup> {
    using enum KvLookup;
    static constexpr std::array<EnumName<KvLookup>, 3> names{
        {{unset, "unset"}, {vllm_2d, "vllm_2d"}, {sglang_1d, "sglang_1d"}}};
    static constexpr std::array<EnumName<KvLookup>, 2> aliases{{{vllm_2d, "vllm"}, {sglang_1d, "sglang"}}};
};

template <>
struct EnumTable<Pipeline> {
    using enum Pipeline;
    static constexpr std::array<EnumName<Pipeline>, 13> names{{{qr, "qr"},
                                                               {qr_hpad, "qr_hpad"},
                                                               {qr_async, "qr_async"},
                                                               {qs, "qs"},
                                                               {qr_async_trload, "qr_async_trload"},
                                                               {qr_async_trload_v3, "qr_async_trload_v3"},
                                                               {v3, "v3"},
                                                               {qr_pagedkv, "qr_pagedkv"},
                                                               {qr_nwarp_sshuffle, "qr_nwarp_sshuffle"},
                                                               {splitkv_combine, "splitkv_combine"},
                                                               {appendkv, "appendkv"},
                                                               {bwd, "bwd"},
                                                               {ws, "ws"}}};
    static constexpr auto& aliases = no_aliases<Pipeline>;
};

template <>
struct EnumTable<LoadMode> {
    using enum LoadMode;
    static constexpr std::array<EnumName<LoadMode>, 3> names{
        {{none, "none"}, {bload, "bload"}, {gload, "gload"}}};
    static constexpr auto& aliases = no_aliases<LoadMode>;
};

template <>
struct EnumTable<DropoutVariant> {
    using enum DropoutVariant;
    static constexpr std::array<EnumName<DropoutVariant>, 5> names{
        {{none, "no"},
         {dropout_wg32, "dropout_wg32"},
         {dropout_wg32_storerandval, "dropout_wg32_storerandval"},
         {dropout_wg16, "dropout_wg16"},
         {dropout_wg16_storerandval, "dropout_wg16_storerandval"}}};
    static constexpr auto& aliases = no_aliases<DropoutVariant>;
};

template <>
struct EnumTable<SelectionStrategy> {
    using enum SelectionStrategy;
    static constexpr std::array<EnumName<SelectionStrategy>, 2> names{
        {{first_fit, "first_fit"}, {heuristic, "heuristic"}}};
    static constexpr auto& aliases = no_aliases<SelectionStrategy>;
};

template <>
struct EnumTable<Priority> {
    using enum Priority;
    static constexpr std::array<EnumName<Priority>, 3> names{
        {{low, "low"}, {normal, "normal"}, {high, "high"}}};
    static constexpr auto& aliases = no_aliases<Priority>;
};

} // namespace fmha
