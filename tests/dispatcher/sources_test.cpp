// Declared sets, a rule set of the catalogue and sweep configurations in one registry.
#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <set>

DECL_FMHA_KERNEL_SET(sources_own,
                     .add(fmha::SignatureDecl().dtype("bf16").hdim(128).mask("causal").lse(true),
                          fmha::AlgorithmDecl().tile({128, 128, 32, 0, 32, 0}).wave({4, 1, 1, 4, 1, 1}),
                          "gfx950"))

namespace fmha {
namespace {

catalog::Request request_for(catalog::RuleSet rules) {
    catalog::Request request;
    request.rules = rules;
    request.targets = {ArchName("gfx950")};
    return request;
}

catalog::Request sweep_request(const std::string& file) {
    catalog::Request request = request_for(catalog::RuleSet::sweep);
    request.sweep = catalog::read_sweep_config(FMHA_SOURCE_DIR "/cases/sweeps/" + file,
                                               catalog::sweep_use(catalog::RuleSet::sweep, false));
    return request;
}

class Sources : public ::testing::Test {
  protected:
    /// The different configurations of the three sources, collected without a registry.
    std::set<KernelConfig> all() const {
        std::set<KernelConfig> configs;
        for (const catalog::Request& request : {house_, sweep_})
            for (KernelConfig config : catalog::list(archs_, request)) {
                config.arch = "gfx950";
                configs.insert(config);
            }
        for (const KernelConfig& config : expand(set_, archs_).kernels) configs.insert(config);
        return configs;
    }

    const arch::ArchSet archs_ = arch::ArchSet::built_in();
    const catalog::Request house_ = request_for(catalog::RuleSet::house),
                           sweep_ = sweep_request("fwd_ci.json");
    const KernelSet set_ = declared_kernel_set("sources_own");
    Registry registry_;
};

TEST_F(Sources, FeedOneRegistryWhateverTheirOrder) {
    EXPECT_EQ(add_declared(registry_, archs_, set_), 1U);
    EXPECT_GT(add_catalogue(registry_, archs_, house_), 100U);
    const std::size_t before = registry_.size();
    EXPECT_GT(add_catalogue(registry_, archs_, sweep_), 0U);
    EXPECT_GT(registry_.size(), before);
    EXPECT_EQ(registry_.size(), all().size());

    Registry reversed;
    add_catalogue(reversed, archs_, sweep_);
    add_catalogue(reversed, archs_, house_);
    add_declared(reversed, archs_, set_);
    EXPECT_EQ(registry_.export_json(), reversed.export_json());

    // A problem is planned over all of them.
    const Dispatcher dispatcher(registry_, devices_of(archs_));
    EXPECT_TRUE(dispatcher.plan(testing::builder_for(ApiFamily::fwd).build()).valid());
}

TEST_F(Sources, ListedTwiceIsOneKernelAtTheHighestPriority) {
    add_catalogue(registry_, archs_, sweep_);
    add_declared(registry_, archs_, set_);
    const std::size_t size = registry_.size();
    add_catalogue(registry_, archs_, sweep_);
    add_declared(registry_, archs_, set_, Priority::low);
    EXPECT_EQ(registry_.size(), size);
    const std::string own = identifier(expand(set_, archs_).kernels.at(0));
    EXPECT_EQ(registry_.lookup(own)->priority, Priority::normal);
    add_declared(registry_, archs_, set_, Priority::high);
    EXPECT_EQ(registry_.size(), size);
    EXPECT_EQ(registry_.lookup(own)->priority, Priority::high);
}

TEST_F(Sources, AnInstanceIsKeptAndAnotherOneConflicts) {
    const KernelConfig own = expand(set_, archs_).kernels.at(0);
    registry_.add(testing::instance(own, "built"));
    add_declared(registry_, archs_, set_);
    EXPECT_EQ(registry_.size(), 1U);
    EXPECT_EQ(registry_.name_of(*registry_.lookup(identifier(own))), "built");
    add_catalogue(registry_, archs_, sweep_);
    const std::size_t size = registry_.size();
    EXPECT_THROW(registry_.add(testing::instance(own, "other")), KeyConflict);
    EXPECT_EQ(registry_.size(), size);
}

TEST_F(Sources, AConfigurationForAnotherRuleSetIsRefused) {
    catalog::Request request = sweep_;
    request.rules = catalog::RuleSet::ck;
    EXPECT_THROW(add_catalogue(registry_, archs_, request), InputError);
    EXPECT_TRUE(registry_.empty());
}

} // namespace
} // namespace fmha
