// `fmha verify --target hip` from the command line to the kernels and back, on a plugin whose device is the processor.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/cli/command.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/loader/plugin.hpp"
#include "tests/loader/fake_runtime.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace fmha::cli {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* short_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,fill=indexed]@1";
constexpr const char* long_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1";

struct Ran {
    int code = 0;
    std::string out, err;
};

/// The kernels that are planned for `cases`, under their names.
std::map<std::string, KernelConfig> planned(const std::vector<std::string>& cases) {
    const auto source = harness::house_kernels(harness::make_target("host", {}));
    std::map<std::string, KernelConfig> kernels;
    for (const auto& c : harness::load_cases(cases, {.root = FMHA_CASES_DIR})) {
        const harness::StageKernel candidate = source->planned(harness::to_problem(c, "gfx950"), nullptr);
        kernels[candidate.name] = candidate.instance->config();
    }
    return kernels;
}

/// A folder as `fmha build` leaves it, with code objects for the fake device, beside a folder with the fake plugin.
class FakeGpu : public testing::Test {
  protected:
    FakeGpu() {
        fs::create_directories(plugins());
        fs::copy_file(FMHA_FAKE_PLUGIN, plugins() / loader::plugin_file("amd"));
        setenv("FMHA_HIP_PLUGIN_DIR", plugins().c_str(), 1);
        unsetenv("FMHA_FAKE_FAULT");
        unsetenv("FMHA_FAKE_ARCH");
    }
    ~FakeGpu() override { unsetenv("FMHA_HIP_PLUGIN_DIR"); }

    fs::path plugins() const { return folder_.path() / "plugins"; }
    fs::path kernels() const { return folder_.path() / "kernels"; }

    void build(const std::map<std::string, KernelConfig>& kernels_by_name, const char* arch = "gfx950",
               const char* key = "0") const {
        built::CodeObject object{"all.hsaco", arch, "none", key, {}};
        std::map<std::string, KernelConfig> symbols;
        for (auto [name, config] : kernels_by_name) {
            config.arch = arch;
            object.kernels.push_back({name, config, built::symbol_of(name), {}});
            symbols[object.kernels.back().symbol] = config;
        }
        fs::create_directories(kernels());
        built::write_manifest({{object}, {}}, kernels());
        system::write_file(kernels() / "all.hsaco", loader::test::fake_image(arch, symbols));
    }

    Ran verify(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments{"verify",        "--target", "hip",
                                           "--kernels-dir", kernels(),  "--cases-root",
                                           FMHA_CASES_DIR,  "--html",   folder_.path() / "report.html"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        std::ostringstream out, err;
        const int code = run_command_line(arguments, all_commands(), {out, err, false, {}});
        return {code, out.str(), err.str()};
    }

  private:
    system::TemporaryDirectory folder_;
};

TEST_F(FakeGpu, ASmokeSubsetIsGreen) {
    build(planned({"fwd/faults", "fwd/group_lengths"}));
    const Ran ran = verify({"fwd/faults", "fwd/group_lengths"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("GREEN"), HasSubstr("on target hip, catalogue house for gfx950"),
                               HasSubstr("   0 failed"), Not(HasSubstr(" 0 passed"))));
}

TEST_F(FakeGpu, KnownMistakesAreRed) {
    build(planned({"fwd/faults"}));
    for (const char* fault : {"last_key_dropped", "write_past_end", "padding_read"}) {
        setenv("FMHA_FAKE_FAULT", fault, 1);
        const Ran ran = verify({"fwd/faults"});
        EXPECT_EQ(ran.code, 1) << fault << ran.err;
        // What reads NaN for every key may leave zeros, which are not believed instead of failed.
        EXPECT_THAT(ran.out, AnyOf(HasSubstr("FAILED fwd/faults"), HasSubstr("MISTRUSTED fwd/faults")))
            << fault;
    }
    EXPECT_THAT(verify({"fwd/faults", "--jobs", "0"}).out,
                HasSubstr("--arch gfx950 --target hip --kernels-dir "))
        << "a failure reproduces itself on the same target";
}

TEST_F(FakeGpu, AFaultOfAKernelCostsItsCase) {
    build(planned({short_case, long_case}));
    setenv("FMHA_FAKE_FAULT", "illegal_address", 1);
    const Ran ran =
        verify({long_case, short_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0]@1"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("3 asked   2 passed"), HasSubstr("1 crashed"),
                               HasSubstr("the kernels or copies of a stream failed: fakeError700 (700)")));
}

TEST_F(FakeGpu, AKernelThatWasNotBuiltIsNotRunAndSaysWhatToDo) {
    auto kernels = planned({short_case});
    KernelConfig other = kernels.begin()->second;
    other.signature.has_lse = !other.signature.has_lse;
    build({{"other", other}});
    const Ran ran = verify({short_case});
    EXPECT_EQ(ran.code, 1);
    build(kernels);
    EXPECT_EQ(verify({short_case}).code, 0);
    EXPECT_THAT(ran.out, HasSubstr("not_built: 1"));
}

