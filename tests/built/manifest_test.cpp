// The manifest lists exactly the kernels that were built, and a damaged one is refused with its place.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/built/manifest.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace fmha::built {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

KernelConfig config(std::int64_t hdim, std::string_view arch = "gfx950") {
    KernelConfig c;
    c.arch = arch;
    c.signature.data_type = DataType::bf16;
    c.signature.hdim_q = c.signature.hdim_v = hdim;
    c.algorithm.tile = {128, 64, 32, 128, 32, 128};
    return c;
}

Manifest sample() {
    Resources used;
    used.vgprs = 128;
    used.lds_bytes = 32768;
    used.direct_copies = 20;
    used.transposing_reads = 32;
    used.matrix_instructions = {{"v_mfma_f32_32x32x16_bf16", 64}};
    LoopModel loop{.scores = 64, .waves = 2, .second_opinion = 9384};
    loop.plain[LoopUnit::matrix] = {64, 2048};
    loop.plain.moves = 3;
    loop.masked[LoopUnit::wait] = {5, 20};
    loop.masked.missing_cycles = 7;
    loop.plain.behind_lds = {4, 260};
    loop.plain.conflict_cycles = 96;
    used.loop = loop;
    Manifest manifest;
    manifest.objects.push_back({"obj/u0.hsaco",
                                "gfx950",
                                "clang version 22.1.8",
                                std::string(64, 'a'),
                                {{"k64", config(64), symbol_of("k64"), used},
                                 {"k128", config(128), symbol_of("k128"), std::nullopt}}});
    manifest.missing.push_back(
        {"k256", config(256), "head dimension 256 needs more registers than a lane has"});
    return manifest;
}

TEST(Manifest, ComesBackAsItWas) {
    EXPECT_EQ(manifest_from_json(to_json(sample()), "m"), sample());
}

TEST(Manifest, IsWrittenAndReadInAFolder) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("fmha_manifest_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    write_manifest(sample(), folder);
    EXPECT_EQ(read_manifest(folder), sample());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a draft was left behind";
    std::filesystem::remove_all(folder);
    EXPECT_THROW(read_manifest(folder), InputError);
}

TEST(Manifest, SymbolsAreIdentifiers) {
    EXPECT_EQ(symbol_of("fwd_gfx950_h64x64_p-1.x"), "fmha_fwd_gfx950_h64x64_p_1_x");
}

struct Damage {
    const char* what;
    void (*apply)(Json&);
    const char* sentence;
};

class DamagedManifest : public testing::TestWithParam<Damage> {};

TEST_P(DamagedManifest, IsRefusedWithItsPlace) {
    Json document = Json::parse(to_json(sample()));
    GetParam().apply(document);
    try {
        manifest_from_json(document.dump(), "m.json");
        FAIL() << "accepted";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith("m.json"));
        EXPECT_THAT(error.what(), HasSubstr(GetParam().sentence));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Manifest, DamagedManifest,
    testing::Values(
        Damage{"Version", [](Json& m) { m["schema_version"] = 1; },
               ".schema_version: 1 is not known; allowed: 6; build the kernels again"},
        Damage{"UnknownKey", [](Json& m) { m["objects"][0]["size"] = 1; }, "unknown key \"size\""},
        Damage{"NoSymbol", [](Json& m) { m["objects"][0]["kernels"][1].erase("symbol"); },
               ".objects[0].kernels[1]: key \"symbol\" is missing"},
        Damage{"NumberAsText", [](Json& m) { m["objects"][0]["kernels"][0]["resources"]["vgprs"] = "128"; },
               ".resources.vgprs: expected a count"},
        Damage{"Negative", [](Json& m) { m["objects"][0]["kernels"][0]["resources"]["vgprs"] = -1; },
               "expected a count of 0 or more, got -1"},
        Damage{"UnknownUnit",
               [](Json& m) { m["objects"][0]["kernels"][0]["resources"]["loop"]["plain"]["magic"] = 1; },
               ".loop.plain: unknown key \"magic\""},
        Damage{"NoMaskedIteration",
               [](Json& m) { m["objects"][0]["kernels"][0]["resources"]["loop"].erase("masked"); },
               ".loop: key \"masked\" is missing"},
        Damage{"OtherConfig",
               [](Json& m) { m["objects"][0]["kernels"][0]["config"]["signature"]["hdim_v"] = 32; },
               "is not the identifier of its config"},
        Damage{"UnknownField", [](Json& m) { m["missing"][0]["config"]["color"] = 3; },
               "unknown key \"color\""},
        Damage{"TwiceTheSameName", [](Json& m) { m["missing"][0]["name"] = "k64"; },
               "name \"k64\" appears twice"},
        Damage{"TwiceTheSameSymbol",
               [](Json& m) {
                   m["objects"][0]["kernels"][1]["symbol"] = m["objects"][0]["kernels"][0]["symbol"];
               },
               "symbol \"fmha_k64\" appears twice"},
        Damage{"FileOutside", [](Json& m) { m["objects"][0]["file"] = "../u0.hsaco"; },
               "is not inside the folder of the manifest"},
        Damage{"AbsoluteFile", [](Json& m) { m["objects"][0]["file"] = "/u0.hsaco"; },
               "is not inside the folder of the manifest"},
        Damage{"OtherArch", [](Json& m) { m["objects"][0]["arch"] = "gfx942"; },
               "its config is for gfx950, its code object for gfx942"},
        Damage{"NoObjects", [](Json& m) { m["objects"] = nullptr; },
               ".objects: expected an array, got null"}),
    [](const auto& parameter) { return parameter.param.what; });

} // namespace
} // namespace fmha::built
