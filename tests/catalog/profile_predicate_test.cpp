// Upstream's predicates on finished kernels, counted over the whole sweep of gfx950.

#include "tests/catalog/audit_helpers.hpp"

#include "kernels/catalog/rules/profile_predicate.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace fmha::catalog::test {
namespace {

using enum ProfileId;

TEST(ProfilePredicate, KernelsOfTheSweepThatEachKeeps) {
    // fwd, splitkv, pagedkv, appendkv, batch_prefill, bwd
    const std::map<ProfileId, std::array<std::size_t, 6>> expected{
        {all, {901020, 632028, 263952, 224, 1055120, 12192}},
        {ck_default, {901020, 632028, 263952, 224, 1055120, 12192}},
        {flash_fwd, {287568, 455904, 170964, 216, 0, 0}},
        {flash_bwd, {0, 0, 0, 0, 0, 12192}},
        {pytorch, {127896, 152088, 56988, 216, 506560, 9192}},
        {aiter_batch, {562080, 405328, 151968, 216, 0, 6224}},
        {aiter_group, {292968, 202664, 75984, 0, 1055120, 5968}},
        {aiter_cpp, {850584, 607992, 227952, 216, 1036304, 12192}},
        {aiter_bwd_batch, {0, 0, 0, 0, 0, 6224}},
        {aiter_bwd_group, {0, 0, 0, 0, 0, 5968}},
        {fp8_test, {5292, 0, 0, 0, 23184, 0}},
        {fp32_all, {0, 0, 0, 0, 0, 0}},
        {fp32_min, {0, 0, 0, 0, 0, 0}}};
    std::map<ProfileId, std::array<std::size_t, 6>> found;
    for (const auto& [profile, unused] : expected) found[profile] = {};
    const auto variant = [](KernelFamily family) -> std::size_t {
        switch (traits_of(family).api) {
        case ApiFamily::fwd:
            return 0;
        case ApiFamily::fwd_splitkv:
            return 1;
        case ApiFamily::fwd_pagedkv:
            return 2;
        case ApiFamily::fwd_appendkv:
            return 3;
        case ApiFamily::batch_prefill:
            return 4;
        case ApiFamily::bwd:
            return 5;
        }
        return 0;
    };
    enumerate(arch::ArchSet::built_in(), request_for(RuleSet::sweep, "gfx950"),
              [&](const KernelConfig& config) {
                  const std::size_t index = variant(config.signature.family);
                  for (auto& [profile, counts] : found)
                      counts[index] += audit::profile_keeps(profile, config);
              });
    EXPECT_EQ(found, expected);
}

TEST(ProfilePredicate, GroupsUniteAndUnknownProfilesAreRefused) {
    KernelConfig config;
    config.signature.family = KernelFamily::bwd_dot_do_o;
    EXPECT_TRUE(audit::profile_keeps(flash, config));
    EXPECT_FALSE(audit::profile_keeps(flash_fwd, config));
    EXPECT_FALSE(audit::profile_keeps(fp8, config));
    EXPECT_THROW(audit::profile_keeps(transformer_engine, config), InputError);
}

} // namespace
} // namespace fmha::catalog::test
