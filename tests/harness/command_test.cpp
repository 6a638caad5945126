// The command line: exit codes 0, 1 and 2 and nothing else, one sentence for every kind of bad input, and reports.

#include "dispatcher/system/files.hpp"
#include "harness/npy/npy.hpp"
#include "kernels/arch/arch.hpp"
#include "tests/harness/command_support.hpp"
#include "tests/harness/kernels_for_tests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fmha::cli {
namespace {

using test::Ran;
using test::run;
using test::Scratch;
using test::verify_on;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* one_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,fill=indexed]@1";

TEST(Verify, GreenIsZero) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("1 asked   1 passed   0 failed"));
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
}

TEST(Verify, AFailureIsOneAndReproducesItself) {
    const Ran ran = verify_on<harness::test::SpoiledKernel>(
        {one_case, "--jobs", "1"}, std::function<void(const FwdArgs&)>([](const FwdArgs& args) {
            static_cast<std::uint16_t*>(args.o.data)[args.o.offset(0, 1, 3, 5)] ^= 0x1000U;
        }));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("FAILED " + std::string(one_case)));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("repeat   fmha verify '{}' --arch gfx950", one_case)));
    EXPECT_THAT(ran.out, HasSubstr("pattern  1 of"));
    EXPECT_THAT(ran.out, HasSubstr("G1:o="));
    EXPECT_THAT(ran.out, HasSubstr("worst    tensor"));
}

TEST(Verify, ACrashIsOneAndKeepsTheOtherResults) {
    const Ran ran = verify_on<harness::test::SpoiledKernel>(
        {one_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1", "--jobs", "2"},
        std::function<void(const FwdArgs&)>([](const FwdArgs& args) {
            if (args.shape.seqlen_k > 100) static_cast<volatile char*>(args.o.data)[1LL << 34] = 1;
        }));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("1 crashed"));
    EXPECT_THAT(ran.out, Not(HasSubstr("   0 passed")));
}

TEST(Verify, AnEmptyCatalogueIsRed) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("REFUSED UNEXPECTEDLY"));
}

TEST(Verify, NothingExecutedIsRed) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--shard", "2/2"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("RED: nothing was executed"));
}

TEST(Verify, ListsWithoutRunning) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case, "--list"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, std::string(one_case) + "\n");
}

TEST(Verify, ListsAsJson) {
    const Ran ran = verify_on<harness::test::NoKernels>({one_case, "--list", "--format", "json"});
    EXPECT_EQ(nlohmann::json::parse(ran.out), nlohmann::json::array({one_case}));
}

TEST(Verify, AnInterruptedRunReportsWhatFinishedAndIsRed) {
    const Ran ran = verify_on<harness::test::SpoiledKernel>(
        {one_case, "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=129,mask=0,fill=indexed]@1", "--jobs", "1",
         "--not-run-budget", "9"},
        std::function<void(const FwdArgs&)>([](const FwdArgs& args) {
            if (args.shape.seqlen_k > 100) kill(getppid(), SIGTERM);
            while (args.shape.seqlen_k > 100) pause();
        }));
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("2 asked   1 passed   0 failed   0 refused as predicted   1 not run"));
    EXPECT_THAT(ran.out, HasSubstr("RED: interrupted"));
}

TEST(Verify, AReportThatCannotBeWrittenIsKnownBeforeTheRun) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--json", "/proc/nothing/x.json"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("/proc/nothing/x.json: cannot be written"));
    EXPECT_EQ(ran.out, "");
}

