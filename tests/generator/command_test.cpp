// `fmha generate` and `fmha build` as a user meets them.

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/field_json.hpp"
#include "kernels/built/manifest.hpp"
#include "tests/generator/catalogue.hpp"
#include "tests/generator/fake_compiler.hpp"
#include "tests/support/command_line.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace fmha::generator {
namespace {

namespace fs = std::filesystem;
using cli::test::Ran;
using cli::test::run;
using test::FakeCompiler;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::SizeIs;

class Commands : public testing::Test {
  protected:
    std::string path(std::string_view name) const { return fake_.folder(name).string(); }
    Ran build(std::vector<std::string> arguments) const {
        std::vector<std::string> line{"build",       "--out",      path("out"),
                                      "--root",      path("root"), "--cache",
                                      path("cache"), "--compiler", path("bin/clang++-99")};
        line.insert(line.end(), arguments.begin(), arguments.end());
        return run(line);
    }
    /// Writes a configuration of gfx942 that is changed first.
    std::string config_file(void (*change)(KernelConfig&)) const {
        KernelConfig config = test::house_fwd("gfx942").front();
        change(config);
        system::write_file(path("config.json"), fields_to_json(config).dump());
        return path("config.json");
    }
    FakeCompiler fake_;
};

/// The PATH holds nothing while this lives.
class NothingOnThePath {
  public:
    NothingOnThePath() { setenv("PATH", "", 1); }
    ~NothingOnThePath() { setenv("PATH", before_.c_str(), 1); }
    NothingOnThePath(const NothingOnThePath&) = delete;
    NothingOnThePath& operator=(const NothingOnThePath&) = delete;

