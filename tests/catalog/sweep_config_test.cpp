// Sweep configuration files: their restrictions, and that nothing in them is silently ignored.

#include "tests/catalog/audit_helpers.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/support/sentence_of.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fmha::catalog::test {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text, SweepUse use = SweepUse::sweep) {
    return fmha::test::sentence_of<InputError>([&] { parse_sweep_config(text, "x.json", use); });
}

std::size_t count_of(RuleSet rules, std::string_view text, bool exhaustive = false,
                     std::string_view arch = "gfx950") {
    Request request = request_for(rules, arch);
    request.exhaustive = exhaustive;
    request.sweep = parse_sweep_config(text, "x.json",
                                       rules != RuleSet::sweep ? SweepUse::hand_kept
                                       : exhaustive            ? SweepUse::exhaustive
                                                               : SweepUse::sweep);
    return count(request);
}

struct Shipped {
    const char* file;
    std::size_t sweep, stored, claim;
};

class ShippedConfigs : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedConfigs, CountOnGfx950) {
    const Shipped& shipped = GetParam();
    const std::string path = std::string(FMHA_SWEEP_CONFIGS "/") + shipped.file + ".json";
    for (const auto& [rules, expected] :
         {std::pair(RuleSet::sweep, shipped.sweep), std::pair(RuleSet::stored, shipped.stored),
          std::pair(RuleSet::claim, shipped.claim)}) {
        Request request = request_for(rules, "gfx950");
        request.sweep =
            read_sweep_config(path, rules == RuleSet::sweep ? SweepUse::sweep : SweepUse::hand_kept);
        EXPECT_EQ(count(request), expected) << to_string(rules);
    }
}

INSTANTIATE_TEST_SUITE_P(
    SweepConfig, ShippedConfigs,
    testing::Values(Shipped{"receipt0_fwd", 864300, 14452, 11980}, Shipped{"fwd", 236800, 4352, 3712},
                    Shipped{"fwd_ci", 1860, 32, 32}, Shipped{"bwd", 12192, 12192, 12192},
                    Shipped{"splitkv", 620010, 3090, 3090}, Shipped{"pagedkv", 245952, 252, 252},
                    Shipped{"appendkv", 220, 99, 99}, Shipped{"batch_prefill", 1055120, 2964, 5928}),
    [](const auto& test) { return std::string(test.param.file); });

/// The kernels of the working list that a configuration leaves.
std::vector<KernelConfig> house_of(std::string_view arch, std::string_view text) {
    Request request = request_for(RuleSet::house, arch);
    request.sweep = parse_sweep_config(text, "x.json", sweep_use(RuleSet::house, false));
    return list(arch::ArchSet::built_in(), request);
}

TEST(SweepConfig, KeepsOfHouseTheKernelsThatComputeWhatItAsksFor) {
    const auto text = [](std::string_view more) {
        return fmt::format(R"({{"variant": "fwd", "trait_config": {{"data_type": {{"values": ["fp16"]}},
            "pipeline": {{"values": ["qr_async"]}}, "mask": {{"values": ["no"]}}, "mode": {{"values": ["batch"]}}, {}
            "lse": {{"values": [false]}}, "dropout": {{"values": [false]}}}}}})",
                           more);
    };
    const auto plain = house_of("sm_90", text(R"("sink": {"values": [false]},)"));
    ASSERT_FALSE(plain.empty());
    std::size_t with_sinks = 0, warp_specialised = 0;
    for (const KernelConfig& kernel : plain) {
        const Signature& s = kernel.signature;
        EXPECT_EQ(s.family, KernelFamily::fwd);
        EXPECT_EQ(s.data_type, DataType::fp16);
        EXPECT_EQ(s.mode, Mode::batch);
        EXPECT_EQ(s.mask, MaskClass::none);
        EXPECT_FALSE(s.has_lse || s.has_dropout);
        EXPECT_THAT(kernel.algorithm.pipeline, testing::AnyOf(Pipeline::qr_async, Pipeline::ws));
        with_sinks += s.has_sink ? 1U : 0U;
        warp_specialised += kernel.algorithm.pipeline == Pipeline::ws ? 1U : 0U;
    }
    // These compute without sinks, too.
    EXPECT_GT(with_sinks, 0U);
    EXPECT_GT(warp_specialised, 0U);
    for (const KernelConfig& kernel : house_of("sm_90", text(R"("sink": {"values": [true]},)")))
        EXPECT_TRUE(kernel.signature.has_sink);
    EXPECT_TRUE(house_of("gfx1100", text("")).empty()); // it has no asynchronous copies
    // Windows serve causal problems in backward, and the other stages have no masks.
    std::set<KernelFamily> stages;
    for (const KernelConfig& kernel :
         house_of("sm_90", R"({"variant": "bwd", "trait_config": {"mask": {"values": ["top_left"]}}})")) {
        stages.insert(kernel.signature.family);
        if (kernel.signature.family == KernelFamily::bwd_dq_dk_dv) {
            EXPECT_EQ(kernel.signature.mask, MaskClass::generic);
        }
    }
    EXPECT_EQ(stages.size(), 3U);
}