TEST(Verify, AFullDiskTakesNoVerdictAway) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--json", "/dev/full"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.out, HasSubstr("GREEN"));
    EXPECT_THAT(ran.err, HasSubstr("/dev/full: cannot be written"));
    EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(Verify, WritesAllReports) {
    const Scratch folder;
    const Ran ran = verify_on<harness::test::FittingHostKernel>(
        {one_case, "--json", folder / "a/r.json", "--junit", folder / "r.xml", "--html", folder / "r.html"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto text = [](const std::string& file) {
        std::ifstream stream(file);
        return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    const auto document = nlohmann::json::parse(text(folder / "a/r.json"));
    EXPECT_EQ(document["schema"], "fmha-verify-1");
    EXPECT_EQ(document["ledger"]["passed"], 1);
    EXPECT_EQ(document["results"][0]["name"], one_case);
    EXPECT_THAT(document["run"]["command"].get<std::string>(), HasSubstr("fmha verify"));
    EXPECT_THAT(text(folder / "r.xml"), HasSubstr("<testsuite name=\"fwd\" tests=\"1\" failures=\"0\""));
    EXPECT_THAT(text(folder / "r.html"), HasSubstr("<span class=\"verdict passed\">green</span>"));
}

TEST(Verify, JsonToStandardOutput) {
    const Ran ran = verify_on<harness::test::FittingHostKernel>({one_case, "--format", "json"});
    EXPECT_EQ(nlohmann::json::parse(ran.out)["ledger"]["green"], true);
}

TEST(Exchange, AReferenceJudgesItself) {
    const Scratch folder;
    const Ran wrote =
        run({"reference", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--out", folder / "all"});
    ASSERT_EQ(wrote.code, 0) << wrote.err;
    const auto check = [&] {
        return run(
            {"check", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors", folder / "all"});
    };
    // The reference is float64; a kernel's output has the type of the case.
    EXPECT_EQ(check().code, 2);
    EXPECT_THAT(check().err, HasSubstr("o.npy: dtype is float64; allowed: float16 or uint16"));
    harness::NpyArray o = harness::read_npy(folder / "all/o.npy");
    harness::NpyArray half{harness::NpyType::float16, o.shape, {}};
    for (std::int64_t i = 0; i < o.elements(); ++i) {
        double value = 0.0;
        std::memcpy(&value, o.bytes.data() + 8 * i, 8);
        const auto code = static_cast<_Float16>(value);
        half.bytes.resize(half.bytes.size() + 2);
        std::memcpy(half.bytes.data() + 2 * i, &code, 2);
    }
    harness::write_npy(folder / "all/o.npy", half);
    EXPECT_EQ(check().code, 0) << check().out << check().err;
    fs::copy(folder / "all", folder / "right");
    const auto compare = [&](const char* other) {
        return run({"compare", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors", folder / "right",
                    folder / other});
    };
    EXPECT_EQ(compare("right").code, 0) << compare("right").err;
    EXPECT_THAT(compare("right").out, HasSubstr("all the same bits"));
    half.bytes[100] ^= 0x40U;
    half.bytes[101] ^= 0x10U;
    harness::write_npy(folder / "all/o.npy", half);
    const Ran wrong = check();
    EXPECT_EQ(wrong.code, 1);
    EXPECT_THAT(wrong.out, HasSubstr("FAILED"));
    const Ran beside = compare("all");
    EXPECT_EQ(beside.code, 1);
    EXPECT_THAT(beside.out,
                AllOf(HasSubstr("passed"), HasSubstr("failed"), HasSubstr("\no  "), HasSubstr(" 1 of "),
                      HasSubstr("first b0 h0 row 0 column 50: "), HasSubstr(" ULP")))
        << beside.err;
    EXPECT_THAT(run({"compare", one_case, "--cases-root", FMHA_CASES_DIR}).err,
                HasSubstr("give either --ck-bin FOLDER or --tensors FOLDER FOLDER"));
    // A kernel that wrote no LSE must not be judged by the reference's own.
    fs::create_directory(folder / "mine");
    fs::copy(folder / "all/o.npy", folder / "mine/o.npy");
    const Ran apart = run({"check", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors",
                           folder / "all", "--outputs", folder / "mine"});
    EXPECT_EQ(apart.code, 2);
    EXPECT_THAT(apart.err, HasSubstr("mine/lse.npy: cannot be opened"));
    fs::remove(folder / "all/lse.npy");
    EXPECT_THAT(check().err, HasSubstr("lse.npy: cannot be opened"));
}

TEST(BadInput, IsExitCodeTwoWithASentence) {
    const Scratch folder;
    const std::string one = one_case, missing = folder / "nothing";
    std::ofstream(folder / "broken.json") << "{";
    struct Row {
        std::vector<std::string> arguments;
        std::string sentence;
    };
    const std::vector<Row> table{
        {{}, "subcommand"},
        {{"verfy"}, "\"verfy\" is not a subcommand; there are:"},
        {{"--frobnicate"}, "--frobnicate"},
        {{"verify", "--tire", "smoke"}, "--tire"},
        {{"verify", "--tier", "enormous"}, "enormous"},
        {{"verify", "--target", "moon"}, "moon"},
        {{"verify", "--kernels", "some"}, "some"},
        {{"verify", "--format", "xml"}, "xml"},
        {{"verify", "--seed", "-1"}, "--seed"},
        {{"verify", "--seed", "ten"}, "ten"},
        {{"verify", "--seed"}, "--seed"},
        {{"verify", ""}, "CASES: an empty value is not allowed"},
        {{"verify", one, "--json", ""}, "--json: an empty value is not allowed"},
        {{"verify", one, "--jobs", ""}, "--jobs: an empty value is not allowed"},
        {{"verify", one, "--family", "fwd_"}, "--family fwd_: not known; allowed: fwd, "},
        {{"verify", one, "--list", "--pairs"}, "--list and --pairs exclude one another"},
        {{"verify", "fwd/pairs", "--pairs", "--format", "json"}, "not JSON"},
        {{"plan", "--snapshots", "x", "--problem", "y"}, "--snapshots goes with --accept and --reason only"},
        {{"plan", "--problem", "x", "--policy", "ck", "--rules", "house"}, "--rules ck only, got house"},
        {{"enumerate", "--names", "--count"}, "--names and --count exclude one another"},
        {{"enumerate", "--where-file", FMHA_CASES_DIR}, "is a folder, not a file"},
        {{"enumerate", "--config", FMHA_CASES_DIR}, "is a folder, not a file"},
        {{"enumerate", "--arch-dir", folder / "nothing"}, "not a folder of architecture files"},
        {{"enumerate", "--where", ""}, "--where: an empty value is not allowed"},
        {{"verify", one, "--jobs", "many"}, "many"},
        {{"verify", one, "--jobs", "-2"}, "--jobs is -2; allowed: 0 to 1000000"},
        {{"verify", one, "--repeats", "-1"}, "--repeats is -1"},
        {{"verify", one, "--timeout", "-5"}, "--timeout is -5"},
        {{"verify", one, "--shard", "0/2"}, "0/2"},
        {{"verify", one, "--shard", "3/2"}, "3/2"},
        {{"verify", one, "--shard", "half"}, "half"},
        {{"verify", one, "--kernel", "x*"}, "--kernel needs --kernels all"},
        {{"verify", one, "--arch", "gfx000"}, "gfx000"},
        {{"verify", one, "--where", "c.colour == 'red'"}, "colour"},
        {{"verify", one, "--where", "c.hdim_q =="}, "c.hdim_q =="},
        {{"verify", one, "--where", "c.hdim_q == 3"}, "no kernel of gfx950 is left"},
        {{"verify", "fwd/nothing_like_that"}, "fwd/nothing_like_that"},
        {{"verify", folder / "broken.json"}, "broken.json"},
        {{"verify", "fwd/ragged_tail[colour=red]@1"}, "colour"},
        {{"verify", "fwd/ragged_tail[hdim=sixty]@1"}, "sixty"},
        {{"verify", one, "--json", FMHA_CASES_DIR}, "is a folder"},
        {{"verify", one, "--html", "/proc/nothing/x.html"}, "/proc/nothing/x.html"},
        {{"reference"}, "--case"},
        {{"reference", "--case", one}, "--out"},
        {{"reference", "--case", "fwd/ragged_tail", "--out", missing}, "cases; name one of them"},
        {{"reference", "--case", one, "--out", missing, "--tensors", missing}, "nothing: is not a folder"},
        {{"reference", "--case", one, "--out", folder / "broken.json"}, "broken.json"},
        {{"reference", "--case", one, "--out", missing, "--arch", "gfx1"}, "gfx1"},
        {{"check"}, "--case"},
        {{"check", "--case", one}, "--tensors"},
        {{"check", "--case", one, "--tensors", folder / "broken.json"}, "is not a folder"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR}, "q.npy: cannot be opened"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR, "--p-prescale", "0"}, "--p-prescale is 0"},
        {{"check", "--case", one, "--tensors", FMHA_CASES_DIR, "--p-prescale", "nan"}, "--p-prescale"},
    };
    for (const auto& row : table) {
        std::vector<std::string> arguments = row.arguments;
        if (arguments.size() > 1 && arguments.front() != "enumerate" && arguments.front() != "plan")
            arguments.insert(arguments.end(), {"--cases-root", FMHA_CASES_DIR});
        const Ran ran = run(arguments);
        EXPECT_EQ(ran.code, 2) << fmt::format("{}", fmt::join(row.arguments, " ")) << "\n"
                               << ran.out << ran.err;
        EXPECT_THAT(ran.err, HasSubstr(row.sentence)) << fmt::format("{}", fmt::join(row.arguments, " "));
    }
}

TEST(BadInput, TensorFilesThatDoNotFitTheCase) {
    const Scratch folder;
    ASSERT_EQ(
        run({"reference", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--out", folder / "t"}).code,
        0);
    const harness::NpyArray q = harness::read_npy(folder / "t/q.npy");
    const auto refused = [&](const harness::NpyArray& other) {
        harness::write_npy(folder / "t/q.npy", other);
        const Ran ran = run({"reference", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors",
                             folder / "t", "--out", folder / "u"});
        EXPECT_EQ(ran.code, 2);
        return ran.err;
    };
    harness::NpyArray other = q;
    other.type = harness::NpyType::uint8;
    other.shape.back() *= 2;
    EXPECT_THAT(refused(other), HasSubstr("q.npy: dtype is uint8; allowed: float16"));
    other = q;
    std::swap(other.shape[1], other.shape[2]);
    EXPECT_THAT(refused(other), HasSubstr("q.npy: shape is "));
    other = q;
    other.shape.push_back(1);
    EXPECT_THAT(refused(other), HasSubstr("the case needs " + harness::shape_text(q.shape)));
    other = q;
    other.bytes[0] = 0xFF;
    other.bytes[1] = 0x7F;
    EXPECT_THAT(refused(other), HasSubstr("entry 0 head 0 row 0 column 0 is NaN"));
}

TEST(BadInput, ABiasThatIsNaN) {
    const Scratch folder;
    const std::string name = "fwd/bias_group[mask=0,bias=e:0]@1";
    const std::vector<std::string> common{"reference",    "--case",       name,
                                          "--cases-root", FMHA_CASES_DIR, "--out"};
    auto write = common, read = common;
    write.push_back(folder / "t");
    ASSERT_EQ(run(write).code, 0);
    harness::NpyArray bias = harness::read_npy(folder / "t/bias.npy");
    bias.bytes[0] = 0xFF;
    bias.bytes[1] = 0x7F;
    harness::write_npy(folder / "t/bias.npy", bias);
    read.insert(read.end(), {folder / "u", "--tensors", folder / "t"});
    EXPECT_EQ(run(read).code, 2);
    EXPECT_THAT(run(read).err, HasSubstr("bias.npy: entry 0 head 0 row 0 column 0 is NaN"));
}

TEST(Help, EveryCommandHasAnExample) {
    for (const auto& command : all_commands()) {
        const Ran ran = run({std::string(command->name()), "--help"});
        EXPECT_EQ(ran.code, 0);
        EXPECT_THAT(ran.out, HasSubstr("Example:"));
        EXPECT_THAT(ran.out, HasSubstr("fmha " + std::string(command->name())));
    }
    EXPECT_THAT(run({"--version"}).out, HasSubstr("fmha 0."));
}

TEST(ArchDir, StandsWhereverArchDoes) {
    int with_arch = 0;
    for (const auto& command : all_commands()) {
        const std::string name(command->name());
        const std::string help = run({name, "--help"}).out;
        if (help.find("\n  --arch ") == std::string::npos) continue;
        ++with_arch;
        EXPECT_THAT(help, HasSubstr("\n  --arch-dir TEXT")) << name;
    }
    EXPECT_EQ(with_arch, 12);
}

/// A folder with the architecture files of the program and gfx1399, which is gfx950 with another number of compute units.
void write_architectures(const std::filesystem::path& folder) {
    for (const auto& file : arch::ArchSet::built_in_files()) {
        const auto path = folder / file.path;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << file.text;
        if (file.path != "gfx950.json") continue;
        auto other = nlohmann::json::parse(file.text);
        other["arch"] = "gfx1399";
        other["hardware"]["compute_units"] = 3;
        std::ofstream(folder / "gfx1399.json") << other;
    }
}

TEST(ArchDir, CommandsRunOnAnArchitectureOfTheUsersOwn) {
    const Scratch folder;
    write_architectures(folder / "arch");
    const auto on = [&](std::vector<std::string> line) {
        line.insert(line.end(), {"--arch", "gfx1399"});
        EXPECT_THAT(run(line).err, HasSubstr("gfx1399")) << "known without the folder";
        line.insert(line.end(), {"--arch-dir", folder / "arch"});
        return run(line);
    };
    const std::string cases = FMHA_CASES_DIR;
    const auto green = [&](const std::vector<std::string>& line) {
        const Ran ran = on(line);
        EXPECT_EQ(ran.code, 0) << line.front() << ": " << ran.err << ran.out;
        return ran.out;
    };
    // Without a number of splits in the case the device decides, here one of three compute units.
    EXPECT_THAT(green({"verify", "fwd/decode[dtype=bf16]@1", "splitkv/plain[num_splits=0,seqlen_k=700]@1",
                       "--cases-root", cases, "--jobs", "0", "--json", folder / "r.json"}),
                HasSubstr("GREEN"));
    EXPECT_THAT(system::read_file(folder / "r.json"), HasSubstr("--arch-dir"));
    EXPECT_THAT(green({"verify", "--catalogue", "--sample", "1", "--family", "fwd", "--jobs", "0"}),
                HasSubstr("for gfx1399"));
    EXPECT_THAT(green({"fuzz", "--count", "3", "--minutes", "0", "--seed", "1", "--cases-root", cases}),
                HasSubstr("GREEN"));
    EXPECT_THAT(green({"bench", "--shape", "seqlen=16,batch=1,heads=1", "--seconds", "0.001"}),
                HasSubstr("fwd_gfx1399_"));
    green({"reference", "--case", "fwd/decode[dtype=bf16]@1", "--cases-root", cases, "--out",
           folder / "reference"});
    green({"enumerate", "--rules", "house", "--count"});
    const Ran generated =
        run({"generate", "--arch", "gfx950", "--arch-dir", folder / "arch", "--tier", "smoke", "--cases-root",
             cases, "--family", "fwd", "--sample", "1", "--out", folder / "generated"});
    EXPECT_EQ(generated.code, 0) << generated.err << generated.out;
    EXPECT_THAT(run({"verify", "fwd/decode", "--arch-dir", folder / "nothing"}).err,
                HasSubstr("not a folder of architecture files"));
}

TEST(BenchCommand, TimesAShapeAndWritesJson) {
    const auto ran = run({"bench", "--shape", "dtype=fp32,batch=1,heads=1,seqlen=16,hdim=32", "--seconds",
                          "0.001", "--format", "json"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    const auto json = nlohmann::json::parse(ran.out);
    ASSERT_EQ(json.at("rows").size(), 1U);
    EXPECT_EQ(json["rows"][0]["outcome"], "measured");
    EXPECT_EQ(json["rows"][0]["flops"], 2.0 * 16 * 16 * 64);
    EXPECT_GT(json["rows"][0]["copy_ceiling"]["value"], 0.0);
}

TEST(BenchCommand, TimesEveryMatchingKernelOfAMatrixAndContinues) {
    const Scratch folder;
    std::ofstream(folder / "matrix.yaml")
        << "forward_tests:\n  smoke:\n    - {name: Tiny, seqlen_q: [16], seqlen_k: [48], "
           "nhead_q: [1], nhead_k: [1], hdim_q: [64], hdim_v: [64]}\n"
           "    - {name: Odd, nhead_q: [3], nhead_k: [2]}\n";
    const std::vector<std::string> line{"bench",       folder / "matrix.yaml",
                                        "--repeat",    "1",
                                        "--warmup",    "0",
                                        "--journal",   folder / "journal",
                                        "--sweep-csv", folder / "sweep.csv"};
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("1 cases, and 1 that expect a refusal"));
    const std::string csv = system::read_file(folder / "sweep.csv");
    const auto kernels = std::count(csv.begin(), csv.end(), '\n') - 1;
    EXPECT_GT(kernels, 1);
    EXPECT_THAT(csv, HasSubstr("\nTiny,1,16,48,1,1,64,64,fp16,fwd_gfx950_"));
    const Ran again = run(line);
    EXPECT_THAT(again.out, HasSubstr(fmt::format("continued: {} rows were there", kernels)));
    EXPECT_EQ(system::read_file(folder / "sweep.csv"), csv);
    auto other = line;
    other.insert(other.end(), {"--kernels", "planned"});
    EXPECT_THAT(run(other).err, HasSubstr("belongs to another run: kernels is"));
}

TEST(BenchCommand, TimesTheKernelsOfASweepConfiguration) {
    const Scratch folder;
    const Ran ran = run({"bench", "--config", FMHA_CASES_DIR "/sweeps/fwd_ci.json", "--filter",
                         "c.hdim_q == 64", "--problems", "1,2,1,16,48,64", "--repeat", "1", "--warmup", "0",
                         "--csv", folder / "engine.csv"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("32 (filtered 28, kept 4)"));
    EXPECT_THAT(system::read_file(folder / "engine.csv"), HasSubstr("\nfmha_fwd_fp16_batch_h64_"));
    EXPECT_THAT(run({"bench", "--config", FMHA_CASES_DIR "/sweeps/fwd_ci.json", "--compile-only"}).out,
                HasSubstr("nothing to compile: kernels of target host are parts of this program"));
    EXPECT_THAT(run({"bench", "--shape", "seqlen=16", "--compile-only"}).err,
                HasSubstr("--compile-only needs --config"));
}

TEST(VerifyCommand, SaysThatLargeShapesOfAMatrixAreSampled) {
    const Scratch folder;
    // The second one has more than 2e9 floating-point operations.
    std::ofstream(folder / "matrix.yaml")
        << "forward_tests:\n  smoke:\n    - {name: Small, seqlen_q: [16], seqlen_k: [16], nhead_q: [1], "
           "nhead_k: [1]}\n"
           "    - {name: Large, seqlen_q: [520], seqlen_k: [2048], nhead_q: [4], nhead_k: [1]}\n";
    const Ran ran =
        run({"verify", folder / "matrix.yaml", "--jobs", "0", "--repeats", "1", "--json", folder / "r.json"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(
        ran.out,
        AllOf(HasSubstr("\n1 results of large shapes are of sampled rows; in 1 of them only the tiles of "
                        "these rows were computed\n"),
              HasSubstr("2 passed")));
    EXPECT_THAT(system::read_file(folder / "r.json"), HasSubstr("only the tiles of these rows"));
}

TEST(VerifyCommand, RunsTheKernelsOfASweepConfiguration) {
    const Ran ran = run({"verify", "--config", FMHA_CASES_DIR "/sweeps/fwd_ci.json", "--filter",
                         "c.hdim_q == 32", "--max-kernels", "2", "--workers", "0"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out,
                AllOf(HasSubstr("2 passed"), HasSubstr("catalogue claim --config "), HasSubstr(" 30\n")));
    EXPECT_THAT(
        run({"verify", "--config", FMHA_CASES_DIR "/sweeps/fwd_ci.json", "--filter", "c.hdim_q == 3"}).err,
        HasSubstr("no kernel of claim for gfx950 is left"));
}

TEST(PlanCommand, AsksAHeuristicFirstAndExportsTheRegistry) {
    const Scratch folder;
    std::ofstream(folder / "p.json") << R"({"signature": {"data_type": "fp16", "hdim_q": 128, "hdim_v": 128},
        "batch": 1, "nhead_q": 2, "nhead_k": 2, "seqlen_q": 100, "seqlen_k": 100})";
    const std::vector<std::string> line{"plan", "--problem", folder / "p.json"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), line.begin(), line.end());
        return run(more);
    };
    const std::string usual = with({}).out;
    // One that takes the problem and is not the usual choice: it has room for any head dimension.
    const Ran preferred = with({"--prefer", "no_such*", "--prefer", "fwd_*"});
    EXPECT_EQ(preferred.code, 2);
    EXPECT_THAT(preferred.err, HasSubstr("--prefer no_such*: no kernel has this name"));
    const Ran wide = with({"--prefer", "fwd_gfx950_fp16_batch_h256x256_*"});
    EXPECT_EQ(wide.code, 0) << wide.err;
    EXPECT_THAT(usual, HasSubstr("_h128x128_"));
    EXPECT_THAT(wide.out, HasSubstr("_h256x256_"));
    EXPECT_THAT(with({"--prefer", "fwd_gfx950_fp16_batch_h64x64_*"}).out, testing::Eq(usual))
        << "kernels that do not take the problem are passed over";

    const Ran exported = run({"plan", "--export", folder / "registry.json", "--arch", "gfx1100"});
    EXPECT_EQ(exported.code, 0) << exported.err;
    const auto registry = nlohmann::json::parse(system::read_file(folder / "registry.json"));
    EXPECT_EQ(registry.at("metadata").at("total_kernels"), registry.at("kernels").size());
    EXPECT_EQ(registry.at("kernels").at(0).at("gfx_arch"), "gfx1100");
    EXPECT_THAT(with({"--arch-dir", folder / "nothing"}).err,
                HasSubstr("not a folder of architecture files"));
}

TEST(BenchCommand, WhatCannotBeTimedIsRed) {
    const auto ran = run({"bench", "--shape", "hdim=512"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("0 measured, 0 wrong, 1 not run"));
}

TEST(BenchCommand, BadInputIsASentence) {
    EXPECT_THAT(run({"bench"}).err, HasSubstr("nothing to time"));
    EXPECT_THAT(run({"bench", "--shape", "hdimm=64"}).err, HasSubstr("did you mean hdim"));
    EXPECT_THAT(run({"bench", "--shape", "hdim=64", "--seconds", "0"}).err, HasSubstr("--seconds is 0"));
    EXPECT_THAT(run({"bench", "--shape", "hdim=64", "--kernel", "x"}).err, HasSubstr("--kernel needs"));
    for (const auto& arguments : {std::vector<std::string>{"bench"}, {"bench", "--shape", "hdimm=64"}})
        EXPECT_EQ(run(arguments).code, 2);
}

} // namespace
} // namespace fmha::cli
