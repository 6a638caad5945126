#include "kernels/catalog/profile.hpp"

#include "dispatcher/types/error.hpp"

#include <charconv>

namespace fmha::catalog {

namespace {

using enum ProfileId;

constexpr std::array flash_members{flash_fwd, flash_bwd};
constexpr std::array aiter_members{aiter_batch, aiter_group, aiter_bwd_batch, aiter_bwd_group, aiter_cpp};
constexpr std::array fp32_members{fp32_all, fp32_min};
constexpr std::array fp8_members{fp8_test};
constexpr std::array unlisted_members{unlisted};

constexpr std::array<ProfileRow, 19> rows{{
    {ck_default, 0, "everything except fp32", {}},
    {ck_extended, 1, "everything except fp32, with the extra qr kernels", {}},
    {flash_fwd, 2, "fp16/bf16, row-major V, bias none or alibi, no quantisation, no skip", {}},
    {flash_bwd, 3, "fp16/bf16, bias none or alibi, not deterministic", {}},
    {pytorch, 4, "fp16/bf16, row-major V, bias none or elementwise, no quantisation, skip or soft cap", {}},
    {aiter_batch, 100, "batch mode, fp16/bf16/fp8bf16", {}},
    {aiter_group, 200, "group mode, fp16/bf16/fp8bf16", {}},
    {aiter_bwd_batch, 300, "backward, batch mode, fp16/bf16", {}},
    {aiter_bwd_group, 400, "backward, group mode, fp16/bf16", {}},
    {aiter_cpp, 600, "the C++ users of aiter, both modes", {}},
    {transformer_engine,
     700,
     "fp16/bf16, row-major V, with LSE; no quantisation, skip, sink or soft cap",
     {}},
    {fp32_all, 800, "fp32", {}},
    {fp32_min, 801, "fp32, batch mode, few head dimensions, no features", {}},
    {fp8_test, 888, "fp8bf16/fp8fp32, head dimensions 128 and 192", {}},
    {all, -1, "everything", {}},
    {flash, -1, "flash_fwd and flash_bwd", flash_members},
    {aiter, -1, "the five aiter profiles", aiter_members},
    {fp32, -1, "fp32_all and fp32_min", fp32_members},
    {fp8, -1, "fp8_test", fp8_members},
}};

const ProfileRow* find_row(ProfileId id) {
    for (const ProfileRow& row : rows)
        if (row.id == id) return &row;
    return nullptr;
}

} // namespace

std::span<const ProfileRow> profiles() {
    return rows;
}

Profile named_profile(ProfileId id) {
    const ProfileRow* row = find_row(id);
    return {id, row != nullptr ? row->number : -1};
}

Profile parse_profile(std::string_view text) {
    if (const auto id = parse_enum<ProfileId>(text)) return named_profile(*id);
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
        throw InputError("profile \"" + std::string(text) + "\" is not known; allowed: a number 0 … 999, " +
                         allowed_names<ProfileId>());
    if (number < 0 || number > 999)
        throw InputError("profile number " + std::string(text) + " is out of range; allowed: 0 … 999");
    for (const ProfileRow& row : rows)
        if (row.number == number) return {row.id, number};
    return {unlisted, number};
}

std::string profile_name(const Profile& profile) {
    return profile.id == unlisted ? std::to_string(profile.number) : std::string(to_string(profile.id));
}

std::span<const ProfileId> profile_members(const Profile& profile) {
    const ProfileRow* row = find_row(profile.id);
    if (row != nullptr && !row->members.empty()) return row->members;
    if (row != nullptr) return std::span<const ProfileId>(&row->id, 1);
    return unlisted_members;
}

} // namespace fmha::catalog
