#include "dispatcher/registry/registry.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>

namespace fmha {
namespace {

using testing::fwd_kernel;
using ::testing::HasSubstr;
using testing::instance;
using testing::kernel_of;

std::filesystem::path scratch_file(const std::string& name) {
    return std::filesystem::path(::testing::TempDir()) / ("fmha_registry_" + name);
}

std::string content(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Registry, RejectsNullInstances) {
    Registry registry;
    EXPECT_THROW(registry.add(std::shared_ptr<const KernelInstance>()), InputError);
}

TEST(Registry, SameConfigurationFollowsPriorityThenName) {
    Registry registry;
    const KernelConfig config = fwd_kernel();
    const auto name = [&] { return registry.name_of(*registry.lookup(identifier(config))); };
    registry.add(config);
    EXPECT_EQ(registry.lookup(identifier(config))->instance, nullptr);
    registry.add(instance(config, "first")); // an instance joins a bare configuration
    EXPECT_EQ(name(), "first");
    registry.add(config); // and is not displaced by one
    EXPECT_EQ(name(), "first");
    EXPECT_NO_THROW(registry.add(instance(config, "first")));
    EXPECT_THROW(registry.add(instance(config, "second")), KeyConflict);
    EXPECT_EQ(name(), "first");
    registry.add(instance(config, "low"), Priority::low);
    EXPECT_EQ(name(), "first");
    registry.add(instance(config, "high"), Priority::high);
    EXPECT_EQ(name(), "high");
    EXPECT_EQ(registry.size(), 1U);
}

TEST(Registry, ABatchIsTakenWholeOrNotAtAll) {
    Registry registry;
    std::vector<KernelEntry> batch;
    batch.push_back({fwd_kernel(64, 64), nullptr, Priority::normal});
    batch.push_back({fwd_kernel(), instance(fwd_kernel(), "a"), Priority::normal});
    batch.push_back({fwd_kernel(), instance(fwd_kernel(), "b"), Priority::normal});
    EXPECT_THROW(registry.add(batch), KeyConflict);
    EXPECT_TRUE(registry.empty());
    batch[2].priority = Priority::high;
    registry.add(batch);
    EXPECT_EQ(registry.size(), 2U);
    EXPECT_EQ(registry.name_of(*registry.lookup(identifier(fwd_kernel()))), "b");
    KernelConfig unknown = fwd_kernel(256, 256);
    unknown.algorithm.constraint = "on_tuesdays";
    EXPECT_THROW(registry.add(unknown), DeclarationError);
    EXPECT_EQ(registry.size(), 2U);
}

TEST(Registry, IdentifiersAreInjectiveAndParseBack) {
    const KernelConfig base = fwd_kernel();
    std::set<std::string> seen{identifier(base)};
    KernelConfig changed = base;
    each_leaf(changed, [&](const std::string& path, auto& leaf) {
        const auto kept = leaf;
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (std::same_as<Leaf, bool>)
            leaf = !leaf;
        else if constexpr (std::is_enum_v<Leaf>)
            leaf = static_cast<Leaf>(static_cast<int>(leaf) == 0 ? 1 : 0);
        else if constexpr (std::integral<Leaf>)
            leaf = static_cast<Leaf>(leaf + 1);
        else
            leaf = Leaf(std::string_view("other"));
        EXPECT_TRUE(seen.insert(identifier(changed)).second) << path;
        EXPECT_EQ(parse_identifier<KernelConfig>(identifier(changed)), changed) << path;
        EXPECT_NE(hash_value(changed), hash_value(base)) << path;
        leaf = kept;
    });
    EXPECT_EQ(hash_value(changed), hash_value(base));
    // Every one of them is a kernel of its own in a registry.
    Registry registry;
    for (const std::string& one : seen) {
        KernelConfig config = *parse_identifier<KernelConfig>(one);
        config.algorithm.constraint = "";
        config.signature.hdim_q = std::max<std::int64_t>(config.signature.hdim_q, 0);
        registry.add(config);
    }
    EXPECT_EQ(registry.size(), seen.size() - 1); // the constraint was one of the fields
}

// A value that is stored or compared by its text has one text.
TEST(Identifiers, HaveOneSpellingOfANumber) {
    EXPECT_EQ(parse_identifier<KernelConfig>("signature.hdim_q=5")->signature.hdim_q, 5);
    EXPECT_EQ(parse_identifier<KernelConfig>("signature.hdim_q=-5")->signature.hdim_q, -5);
    for (const char* number : {" 5", "+5", "05", "-0", "5 ", "\t5", "0x5", "5.0", "", "9223372036854775808"})
        EXPECT_EQ(parse_identifier<KernelConfig>(std::string("signature.hdim_q=") + number), std::nullopt)
            << number;
    EXPECT_EQ(parse_identifier<KernelConfig>("algorithm.tile.m0=32768"), std::nullopt) << "of 16 bits";
}

TEST(Identifiers, NameEachFieldOnceAndNoOthers) {
    EXPECT_EQ(parse_identifier<KernelConfig>(""), KernelConfig());
    for (const char* wrong :
         {"signature.hdim_q=5;signature.hdim_q=6", "signature.hdim_q=5;signature.hdim_q=5",
          "signature.hdim=5", "signature.hdim_q=5;signature=6", "signature.hdim_q", "=5", ";",
          "signature.hdim_q=5;;signature.hdim_v=5", "signature.hdim_v=x;signature.hdim_q=5"})
        EXPECT_EQ(parse_identifier<KernelConfig>(wrong), std::nullopt) << wrong;
}

TEST(Registry, LookupOfUnknownOrUnreadableIdentifiersIsEmpty) {
    Registry registry;
    registry.add(fwd_kernel());
    EXPECT_FALSE(registry.lookup("nonsense"));
    EXPECT_FALSE(registry.lookup(identifier(fwd_kernel(64, 64))));
    EXPECT_TRUE(registry.lookup(identifier(fwd_kernel())));
}

TEST(Registry, ListsByPriorityRankDimensionsTileAndName) {
    Registry registry;
    KernelConfig ranked = fwd_kernel(64, 64);
    ranked.algorithm.selection_rank = 1;
    registry.add(ranked);
    registry.add(fwd_kernel(128, 128, 128));
    registry.add(fwd_kernel(128, 128, 64));
    registry.add(fwd_kernel(64, 64));
    registry.add(fwd_kernel(256, 256), Priority::high);
    std::vector<std::string> order;
    for (const KernelEntry& entry : registry.get_all())
        order.push_back(std::to_string(entry.config.signature.hdim_q) + "/" +
                        std::to_string(entry.config.algorithm.tile.m0));
    EXPECT_THAT(order, ::testing::ElementsAre("256/128", "64/128", "128/64", "128/128", "64/128"));
}

TEST(Registry, FiltersByArchitectureAndCountsWhatItDrops) {
    Registry registry;
    KernelConfig other = fwd_kernel(), any = fwd_kernel();
    other.arch = "gfx942";
    any.arch = "";
    for (const KernelConfig& kernel : {fwd_kernel(), other, any}) registry.add(kernel);
    EXPECT_EQ(registry.filter_by_arch("gfx950"), 1U);
    EXPECT_EQ(registry.size(), 2U);
    EXPECT_EQ(registry.filter([](const KernelEntry& entry) { return !entry.config.arch.empty(); }), 1U);
    EXPECT_EQ(registry.filter_by_arch("gfx950"), 0U);
    registry.clear();
    EXPECT_TRUE(registry.empty());
}

TEST(Registry, FiltersByProfileAndCountsWhatItDrops) {
    const auto filled = [] {
        auto registry = std::make_unique<Registry>();
        KernelConfig with_alibi = fwd_kernel(), single = fwd_kernel(),
                     backward = kernel_of(KernelFamily::bwd_dq_dk_dv);
        with_alibi.signature.bias = BiasType::alibi;
        single.signature.data_type = DataType::fp32;
        for (const KernelConfig& kernel : {fwd_kernel(), with_alibi, single, backward}) registry->add(kernel);
        return registry;
    };
    for (const auto& [profile, dropped] : {std::pair{"all", 0U}, std::pair{"pytorch", 2U}, std::pair{"4", 2U},
                                           std::pair{"flash_fwd", 2U}, std::pair{"fp32", 3U}}) {
        const auto registry = filled();
        EXPECT_EQ(registry->filter_by_profile(profile), dropped) << profile;
        EXPECT_EQ(registry->size(), 4U - dropped) << profile;
    }
    try {
        filled()->filter_by_profile("nobody");
        FAIL();
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("profile \"nobody\" is not known; allowed: a number 0 … 999, ck_default"));
    }
}

TEST(Registry, MergesUnderTheSameRuleAndWithItselfChangesNothing) {
    Registry registry, other;
    registry.add(instance(fwd_kernel(), "mine"));
    other.add(instance(fwd_kernel(), "theirs"), Priority::high);
    other.add(fwd_kernel(64, 64));
    EXPECT_THROW(registry.merge_from(other, Priority::normal), KeyConflict);
    EXPECT_EQ(registry.size(), 1U);
    registry.merge_from(other, Priority::low);
    EXPECT_EQ(registry.size(), 2U);
    EXPECT_EQ(registry.name_of(*registry.lookup(identifier(fwd_kernel()))), "mine");
    registry.merge_from(other, Priority::high);
    EXPECT_EQ(registry.name_of(*registry.lookup(identifier(fwd_kernel()))), "theirs");
    registry.merge_from(registry, Priority::high);
    EXPECT_EQ(registry.size(), 2U);
}

TEST(Registry, SnapshotsDoNotChange) {
    Registry registry;
    registry.add(fwd_kernel());
    const auto before = registry.snapshot();
    for (int i = 1; i < 40; ++i) registry.add(fwd_kernel(8 * i, 8));
    registry.clear();
    EXPECT_EQ(before->size(), 1U);
    EXPECT_NE(before->find(fwd_kernel()), nullptr);
}

TEST(Registry, ManySingleRegistrationsStayFindable) {
    Registry registry;
    for (int i = 1; i <= 500; ++i) registry.add(fwd_kernel(8 * (i % 25 + 1), 8 * (i / 25 + 1)));
    const auto snapshot = registry.snapshot();
    EXPECT_LE(snapshot->segments().size(), 10U); // halving sizes
    for (int i = 1; i <= 500; ++i)
        EXPECT_NE(snapshot->find(fwd_kernel(8 * (i % 25 + 1), 8 * (i / 25 + 1))), nullptr);
}

TEST(RegistryExport, ParsesCountsAgreeAndOrderIsStable) {
    Registry registry("the \"quoted\" one\n");
    Registry shuffled("the \"quoted\" one\n");
    std::vector<KernelConfig> kernels;
    kernels.reserve(EnumTable<KernelFamily>::names.size());
    for (const auto& [family, name] : EnumTable<KernelFamily>::names) kernels.push_back(kernel_of(family));
    for (const KernelConfig& kernel : kernels) registry.add(kernel);
    std::reverse(kernels.begin(), kernels.end());
    for (const KernelConfig& kernel : kernels) shuffled.add(kernel);
    registry.add(instance(fwd_kernel(64, 64), "tab\there \\ \"q\" \x01"));
    shuffled.add(instance(fwd_kernel(64, 64), "tab\there \\ \"q\" \x01"));
    EXPECT_EQ(registry.export_json(), shuffled.export_json());
    const auto document = nlohmann::json::parse(registry.export_json());
    EXPECT_EQ(document["schema_version"], 1);
    EXPECT_EQ(document["metadata"]["registry_name"], "the \"quoted\" one\n");
    EXPECT_EQ(document["metadata"]["total_kernels"], 10);
    EXPECT_EQ(document["kernels"].size(), 10U);
    EXPECT_EQ(document["statistics"]["by_family"]["fwd"], 2);
    std::size_t total = 0;
    for (const auto& [pipeline, count] : document["statistics"]["by_pipeline"].items())
        total += count.get<std::size_t>();
    EXPECT_EQ(total, 10U);
    bool named = false;
    for (const auto& kernel : document["kernels"]) {
        const auto config = parse_identifier<KernelConfig>(kernel["identifier"].get<std::string>());
        ASSERT_TRUE(config);
        EXPECT_EQ(kernel["family"], to_string(config->signature.family));
        EXPECT_EQ(kernel["signature"]["hdim_q"], config->signature.hdim_q);
        EXPECT_EQ(kernel["algorithm"]["tile"]["m0"], config->algorithm.tile.m0);
        EXPECT_EQ(kernel["gfx_arch"], config->arch.str());
        named = named || kernel["name"] == "tab\there \\ \"q\" \x01";
    }
    EXPECT_TRUE(named);
}

TEST(RegistryExport, ReplacesTheFileAtomicallyAndLeavesNoTemporary) {
    const auto directory = scratch_file("dir");
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
    const auto file = directory / "registry.json";
    Registry registry;
    registry.auto_export(file);
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 0);
    registry.add(fwd_kernel());
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 1);
    registry.filter([](const KernelEntry&) { return true; });
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 1);
    registry.filter([](const KernelEntry&) { return false; });
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 0);
    registry.add(fwd_kernel());
    registry.clear();
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 0);
    registry.auto_export({});
    registry.add(fwd_kernel());
    EXPECT_EQ(nlohmann::json::parse(content(file))["metadata"]["total_kernels"], 0);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
    try {
        registry.export_json(directory);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("is a folder, not a file to write"));
    }
    std::filesystem::remove_all(directory);
}

} // namespace
} // namespace fmha