TEST_F(FakeGpu, AJournalBelongsToTheKernelsAndThePluginThatWereBuilt) {
    build(planned({short_case}));
    const std::vector<std::string> arguments{short_case, "--journal", kernels() / "run.jsonl"};
    EXPECT_EQ(verify(arguments).code, 0);
    EXPECT_THAT(verify(arguments).out, HasSubstr("continued: 1 case had finished"));
    const auto expect_refused = [&] {
        const Ran ran = verify(arguments);
        EXPECT_EQ(ran.code, 2);
        EXPECT_THAT(ran.err, HasSubstr("belongs to another run: kernels_sha256 is \""));
    };
    build(planned({short_case}), "gfx950", "1");
    expect_refused();
    build(planned({short_case}));
    EXPECT_EQ(verify(arguments).code, 0);
    // What launches them was built anew.
    std::ofstream(plugins() / loader::plugin_file("amd"), std::ios::app) << '\n';
    expect_refused();
}

TEST_F(FakeGpu, ACorruptCodeObjectFailsItsCases) {
    build(planned({short_case}));
    system::write_file(kernels() / "all.hsaco", "hello");
    const Ran ran = verify({short_case});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("all.hsaco is not a code object"));
}

TEST_F(FakeGpu, WrongArchIsBadInput) {
    build(planned({short_case}));
    setenv("FMHA_FAKE_ARCH", "gfx90a", 1);
    EXPECT_THAT(verify({short_case}).err,
                AllOf(HasSubstr("wrong arch: the device is gfx90a, "), HasSubstr("holds kernels for gfx950"),
                      HasSubstr("run `fmha build --arch gfx90a`")));
    setenv("FMHA_FAKE_ARCH", "gfx950", 1);
    const Ran asked = verify({short_case, "--arch", "gfx942"});
    EXPECT_EQ(asked.code, 2);
    EXPECT_THAT(asked.err, HasSubstr("--arch gfx942: the device is gfx950 (Fake GPU"));
}

TEST_F(FakeGpu, ADriverThatHangsIsASentence) {
    build(planned({short_case}));
    setenv("FMHA_FAKE_FAULT", "hang", 1);
    EXPECT_THAT(
        [&] {
            harness::make_target("hip", {.arch = {},
                                         .kernels_dir = kernels().string(),
                                         .device_patience = std::chrono::milliseconds(300)});
        },
        testing::ThrowsMessage<InputError>(
            "--target hip: the driver does not answer: the process that looks for "
            "a device is still running after 0.3 s"));
}

TEST_F(FakeGpu, WhatIsMissingIsASentenceAndExitCode2) {
    const Ran no_folder = verify({short_case});
    EXPECT_EQ(no_folder.code, 2);
    EXPECT_THAT(no_folder.err,
                AllOf(HasSubstr("there is no folder "), HasSubstr("run `fmha build --arch ARCH --out ")));
    build(planned({short_case}));
    const Ran no_second = verify({short_case, "--device", "1"});
    EXPECT_EQ(no_second.code, 2);
    EXPECT_THAT(no_second.err, HasSubstr("there is no device 1; allowed: 0 to 0"));
    fs::remove(plugins() / loader::plugin_file("amd"));
    const Ran no_plugin = verify({short_case});
    EXPECT_EQ(no_plugin.code, 2);
    EXPECT_THAT(no_plugin.err, HasSubstr("no plugin: neither"));
}

Ran devices(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"devices"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out, err;
    const int code = run_command_line(arguments, all_commands(), {out, err, false, {}});
    return {code, out.str(), err.str()};
}

TEST_F(FakeGpu, IsListed) {
    const Ran text = devices();
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(
        text.out,
        AllOf(HasSubstr("libfmha_hip_amd.so, runtime 60443484, driver 60443484\n"),
              HasSubstr("        0  Fake GPU  gfx950:xnack-  4 compute units, 16 GiB, LDS 160 KiB, L2 4 MiB, "
                        "waves of 64\n"),
              HasSubstr("nvidia  no plugin: libfmha_hip_nvidia.so was not found\n")));
    const auto json = nlohmann::json::parse(devices({"--format", "json"}).out);
    EXPECT_EQ(json.at(0).at("devices").at(0).at("arch"), "gfx950");
    EXPECT_EQ(json.at(1).at("devices").size(), 0U);
}

TEST_F(FakeGpu, NoneIsASentenceAndExitCode1) {
    fs::remove(plugins() / loader::plugin_file("amd"));
    const Ran none = devices();
    EXPECT_EQ(none.code, 1);
    EXPECT_EQ(none.out, "amd     no plugin: libfmha_hip_amd.so was not found\n"
                        "nvidia  no plugin: libfmha_hip_nvidia.so was not found\n");
}

} // namespace
} // namespace fmha::cli
