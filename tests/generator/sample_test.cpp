// A covering sample covers.

#include "kernels/generator/sample.hpp"
#include "tests/generator/catalogue.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace fmha::generator {
namespace {

/// Every value of every field that a sample is promised to have, and every pair of them.
std::set<std::string> values_and_pairs(std::span<const KernelConfig> kernels) {
    std::set<std::string> found;
    for (const KernelConfig& config : kernels) {
        std::vector<std::string> values;
        each_leaf(config.signature, [&](const std::string& path, const auto& leaf) {
            if (!path.starts_with("hdim")) values.push_back(path + "=" + field_text(leaf));
        });
        for (std::size_t i = 0; i < values.size(); ++i)
            for (std::size_t j = i; j < values.size(); ++j) found.insert(values[i] + " " + values[j]);
        found.insert(field_text(config.signature.data_type) + std::to_string(config.signature.hdim_q) + "x" +
                     std::to_string(config.signature.hdim_v) + identifier(config.algorithm.tile) +
                     field_text(config.algorithm.pipeline) + field_text(config.signature.v_layout));
    }
    return found;
}

std::vector<KernelConfig> chosen(std::span<const KernelConfig> list, std::optional<std::size_t> limit = {}) {
    std::vector<KernelConfig> kernels;
    for (const std::size_t index : covering_sample(list, limit)) kernels.push_back(list[index]);
    return kernels;
}

TEST(CoveringSample, HasEveryBodyAndEveryPairOfFeatures) {
    for (const char* arch : {"gfx90a", "gfx950", "gfx1201", "sm_90"}) {
        const auto list = test::house_fwd(arch);
        const auto sample = chosen(list);
        EXPECT_LT(sample.size(), list.size() / 10) << arch;
        EXPECT_EQ(values_and_pairs(sample), values_and_pairs(list)) << arch;
    }
}

TEST(CoveringSample, BeginsWithWhatCoversMost) {
    const auto list = test::house_fwd("gfx942");
    const auto ten = chosen(list, 10);
    ASSERT_EQ(ten.size(), 10U);
    std::map<DataType, int> types;
    for (const KernelConfig& config : ten) ++types[config.signature.data_type];
    EXPECT_GE(types.size(), 5U) << "ten kernels that cover much are not of one kind";
}

TEST(CoveringSample, OfNothingIsNothing) {
    EXPECT_TRUE(covering_sample({}).empty());
    EXPECT_TRUE(sample_of_each_family({}).empty());
}

/// The five families over a cache and backward's stages have few kernels beside forward's thousands.
TEST(CoveringSample, TakesKernelsOfEveryFamilyThatIsListed) {
    for (const auto& [arch, families] : {std::pair{"gfx942", 9U}, std::pair{"gfx1201", 8U}}) {
        const auto list = catalog::test::working_list(arch);
        std::map<KernelFamily, std::size_t> count;
        const auto sample = sample_of_each_family(list, 2);
        for (const std::size_t index : sample) ++count[list[index].signature.family];
        EXPECT_EQ(count.size(), families) << arch;
        for (const auto& [family, kernels] : count) EXPECT_EQ(kernels, 2U) << arch << to_string(family);
        EXPECT_TRUE(std::ranges::is_sorted(sample));
    }
}

TEST(CoveringSample, OfOneFamilyIsThatOfTheList) {
    const auto list = test::house_fwd("gfx1201");
    EXPECT_EQ(sample_of_each_family(list, 7), covering_sample(list, 7));
}

} // namespace
} // namespace fmha::generator