TEST(SweepConfig, ExhaustiveModeIsNotForHouse) {
    Request request = request_for(RuleSet::house, "sm_90");
    request.exhaustive = true;
    EXPECT_THROW(list(arch::ArchSet::built_in(), request), InputError);
}

TEST(SweepConfig, EmptyDataTypeListMeansAllInSweepAndNoneInTheHandKeptSets) {
    constexpr auto text = R"({"variant": "appendkv", "trait_config": {"data_type": {"values": []}}})";
    EXPECT_EQ(count_of(RuleSet::sweep, text), 224U);
    EXPECT_EQ(count_of(RuleSet::stored, text), 0U);
    EXPECT_EQ(count_of(RuleSet::claim, text), 0U);
}

TEST(SweepConfig, EmptyListOfAnotherKeyKeepsNothingOrTheDefaultOfExhaustiveMode) {
    constexpr auto text =
        R"({"variant": "fwd", "trait_config": {"data_type": {"values": ["fp8fp32"]}, "mask": {"values": []}}})";
    EXPECT_EQ(count_of(RuleSet::sweep, text), 0U);
    constexpr auto without = R"({"variant": "fwd", "trait_config": {"data_type": {"values": ["fp8fp32"]}}})";
    EXPECT_EQ(count_of(RuleSet::sweep, text, true), count_of(RuleSet::sweep, without, true));
    EXPECT_EQ(count_of(RuleSet::sweep, without), 324U);
}

TEST(SweepConfig, DataTypesWithoutKernelsAreAccepted) {
    EXPECT_EQ(
        count_of(RuleSet::sweep, R"({"trait_config": {"data_type": {"values": ["fp8fp16", "mxfp8"]}}})"), 0U);
}

TEST(SweepConfig, BlockPerCuRepeatsForwardKernels) {
    const auto text = [](std::string_view values) {
        return R"({"trait_config": {"data_type": {"values": ["fp8fp32"]}, "block_per_cu": {"values": )" +
               std::string(values) + "}}}";
    };
    EXPECT_EQ(count_of(RuleSet::sweep, text("2")), 324U);
    EXPECT_EQ(count_of(RuleSet::sweep, text("[-1, 1, 2, 1]")), 3U * 324U);
    EXPECT_EQ(count_of(RuleSet::sweep, text("[]")), 0U);
    // An empty list is the only way to upstream's intended default of exhaustive mode, -1, 1 and 2.
    EXPECT_EQ(count_of(RuleSet::sweep, text("[]"), true), 3 * count_of(RuleSet::sweep, text("[-1]"), true));
}

TEST(SweepConfig, ExtraBackwardTilesEscapeMaskAndBiasListsInTheHandKeptSets) {
    constexpr auto text =
        R"({"variant": "bwd", "trait_config": {"mask": {"values": ["no"]}, "bias": {"values": ["no", "alibi"]}}})";
    // Main tiles keep 1 mask x 2 biases x 3 dropouts x 2 x 7 pads = 84 of 504 in 5 x 2 (head, mode).
    const std::size_t others = 60 + 132, main = 2 * 5 * 2 * 84;
    EXPECT_EQ(count_of(RuleSet::stored, text), others + main + 1920);
    // Extra tiles: 2 of 12 (mask, bias, dbias) points, that is a sixth.
    EXPECT_EQ(count_of(RuleSet::sweep, text), others + main + 1920 / 6);
}

TEST(SweepConfig, ListsOfExhaustiveModeAreSorted) {
    constexpr auto text = R"({"variant": "pagedkv", "trait_config": {"data_type": {"values": ["fp8fp32"]},
        "mode": {"values": ["group", "batch"]}, "mask": {"values": ["top_left", "generic", "bottom_right"]}}})";
    Request request = request_for(RuleSet::sweep, "gfx950");
    request.exhaustive = true;
    request.sweep = parse_sweep_config(text, "x.json", SweepUse::exhaustive);
    const auto list = names(request);
    ASSERT_FALSE(list.empty());
    EXPECT_THAT(list[0], HasSubstr("_batch_"));
    EXPECT_THAT(list[0], HasSubstr("_mask=bottom_right_"));
    EXPECT_THAT(list[3], HasSubstr("_mask=generic_"));
    EXPECT_THAT(list[6], HasSubstr("_mask=top_left_"));
    EXPECT_THAT(list[9], HasSubstr("_group_"));
}

TEST(SweepConfig, DeadTileConfigIsRefusedAndSaysSo) {
    const std::string said = refusal(R"({"variant": "fwd", "tile_config": {"tile_m0": {"values": [128]}}})");
    EXPECT_THAT(said, HasSubstr("x.json: tile_config: nothing reads this key"));
}

