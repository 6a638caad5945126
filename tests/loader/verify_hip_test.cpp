// `fmha verify --target hip` from the command line to the kernels and back, on a plugin whose device is the processor.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/built/manifest.hpp"
#include "kernels/loader/plugin.hpp"
#include "tests/loader/fake_runtime.hpp"
#include "tests/support/command_line.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace fmha::cli {
namespace {

using test::Ran;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* short_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,fill=indexed]@1";
constexpr const char* long_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1";

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
        for (const char* setting : {"FAULT", "ARCH", "DEVICES", "FAULTY", "GRAVES"})
            unsetenv(fmt::format("FMHA_FAKE_{}", setting).c_str());
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
        return test::run(arguments);
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
        // A kernel that reads NaN for every key may leave zeros, which are not believed instead of failed.
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
    // Their launcher was built anew.
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
                      HasSubstr("run `fmha build --arch gfx90a --tier smoke`")));
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

/// Several devices that share the cases of fwd/faults.
class FakeGpus : public FakeGpu {
  protected:
    FakeGpus() {
        setenv("FMHA_FAKE_DEVICES", "3", 1);
        build(planned({"fwd/faults"}));
    }

    fs::path file(const char* name) const { return kernels() / name; }

    /// The report of a run with these options.
    nlohmann::json run(int code, std::vector<std::string> more) const {
        more.insert(more.end(), {"fwd/faults", "--json", file("run.json")});
        const Ran ran = verify(more);
        EXPECT_EQ(ran.code, code) << ran.out << ran.err;
        out_ = ran.out;
        return nlohmann::json::parse(system::read_file(file("run.json")));
    }

    static std::vector<std::string> names(const nlohmann::json& report) {
        std::vector<std::string> names;
        for (const auto& result : report.at("results")) names.push_back(result.at("name"));
        return names;
    }
    static std::set<int> devices(const nlohmann::json& report) {
        std::set<int> devices;
        for (const auto& result : report.at("results"))
            if (result.contains("device")) devices.insert(result.at("device").get<int>());
        return devices;
    }
    /// Names of the cases that the journal tells, sorted.
    std::vector<std::string> journalled() const {
        std::vector<std::string> names;
        std::istringstream lines(system::read_file(file("run.jsonl")));
        std::string line;
        for (std::getline(lines, line); std::getline(lines, line);)
            names.push_back(nlohmann::json::parse(line).at("case"));
        std::ranges::sort(names);
        return names;
    }
    static std::vector<std::string> sorted(std::vector<std::string> names) {
        std::ranges::sort(names);
        return names;
    }

    mutable std::string out_; ///< of the last run
};

TEST_F(FakeGpus, AllOfThemShareTheCasesAndTellWhatOneTells) {
    const auto alone = run(0, {});
    EXPECT_EQ(devices(alone), std::set<int>{0});
    EXPECT_GE(names(alone).size(), 9U);
    const auto shared = run(0, {"--devices", "all", "--journal", file("run.jsonl")});
    EXPECT_THAT(out_, AllOf(HasSubstr("GREEN"), HasSubstr("device 0: "), HasSubstr("device 2: ")));
    EXPECT_EQ(names(shared), names(alone));
    EXPECT_EQ(journalled(), sorted(names(alone)));
    EXPECT_EQ(devices(shared), (std::set<int>{0, 1, 2}));
    EXPECT_EQ(shared.at("run").at("jobs"), 3);
    EXPECT_EQ(shared.at("run").at("devices").size(), 3U);
    EXPECT_THAT(shared.at("run").at("machine").get<std::string>(), HasSubstr("3 devices, each Fake GPU"));
    for (std::size_t i = 0; i < names(alone).size(); ++i)
        EXPECT_EQ(shared.at("results").at(i).at("outcome"), alone.at("results").at(i).at("outcome"));
    EXPECT_EQ(devices(run(0, {"--devices", "0,2"})), (std::set<int>{0, 2}));
}

TEST_F(FakeGpus, AFaultyOneIsRedByItsNumber) {
    setenv("FMHA_FAKE_FAULT", "last_key_dropped", 1);
    setenv("FMHA_FAKE_FAULTY", "1", 1);
    const auto report = run(1, {"--devices", "all"});
    int red = 0;
    for (const auto& result : report.at("results")) {
        if (result.at("outcome") == "passed") continue;
        ++red;
        EXPECT_EQ(result.at("device"), 1) << result.dump(1);
        EXPECT_THAT(result.at("reproduce").get<std::string>(),
                    AllOf(HasSubstr(" --device 1"), Not(HasSubstr("--devices"))));
    }
    EXPECT_GT(red, 0);
    EXPECT_THAT(out_, AllOf(HasSubstr("\n  device   1\n"), HasSubstr("device 0: "),
                            HasSubstr(fmt::format(" results, {} not green\ndevice 2: ", red))));
}