  private:
    std::string before_ = std::getenv("PATH");
};

TEST_F(Commands, GenerateWritesSourcesWithoutACompiler) {
    if (!CompilerPlaces::of_environment({}).rocm.empty())
        GTEST_SKIP() << "ROCm is under /opt or ROCM_PATH, so a compiler is found";
    const NothingOnThePath here;
    const auto ran = run({"generate", "--arch", "gfx942", "--sample", "3", "--out", path("out"), "--root",
                          path("root"), "--format", "json"});
    EXPECT_EQ(ran.code, cli::all_well);
    EXPECT_THAT(ran.err, HasSubstr("no build.ninja: no compiler for gfx942"));
    const auto said = nlohmann::json::parse(ran.out);
    ASSERT_THAT(said["sources"], SizeIs(3));
    for (const auto& source : said["sources"])
        EXPECT_THAT(system::read_file(fake_.folder("out") / source["file"].get<std::string>()),
                    HasSubstr(built::symbol_of(source["kernels"][0].get<std::string>())));
}

TEST_F(Commands, AListOfThousandsIsAskedFor) {
    const auto plain = run({"generate", "--arch", "gfx942", "--out", path("out")});
    EXPECT_EQ(plain.code, cli::bad_input);
    EXPECT_THAT(plain.err,
                ContainsRegex("nothing says which of [0-9]{4} kernels: --tier smoke .* --family fwd"));
    EXPECT_FALSE(std::filesystem::exists(path("out")));
    EXPECT_THAT(build({"--rules", "claim"}).err, HasSubstr("nothing says which of 11980 kernels"));
    EXPECT_EQ(build({"--family", "fwd_splitkv_combine", "--max-kernels", "2"}).code, cli::all_well);
}

TEST_F(Commands, KernelsThatNoGpuRunsAreListed) {
    const auto file = config_file([](KernelConfig& config) {
        config = {.arch = config.arch, .signature = {}, .algorithm = {}};
        config.signature.family = KernelFamily::bwd_dot_do_o;
        config.signature.hdim_q = config.signature.hdim_v = 64;
        config.algorithm.pipeline = Pipeline::bwd;
        config.algorithm.tile.m0 = 32;
        config.algorithm.pad.s = config.algorithm.pad.sk = true;
    });
    const auto ran = run({"generate", "--config", file, "--out", path("out")});
    EXPECT_EQ(ran.code, cli::check_failed) << "nothing was generated";
    EXPECT_THAT(ran.out, AllOf(HasSubstr("declined bwd_dot_do_o_gfx942_"), HasSubstr("64 rows in a tile"),
                               HasSubstr("0 kernels in 0 sources")));
}

TEST_F(Commands, ForbiddenConfigurationsAreRefusedWithTheRule) {
    const auto tile = config_file([](KernelConfig& config) { config.algorithm.tile.m0 = 100; });
    const auto ran = build({"--config", tile});
    EXPECT_EQ(ran.code, cli::bad_input);
    EXPECT_THAT(ran.err, HasSubstr("config.json: refused by VR-07: QK: tile extent m = 100"));
    const auto type = config_file([](KernelConfig& config) { config.signature.data_type = DataType::mxfp4; });
    EXPECT_THAT(build({"--config", type}).err, HasSubstr("refused by VR-02"));
    EXPECT_FALSE(fs::exists(path("out"))) << "nothing is written before everything is known to be allowed";
}

TEST_F(Commands, AllowedConfigurationsAreBuilt) {
    const auto file = config_file([](KernelConfig&) {});
    EXPECT_EQ(build({"--config", file}).code, cli::all_well);
    const auto manifest = built::read_manifest(path("out"));
    ASSERT_THAT(manifest.objects, SizeIs(1));
    EXPECT_EQ(manifest.objects.front().kernels.front().config, test::house_fwd("gfx942").front());
}

TEST_F(Commands, ContradictionsAreRefused) {
    const auto file = config_file([](KernelConfig&) {});
    EXPECT_THAT(build({"--config", file, "--arch", "gfx942"}).err,
                HasSubstr("--config of a kernel and --arch exclude"));
    EXPECT_THAT(build({"--max-kernels", "1", "--no-cache"}).err, HasSubstr("--cache and --no-cache exclude"));
    EXPECT_THAT(build({"--tier", "tiny"}).err,
                HasSubstr("--tier tiny: not known; allowed: smoke, full or nightly"));
    EXPECT_THAT(build({"--where", "c.hdim_q == 7"}).err, HasSubstr("no kernel is left"));
    EXPECT_THAT(build({"--kernel", "bwd*"}).err, HasSubstr("--kernel bwd*: no kernel is left"));
    EXPECT_THAT(build({"--tier", "smoke", "--family", "bwd", "--where", "c.has_dropout"}).err,
                HasSubstr("none has a kernel for each of its stages among them"));
    EXPECT_THAT(build({"--sample", "0"}).err, HasSubstr("--sample 0: allowed"));
    EXPECT_THAT(build({"--max-kernels", "1", "--per-file", "0"}).err,
                HasSubstr("--per-file 0: allowed: 1 to 1000"));
    EXPECT_THAT(build({"--sample", "1", "--facts", path("facts")}).err, HasSubstr("--facts needs --audit"));
    for (const char* part : {"--sample=1", "--where=c.hdim_q == 128", "--kernel=*", "--max-kernels=1"})
        EXPECT_THAT(build({"--catalogue", part, "--facts", path("facts"), "--accept", "--reason", "all"}).err,
                    HasSubstr("--facts --accept needs whole families: --catalogue, alone or with --family"))
            << part;
}

// They would compile everything on this machine.
TEST_F(Commands, LaunchersThatSendNothingAreRefused) {
    for (const char* launcher : {"pump", "/usr/bin/icecc", "ccache distcc"}) {
        const auto ran = build({"--arch", "gfx942", "--sample", "1", "--launcher", launcher});
        EXPECT_EQ(ran.code, cli::bad_input) << launcher;
        EXPECT_THAT(ran.err, HasSubstr("on this machine alone; allowed: distcc for kernels of AMD, ccache"));
    }
}

// It sends a source whose name and language it knows, and no other.
TEST_F(Commands, DistccGetsSourcesThatItSends) {
    const auto ran = run({"generate", "--arch", "gfx942", "--sample", "1", "--out", path("sent"),
                          "--compiler", path("bin/clang++-99"), "--root", path("root"), "--launcher",
                          "/usr/bin/distcc", "--format", "json"});
    ASSERT_EQ(ran.code, cli::all_well) << ran.err;
    const auto file = nlohmann::json::parse(ran.out)["sources"][0]["file"].get<std::string>();
    EXPECT_THAT(file, testing::EndsWith(".cpp"));
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(path("sent")) / file));
    const std::string ninja = system::read_file(path("sent") + "/build.ninja");
    EXPECT_THAT(ninja, AllOf(HasSubstr("command = /usr/bin/distcc "), HasSubstr(" --language=hip "),
                             HasSubstr(file), testing::Not(HasSubstr(" -x "))));
}

TEST_F(Commands, SweepConfigurationsChooseKernelsOfAList) {
    const std::string sweeps = std::string(FMHA_CASES_DIR) + "/sweeps/";
    const auto ran = build({"--config", sweeps + "fwd_ci.json", "--filter", "c.hdim_q == 128", "--filter",
                            "c.lse or c.tile_m0 == 128", "--max-kernels", "3", "--workers", "2",
                            "--compile-only", "--warmup", "2", "--repeat", "3"});
    EXPECT_EQ(ran.code, cli::all_well) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("3 of 3 kernels built: 3 compiled"), HasSubstr("32 (filtered ")));
    for (const auto& object : built::read_manifest(path("out")).objects)
        for (const auto& kernel : object.kernels) {
            EXPECT_EQ(kernel.config.signature.hdim_q, 128);
            EXPECT_EQ(kernel.config.arch.view(), "gfx950");
        }
    const auto bad = build({"--config", sweeps + "fwd_ci.json", "--rules", "ck"});
    EXPECT_EQ(bad.code, cli::bad_input);
    EXPECT_THAT(bad.err, HasSubstr("--rules ck: not known here; allowed: house, claim, stored, sweep"));
}