TEST(SweepConfig, KeysThatNothingReadsAreRefused) {
    EXPECT_THAT(refusal(R"({"variant": "fwd", "filter": "1"})"), HasSubstr("x.json: filter: unknown key"));
    EXPECT_THAT(refusal(R"({"trait_config": {"hdim": {"values": [128]}}})"),
                HasSubstr("x.json: trait_config.hdim: unknown key; allowed: \"data_type\", \"mode\""));
    EXPECT_THAT(
        refusal(R"({"variant": "pagedkv", "trait_config": {"pipeline": {"values": ["qr_async"]}}})"),
        HasSubstr(
            "trait_config.pipeline: nothing reads this key for variant pagedkv; allowed: \"data_type\", "
            "\"mode\", \"mask\", \"bias\""));
    EXPECT_THAT(refusal(R"({"variant": "appendkv", "trait_config": {"mode": {"values": ["batch"]}}})"),
                HasSubstr("trait_config.mode: nothing reads this key for variant appendkv"));
    EXPECT_THAT(
        refusal(R"({"variant": "splitkv", "trait_config": {"paged_kv": {"values": [true]}}})",
                SweepUse::exhaustive),
        HasSubstr("trait_config.paged_kv: nothing reads this key for variant splitkv in exhaustive mode"));
    EXPECT_THAT(
        refusal(R"({"variant": "fwd", "trait_config": {"block_per_cu": {"values": 1}}})",
                SweepUse::hand_kept),
        HasSubstr("trait_config.block_per_cu: nothing reads this key for variant fwd of this rule set"));
    EXPECT_THAT(refusal(R"({"trait_config": {"mask": {"values": ["no"], "default": "no"}}})"),
                HasSubstr("trait_config.mask.default: unknown key"));
}

TEST(SweepConfig, WrongValuesNameFileKeyValueAndWhatIsAllowed) {
    EXPECT_THAT(
        refusal(R"({"trait_config": {"mask": {"values": ["no", "causal"]}}})"),
        HasSubstr("x.json: trait_config.mask.values[1]: expected one of \"no\", \"top_left\", \"generic\", "
                  "\"bottom_right\", got \"causal\""));
    EXPECT_THAT(refusal(R"({"trait_config": {"lse": {"values": ["t", "true"]}}})"),
                HasSubstr("trait_config.lse.values[1]: expected true or false, or one of \"t\", \"yes\", "
                          "\"1\", \"f\", \"no\", \"0\", got \"true\""));
    EXPECT_THAT(refusal(R"({"trait_config": {"data_type": {"values": ["half"]}}})"),
                HasSubstr("got \"half\""));
    EXPECT_THAT(refusal(R"({"trait_config": {"data_type": {"values": "fp16"}}})"),
                HasSubstr("expected a list"));
    EXPECT_THAT(refusal(R"({"trait_config": {"data_type": ["fp16"]}})"),
                HasSubstr("expected {\"values\": [...]}"));
    EXPECT_THAT(
        refusal(R"({"trait_config": {"block_per_cu": {"values": [0]}}})"),
        HasSubstr("trait_config.block_per_cu.values[0]: expected -1 or an integer from 1 to 1024, got 0"));
    EXPECT_THAT(refusal(R"({"trait_config": {"block_per_cu": {"values": "1"}}})"), HasSubstr("got \"1\""));
    EXPECT_THAT(refusal(R"({"variant": "prefill"})"), HasSubstr("x.json: variant: expected one of \"fwd\""));
    EXPECT_THAT(refusal(R"({"variant": 3})"), HasSubstr("got 3"));
    EXPECT_THAT(refusal(R"([])"), HasSubstr("x.json: expected an object"));
    EXPECT_THAT(refusal(R"({"variant": "fwd", "variant": "bwd"})"), HasSubstr("appears twice"));
    EXPECT_THAT(refusal(R"({"variant": )"), HasSubstr("x.json: not valid JSON"));
    EXPECT_THAT(refusal(R"({"variant": 1e400})"), HasSubstr("x.json: not valid JSON")); // beyond double
    EXPECT_THROW(read_sweep_config("/nowhere/x.json", SweepUse::sweep), InputError);
}

TEST(SweepConfig, BooleansHaveTheWordsOfUpstreamsFiles) {
    const auto lse = [](std::string_view values) {
        return parse_sweep_config(fmt::format(R"({{"trait_config": {{"lse": {{"values": [{}]}}}}}})", values),
                                  "x.json", SweepUse::sweep)
            .allow.lse;
    };
    for (const std::string_view yes : {"true", R"("t")", R"("yes")", R"("1")"})
        EXPECT_EQ(lse(yes), 2U) << yes;
    for (const std::string_view no : {"false", R"("f")", R"("no")", R"("0")"}) EXPECT_EQ(lse(no), 1U) << no;
    EXPECT_EQ(lse(R"("1", "0")"), 3U);
}

TEST(SweepConfig, VariantIsRequiredByTheHandKeptSetsOnly) {
    EXPECT_THAT(refusal("{}", SweepUse::hand_kept), HasSubstr("x.json: variant: this rule set needs one of"));
    EXPECT_EQ(parse_sweep_config("{}", "x.json", SweepUse::sweep).variant, SweepVariant::fwd);
}

} // namespace
} // namespace fmha::catalog::test
