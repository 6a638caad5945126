#pragma once

#include "dispatcher/types/enums.hpp"

#include <span>
#include <string_view>

namespace fmha::catalog {

/// The five lists. `ck`, `claim`, `stored` and `sweep` reproduce upstream for audits; `house` is the list for
/// planning, verification and builds.
enum class RuleSet : std::uint8_t { ck, claim, stored, sweep, house };

/// How masks are spelt in lists that know both: `simplified` has "none" and "some mask", `generic` tells
/// causal masks from windows.
enum class MaskVocabulary : std::uint8_t { simplified, generic };

/// Named selections of kernels (dispatcher-api section 11). `unlisted` stands for a number that the table
/// does not name; each rule set defines its meaning.
enum class ProfileId : std::uint8_t {
    ck_default,
    ck_extended,
    flash_fwd,
    flash_bwd,
    pytorch,
    aiter_batch,
    aiter_group,
    aiter_bwd_batch,
    aiter_bwd_group,
    aiter_cpp,
    transformer_engine,
    fp32_all,
    fp32_min,
    fp8_test,
    all,
    flash,
    aiter,
    fp32,
    fp8,
    unlisted,
};

/// A profile as asked for. `number` is upstream's alias (0 … 999), -1 when it has none.
struct Profile {
    ProfileId id = ProfileId::ck_default;
    int number = 0;
    friend bool operator==(const Profile&, const Profile&) = default;
};

/// One row of the table of names.
struct ProfileRow {
    ProfileId id;
    int number;
    std::string_view content;           ///< the intent in one sentence, for listings
    std::span<const ProfileId> members; ///< of a group profile: the profiles it unites
};

/// All named profiles in table order.
std::span<const ProfileRow> profiles();

/// A name (`pytorch`) or a number (`4`); numbers without a name are kept as `unlisted`. Throws InputError for
/// unknown names and for numbers outside 0 … 999.
Profile parse_profile(std::string_view text);

/// The profile with this id and its alias number.
Profile named_profile(ProfileId id);

/// `pytorch`, or the number of an unlisted profile.
std::string profile_name(const Profile& profile);

/// The members of a group profile, or the profile itself.
std::span<const ProfileId> profile_members(const Profile& profile);

} // namespace fmha::catalog

namespace fmha {

template <>
struct EnumTable<catalog::RuleSet> {
    using enum catalog::RuleSet;
    static constexpr std::array<EnumName<catalog::RuleSet>, 5> names{
        {{ck, "ck"}, {claim, "claim"}, {stored, "stored"}, {sweep, "sweep"}, {house, "house"}}};
    static constexpr auto& aliases = no_aliases<catalog::RuleSet>;
};

template <>
struct EnumTable<catalog::MaskVocabulary> {
    using enum catalog::MaskVocabulary;
    static constexpr std::array<EnumName<catalog::MaskVocabulary>, 2> names{
        {{simplified, "simplified"}, {generic, "generic"}}};
    static constexpr auto& aliases = no_aliases<catalog::MaskVocabulary>;
};

template <>
struct EnumTable<catalog::ProfileId> {
    using enum catalog::ProfileId;
    static constexpr std::array<EnumName<catalog::ProfileId>, 19> names{
        {{ck_default, "ck_default"},
         {ck_extended, "ck_extended"},
         {flash_fwd, "flash_fwd"},
         {flash_bwd, "flash_bwd"},
         {pytorch, "pytorch"},
         {aiter_batch, "aiter_batch"},
         {aiter_group, "aiter_group"},
         {aiter_bwd_batch, "aiter_bwd_batch"},
         {aiter_bwd_group, "aiter_bwd_group"},
         {aiter_cpp, "aiter_cpp"},
         {transformer_engine, "transformer_engine"},
         {fp32_all, "fp32_all"},
         {fp32_min, "fp32_min"},
         {fp8_test, "fp8_test"},
         {all, "all"},
         {flash, "flash"},
         {aiter, "aiter"},
         {fp32, "fp32"},
         {fp8, "fp8"}}};
    static constexpr auto& aliases = no_aliases<catalog::ProfileId>;
};

} // namespace fmha