TEST_F(Commands, RecordsThatARuleForbidsAreDeclinedByName) {
    const auto ran = run({"generate", "--config", std::string(FMHA_CASES_DIR) + "/sweeps/batch_prefill.json",
                          "--where", "c.hdim_q == 128 and c.data_type == 'fp16'", "--out", path("out"),
                          "--root", path("root"), "--compiler", path("bin/clang++-99"), "--format", "json"});
    const auto said = nlohmann::json::parse(ran.out);
    EXPECT_GT(said["sources"].size(), 0U);
    std::map<std::string, int> reasons;
    for (const auto& kernel : said["declined"]) {
        const auto reason = kernel["reason"].get<std::string>();
        ++reasons[reason.substr(0, reason.find(':'))];
    }
    EXPECT_THAT(reasons, testing::UnorderedElementsAre(testing::Pair("refused by VR-14", testing::Gt(0)),
                                                       testing::Pair("refused by VR-18", testing::Gt(0))));
}

TEST_F(Commands, BuildSaysWhatItDid) {
    const auto ran = build({"--arch", "gfx942", "--sample", "4"});
    EXPECT_EQ(ran.code, cli::all_well);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("4 of 4 kernels built: 4 compiled in "), HasSubstr(" a minute)")));
    EXPECT_THAT(build({"--arch", "gfx942", "--sample", "4"}).out,
                HasSubstr("0 compiled, 0 from the cache, 4 up to date"));
}

TEST_F(Commands, FailingKernelsAreRedWithEverythingTheCompilerSaid) {
    fake_.refuse("DataType::bf16");
    const auto ran =
        build({"--arch", "gfx942", "--where", "c.data_type in ('fp16', 'bf16')", "--sample", "6"});
    EXPECT_EQ(ran.code, cli::check_failed);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("FAILED fwd_gfx942_bf16"), HasSubstr("clang++-99 -x hip"),
                               HasSubstr("error: refused\nand a second line")));
    const auto json = build({"--arch", "gfx942", "--where", "c.data_type in ('fp16', 'bf16')", "--sample",
                             "6", "--format", "json"});
    const auto said = nlohmann::json::parse(json.out);
    EXPECT_GT(said["failed"].size(), 0U);
    EXPECT_EQ(said["failed"].size() + said["up_to_date"].get<std::size_t>(), 6U);
    EXPECT_THAT(said["failed"][0]["errors"].get<std::string>(), HasSubstr("and a second line"));
}

TEST_F(Commands, ThePlannedKernelsOfATierAreAFewOfAll) {
    const auto ran =
        run({"generate", "--arch", "gfx942", "--tier", "smoke", "--cases-root", FMHA_CASES_DIR, "--out",
             path("out"), "--root", path("root"), "--compiler", path("bin/clang++-99"), "--format", "json"});
    const auto count = nlohmann::json::parse(ran.out)["sources"].size();
    EXPECT_GT(count, 50U);
    EXPECT_LT(count, catalog::test::working_list("gfx942").size() / 10);
}

TEST_F(Commands, ATierOfAnApiHasTheKernelsOfAllStagesThatItsCasesRun) {
    const auto ran = run({"generate", "--arch", "gfx942", "--tier", "smoke", "--family", "bwd",
                          "--cases-root", FMHA_CASES_DIR, "--out", path("out"), "--root", path("root"),
                          "--compiler", path("bin/clang++-99"), "--format", "json"});
    std::map<std::string, int> families;
    const auto list = nlohmann::json::parse(ran.out);
    for (const auto& source : list["sources"])
        for (const std::string name : source["kernels"]) ++families[name.substr(0, name.find("_gfx942"))];
    EXPECT_THAT(families, testing::UnorderedElementsAre(testing::Pair("bwd_dot_do_o", testing::Gt(0)),
                                                        testing::Pair("bwd_dq_dk_dv", testing::Gt(0)),
                                                        testing::Pair("bwd_convert_dq", testing::Gt(0)),
                                                        testing::Pair("fwd", testing::Gt(0))))
        << "chains run forward first";
}

TEST_F(Commands, AuditNeedsItsTool) {
    EXPECT_THAT(build({"--arch", "gfx942", "--sample", "1", "--audit"}).err,
                HasSubstr("has no llvm-objdump beside it (Debian package llvm-99)"));
}

} // namespace
} // namespace fmha::generator
