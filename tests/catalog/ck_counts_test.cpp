// Counts of rule set ck that follow by hand from its tables: products of the axes, times pads, tiles and modes.

#include "dispatcher/types/error.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <gmock/gmock.h>

#include <array>

namespace fmha::catalog::test {
namespace {

/// fwd, splitkv, combine, pagedkv, appendkv, batch_prefill, dot_do_o, dq_dk_dv, convert_dq.
using Counts = std::array<int, 9>;

Counts counts(const Request& r) {
    static const arch::ArchSet archs = arch::ArchSet::built_in();
    constexpr std::array<std::size_t, 9> column{0, 3, 1, 2, 4, 5, 6, 7, 8}; // by value of KernelFamily
    Counts result{};
    enumerate(archs, r, [&](const KernelConfig& config) {
        ++result[column[static_cast<std::size_t>(config.signature.family)]];
    });
    return result;
}

Counts counts(std::vector<ArchName> targets, std::string_view profile) {
    return counts(request(RuleSet::ck, std::move(targets), profile));
}

TEST(CkCounts, EveryArchitecture) {
    EXPECT_EQ(counts({"gfx90a"}, "0"), (Counts{7208, 1968, 138, 168, 99, 4848, 60, 6720, 120}));
    EXPECT_EQ(counts({"gfx942"}, "0"), (Counts{7208, 1968, 138, 168, 99, 4848, 60, 6720, 120}));
    EXPECT_EQ(counts({"gfx950"}, "0"), (Counts{7464, 1968, 138, 168, 99, 4848, 60, 8064, 120}));
    EXPECT_EQ(counts({"gfx1100"}, "0"), (Counts{5888, 1536, 138, 96, 96, 0, 48, 5376, 96}));
    EXPECT_EQ(counts({"gfx1201"}, "0"), (Counts{5586, 1584, 138, 168, 99, 0, 48, 5376, 96}));
}

TEST(CkCounts, EveryProfileOnGfx950) {
    const Counts whole{7464, 1968, 138, 168, 99, 4848, 60, 8064, 120};
    for (const char* number : {"0", "150", "250", "500", "999"}) EXPECT_EQ(counts({"gfx950"}, number), whole);
    EXPECT_EQ(counts({"gfx950"}, "1"), (Counts{10280, 1968, 138, 168, 99, 4848, 60, 8064, 120}));
    EXPECT_EQ(counts({"gfx950"}, "2"), (Counts{476, 480, 138, 36, 96, 3456, 60, 1408, 120}));
    EXPECT_EQ(counts({"gfx950"}, "3"), (Counts{1392, 1968, 138, 36, 99, 3456, 60, 1056, 60}));
    EXPECT_EQ(counts({"gfx950"}, "4"), (Counts{1904, 0, 138, 36, 96, 3456, 60, 1056, 60}));
    EXPECT_EQ(counts({"gfx950"}, "100"), (Counts{4776, 1968, 138, 64, 99, 0, 60, 8064, 120}));
    EXPECT_EQ(counts({"gfx950"}, "200"), (Counts{2424, 640, 40, 32, 99, 4848, 60, 8064, 120}));
    EXPECT_EQ(counts({"gfx950"}, "300"), (Counts{7464, 1968, 138, 168, 99, 4848, 40, 2752, 80}));
    EXPECT_EQ(counts({"gfx950"}, "400"), (Counts{7464, 1968, 138, 168, 99, 4848, 20, 2624, 40}));
    EXPECT_EQ(counts({"gfx950"}, "600"), (Counts{7200, 1920, 120, 96, 99, 4608, 60, 8064, 120}));
    EXPECT_EQ(counts({"gfx950"}, "700"), (Counts{684, 0, 138, 0, 99, 0, 60, 5376, 120}));
    EXPECT_EQ(counts({"gfx950"}, "800"), (Counts{1728, 0, 0, 0, 0, 0, 18, 864, 36}));
    EXPECT_EQ(counts({"gfx950"}, "801"), (Counts{24, 0, 0, 0, 0, 0, 8, 6, 8}));
    EXPECT_EQ(counts({"gfx950"}, "888"), (Counts{232, 1968, 138, 168, 99, 4848, 60, 8064, 120}));
}

TEST(CkCounts, GenericMasks) {
    Request r = request(RuleSet::ck, {"gfx950"});
    r.masks = MaskVocabulary::generic;
    EXPECT_EQ(counts(r), (Counts{11188, 2952, 138, 252, 99, 8080, 60, 12000, 120}));
    r.profile = parse_profile("801"); // its mask word exists in the simplified vocabulary only
    EXPECT_EQ(counts(r), Counts{});
}

TEST(CkCounts, HeadDimensionsOnly) {
    Request r = request(RuleSet::ck, {"gfx950"});
    r.optdim = {128};
    EXPECT_EQ(counts(r), (Counts{1816, 408, 30, 120, 25, 3192, 12, 2208, 24}));
    r.optdim = {32};
    EXPECT_EQ(counts(r), (Counts{768, 384, 24, 0, 24, 0, 12, 1344, 24}));
    r.optdim = {32, 64};
    EXPECT_EQ(counts(r), (Counts{1704, 792, 54, 24, 49, 0, 24, 3168, 48}));
    r.optdim = {160};
    EXPECT_EQ(counts(r), Counts{});
    r.optdim = {-1};
    EXPECT_EQ(counts(r), counts({"gfx950"}, "0"));
    r.optdim = {-1, 32}; // -1 means "all" only when it stands alone
    EXPECT_EQ(counts(r)[0], 768);
}

TEST(CkCounts, SeveralTargets) {
    EXPECT_EQ(counts({"gfx942", "gfx950"}, "0")[0], 7464 + 7208);
    EXPECT_EQ(counts({"gfx90a", "gfx942"}, "0"), counts({"gfx942"}, "0")) << "one group, listed once";
    EXPECT_EQ(counts({"gfx942", "gfx1100"}, "0")[5], 0) << "a target outside gfx9 empties batch prefill";
}

TEST(CkCounts, TargetsWithoutAFileFollowTheirPrefix) {
    EXPECT_EQ(counts({"gfx1151"}, "0")[0], 4864);
    EXPECT_EQ(counts({"gfx908"}, "0"), counts({"gfx942"}, "0"));
    EXPECT_THAT([] { counts({"gfx1030"}, "0"); },
                testing::ThrowsMessage<InputError>(
                    testing::AllOf(testing::HasSubstr("\"gfx1030\""), testing::HasSubstr("gfx11"))));
}

TEST(CkCounts, MaskVocabularyAndPaddingOfOnePoint) {
    // fp16 on gfx9, one ordinary pair: (cap, bias) 4 x mask, lse, dropout, skip, sink 32 = 128 points; two entries in
    // batch, one in group mode.
    Request r = request(RuleSet::ck, {"gfx942"});
    r.families = only({KernelFamily::fwd});
    r.optdim = {32};
    EXPECT_EQ(counts(r)[0], 2 * 384);
}

} // namespace
} // namespace fmha::catalog::test
