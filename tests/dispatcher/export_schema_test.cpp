// The exported registry against its schema: every written file passes, and every kind of damage is refused.
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/schema.hpp"
#include "tests/dispatcher/kernels.hpp"
#include "tests/support/sentence_of.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace fmha {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const json& schema() {
    static const json document =
        json::parse(std::ifstream(FMHA_SOURCE_DIR "/dispatcher/registry/export.schema.json"));
    return document;
}

std::string refusal(const json& document) {
    return fmha::test::sentence_of<InputError>(
        [&] { arch::check_schema("export", document.dump(), schema().dump()); });
}

json exported() {
    Registry registry("all families");
    for (const auto& [family, name] : EnumTable<KernelFamily>::names)
        registry.add(testing::kernel_of(family));
    registry.add(testing::instance(testing::fwd_kernel(64, 64), "built"), Priority::high);
    return json::parse(registry.export_json());
}

TEST(ExportSchema, AcceptsWhatIsExported) {
    EXPECT_EQ(refusal(exported()), "accepted");
    EXPECT_EQ(refusal(json::parse(Registry("empty").export_json())), "accepted");
    const auto archs = arch::ArchSet::built_in();
    const std::array names{ArchName("gfx950")};
    const auto whole = catalogue_registry(archs, catalog::RuleSet::house, names);
    // Kernels of every family; the validation of all of them takes half a minute.
    Registry some("some of the catalogue");
    std::size_t n = 0;
    for (const KernelEntry& kernel : whole->get_all())
        if (n++ % 16 == 0) some.add(kernel.config);
    EXPECT_GT(some.size(), 500U);
    EXPECT_EQ(refusal(json::parse(some.export_json())), "accepted");
}

TEST(ExportSchema, NamesEveryValueThatTheEnumerationsHave) {
    const auto same = [](const json& listed, const auto& names) {
        json ours = json::array();
        for (const auto& entry : names) ours.push_back(entry.name);
        EXPECT_EQ(listed["enum"], ours);
    };
    const json& parts = schema()["definitions"];
    const json &signature = parts["signature"]["properties"], &algorithm = parts["algorithm"]["properties"];
    same(parts["family"], EnumTable<KernelFamily>::names);
    same(parts["data_type"], EnumTable<DataType>::names);
    same(parts["pipeline"], EnumTable<Pipeline>::names);
    same(parts["kernel"]["properties"]["priority"], EnumTable<Priority>::names);
    same(signature["mode"], EnumTable<Mode>::names);
    same(signature["v_layout"], EnumTable<VLayout>::names);
    same(signature["mask"], EnumTable<MaskClass>::names);
    same(signature["bias"], EnumTable<BiasType>::names);
    same(signature["qscale"], EnumTable<QScale>::names);
    same(signature["rope"], EnumTable<Rope>::names);
    same(signature["kv_layout"], EnumTable<KvLayout>::names);
    same(signature["kv_lookup"], EnumTable<KvLookup>::names);
    same(algorithm["load_mode"], EnumTable<LoadMode>::names);
    same(algorithm["dropout_variant"], EnumTable<DropoutVariant>::names);
}

TEST(ExportSchema, RefusesDamage) {
    const auto damaged = [](const char* pointer, const json& value) {
        json document = exported();
        document[json::json_pointer(pointer)] = value;
        return refusal(document);
    };
    const auto without = [](const char* parent, const char* key) {
        json document = exported();
        document[json::json_pointer(parent)].erase(key);
        return refusal(document);
    };
    EXPECT_THAT(damaged("/schema_version", 2), HasSubstr("export#/schema_version"));
    EXPECT_THAT(damaged("/metadata/total_kernels", "ten"), HasSubstr("/metadata/total_kernels"));
    EXPECT_THAT(damaged("/statistics/by_family/fwd", 0), HasSubstr("/statistics/by_family"));
    EXPECT_THAT(damaged("/kernels/0/family", "forward"), HasSubstr("/kernels/0/family"));
    EXPECT_THAT(damaged("/kernels/3/built", 1), HasSubstr("/kernels/3/built"));
    EXPECT_THAT(damaged("/kernels/9/signature/hdim_q", -1), HasSubstr("/kernels/9/signature/hdim_q"));
    EXPECT_THAT(damaged("/kernels/0/algorithm/pad/d", 2), HasSubstr("/kernels/0/algorithm/pad/d"));
    EXPECT_THAT(damaged("/kernels/0/algorithm/speed", 1), HasSubstr("speed"));
    EXPECT_THAT(without("/kernels/0", "identifier"), HasSubstr("identifier"));
    EXPECT_THAT(without("/kernels/0/signature", "has_lse"), HasSubstr("has_lse"));
    EXPECT_THAT(without("/kernels/0/algorithm/wave", "k2"), HasSubstr("k2"));
    EXPECT_THAT(without("", "statistics"), HasSubstr("statistics"));
}

} // namespace
} // namespace fmha