TEST_F(FakeGpus, AFaultCostsItsCaseAndTheDeviceGoesOn) {
    build(planned({short_case, long_case}));
    setenv("FMHA_FAKE_FAULT", "illegal_address", 1);
    const Ran ran = verify({long_case, short_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0]@1",
                            "--devices", "0,1"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out,
                AllOf(HasSubstr("3 asked   2 passed"), HasSubstr("1 crashed"), HasSubstr("\n  device   0\n"),
                      HasSubstr("fakeError700 (700)"), Not(HasSubstr("cannot be opened"))));
}

TEST_F(FakeGpus, OneThatDiesCostsItsCaseAndTheOthersDoTheRest) {
    setenv("FMHA_FAKE_FAULT", "death", 1);
    setenv("FMHA_FAKE_FAULTY", "1", 1);
    setenv("FMHA_FAKE_GRAVES", kernels().c_str(), 1);
    const auto report = run(1, {"--devices", "all", "--journal", file("run.jsonl")});
    for (const auto& result : report.at("results"))
        EXPECT_EQ(result.at("outcome"), result.at("device") == 1 ? "crashed" : "passed");
    EXPECT_EQ(report.at("ledger").at("crashed"), 1);
    EXPECT_EQ(journalled(), sorted(names(report)));
    EXPECT_THAT(out_,
                HasSubstr("a device got no more cases because it cannot be opened: device 1: 3 attempts, "
                          "the last one: selecting device 1 failed: fakeError100 (100)"));
    EXPECT_THAT(verify({"fwd/faults", "--devices", "all"}).err,
                HasSubstr("--target hip: selecting device 1 failed"));
}

TEST_F(FakeGpus, WhenAllHaveDiedTheRestIsNotRun) {
    setenv("FMHA_FAKE_FAULT", "death", 1);
    setenv("FMHA_FAKE_GRAVES", kernels().c_str(), 1);
    const std::vector<std::string> arguments{"--devices", "0,1", "--journal", file("run.jsonl")};
    const auto report = run(1, arguments);
    const auto count = static_cast<int>(names(report).size());
    EXPECT_EQ(report.at("ledger").at("crashed"), 2);
    EXPECT_EQ(report.at("ledger").at("not_run"), count - 2);
    EXPECT_THAT(out_,
                AllOf(HasSubstr(fmt::format("not run because of no_device: {}, for example ", count - 2)),
                      HasSubstr("no device is left that can be opened: device "), HasSubstr("RED")));
    // Nothing is settled about the kernels of these cases.
    EXPECT_EQ(journalled().size(), 2U);
    unsetenv("FMHA_FAKE_FAULT");
    for (const char* device : {"0", "1"}) fs::remove(kernels() / device);
    EXPECT_EQ(run(1, arguments).at("ledger").at("passed"), count - 2);
    EXPECT_EQ(journalled(), sorted(names(report)));
}

TEST_F(FakeGpus, AChoiceThatCannotBeIsASentence) {
    const auto said = [&](std::vector<std::string> more) {
        more.emplace_back(short_case);
        const Ran ran = verify(more);
        EXPECT_EQ(ran.code, 2);
        return ran.err;
    };
    EXPECT_THAT(
        said({"--devices", "0,3"}),
        HasSubstr(
            "there is no device 3; there are: device 0 (Fake GPU, gfx950), device 1 (Fake GPU, gfx950), "
            "device 2 (Fake GPU, gfx950)"));
    EXPECT_THAT(
        said({"--devices", "0,"}),
        HasSubstr("--devices 0,: '' is not the number of a device; allowed: all, or numbers with commas"));
    EXPECT_THAT(said({"--devices", "-1"}), HasSubstr("'-1' is not the number of a device"));
    EXPECT_THAT(said({"--devices", "1,1"}), HasSubstr("--devices 1,1: device 1 is named twice"));
    EXPECT_THAT(said({"--devices", "all", "--device", "1"}), HasSubstr("--device and --devices exclude"));
    EXPECT_THAT(said({"--devices", "all", "--jobs", "2"}),
                HasSubstr("--jobs 2: 3 devices need a process each; allowed: 3 or more"));
    EXPECT_THAT(said({"--devices", "all", "--shrink", "1"}), HasSubstr("--shrink and --devices exclude"));
    const Ran host = test::run({"verify", short_case, "--cases-root", FMHA_CASES_DIR, "--devices", "all"});
    EXPECT_EQ(host.code, 2);
    EXPECT_THAT(host.err, HasSubstr("--devices all: target host has no devices; it goes with --target hip"));
}

Ran devices(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"devices"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(arguments);
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
