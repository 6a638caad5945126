// Commands on architectures of the user's own, plan, and verify on matrices and sweeps.

#include "dispatcher/system/files.hpp"
#include "harness/results/counted.hpp"
#include "kernels/arch/arch.hpp"
#include "tests/harness/command_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace fmha::cli {
namespace {

using test::Ran;
using test::run;
using test::Scratch;
using testing::AllOf;
using testing::HasSubstr;

TEST(Counted, HasAPluralForAllNumbersButOne) {
    EXPECT_EQ(counted(0, "row"), "0 rows");
    EXPECT_EQ(counted(1, "row"), "1 row");
    EXPECT_EQ(counted(21, "row"), "21 rows");
}

/// Options that the command would not look at are refused rather than left aside.
TEST(Options, ThatChangeNothingAreRefused) {
    const Scratch folder;
    system::write_file(folder / "x", "");
    std::filesystem::create_symlink("target", folder / "link"); // to a file that is still to be written
    const std::string one = "fwd/tiny[hdim=8,seqlen=1,dtype=fp32]@1",
                      needs_list = " needs --catalogue, or --config";
    struct Row {
        std::vector<std::string> line;
        std::string sentence;
    };
    const std::vector<Row> table{
        {{"verify", one, "--rules", "claim"}, "--rules" + needs_list},
        {{"verify", one, "--profile", "nobody"}, "--profile" + needs_list},
        {{"verify", one, "--max-kernels", "2"}, "--max-kernels" + needs_list},
        {{"verify", one, "--where-file", folder / "none"}, "--where-file" + needs_list},
        {{"verify", one, "--python", "/no/python"}, "--python" + needs_list},
        {{"verify", one, "--list", "--junit", folder / "r"}, "--list and --junit exclude one another"},
        {{"verify", one, "--list", "--section", "s"}, "--list and --section exclude one another"},
        {{"verify", one, "--list", "--store", folder / "s"}, "--list and --store exclude one another"},
        {{"verify", one, "--list", "--fail-fast"}, "--list and --fail-fast exclude one another"},
        {{"verify", "fwd/pairs", "--pairs", "--journal", folder / "j"}, "--pairs and --journal exclude"},
        {{"verify", "--rules", "claim", "--compile-only", "--html", folder / "h"},
         "--compile-only and --html exclude one another"},
        {{"bench", "--rules", "house", "--family", "fwd_appendkv", "--python", "/no/python"},
         "--python /no/python needs --where-file"},
        {{"enumerate", "--python", "/no/python"}, "--python /no/python needs --where-file"},
        {{"generate", "--family", "fwd_appendkv", "--python", "/no/python", "--out", folder / "g"},
         "--python /no/python needs --where-file"},
        {{"plan", "--export", folder / "r", "--explain"}, "--explain needs --problem"},
        {{"plan", "--export", folder / "r", "--prefer", "*"}, "--prefer needs --problem"},
        {{"plan", "--export", folder / "r", "--format", "json"}, "--format needs --problem"},
        {{"plan", "--snapshots", folder / "r", "--export", folder / "r"}, "--snapshots goes with --accept"},
        {{"plan", "--snapshots", folder / "r", "--config", folder / "r"}, "--snapshots goes with --accept"},
        {{"verify", one, "--family", "bwd"}, one + ": is a case of fwd, not of bwd"},
        {{"bench", one, "--json", folder / "x", "--csv", folder / "x"}, "x: --json names the same file"},
        {{"bench", folder / "x", "--json", folder / "./x"}, "x: CASES names the same file"},
        {{"bench", "--config", folder / "x", "--csv", folder / "x"}, "x: --config names the same file"},
        {{"verify", one, folder / "x", "--json", folder / "x"}, "x: CASES names the same file"},
        {{"verify", one, "--section", folder / "x", "--html", folder / "x"},
         "x: --section names the same file"},
        {{"compare", folder / "x", "--ck-bin", "b", "--json", folder / "x"}, "x: CASES names the same file"},
        {{"merge", "none", "--not-run-budget", "-2"}, "--not-run-budget is -2; allowed: 0 and above"},
        {{"merge", "none", "--json", folder / "x", "--html", folder / "./x"},
         "x: --json names the same file"},
        {{"merge", folder / "x", "--json", folder / "./x"}, "x: FILES names the same file"},
        {{"verify", one, "--html", folder / "link", "--json", folder / "target"},
         "link: --json names the same file"},
        {{"gate", "--store", folder / "x", "--against", "previous", "--json", folder / "x"},
         "x: --store names the same file"},
        {{"gate", "--store", folder / "y", "--against", folder / "x", "--html", folder / "x"},
         "x: --against names the same file"},
        {{"gate", "--store", folder / "gate.xml", "--against", "previous", "--junit", folder / "."},
         "gate.xml: --store names the same file"},
        {{"gate", "--store", folder / "x", "--against", folder / "fwd.xml", "--junit", folder / "."},
         "fwd.xml: --against names the same file"},
        {{"gate", "--store", folder / "x", "--against", "previous", "--junit", folder / ".", "--html",
          folder / "lists.xml"},
         "lists.xml: --html names the same file"},
        {{"history", "x", "--store", folder / "x", "--html", folder / "x"}, "x: --store names the same file"},
        {{"compare", one, "--tensors", "a", "b", "--json", folder / "x"}, "--tensors and --json exclude"},
        {{"compare", one, "--tensors", "a", "b", "--where", "True"}, "--tensors and --where exclude"},
        {{"verify", "--catalogue", "--seed", "5"}, "--catalogue and --seed exclude one another"},
        {{"verify", "--catalogue", "--tier", "smoke"}, "--catalogue and --tier exclude one another"},
        {{"verify", "--catalogue", "--pairs"}, "--pairs and --catalogue exclude one another"},
        {{"verify", "--catalogue", "--sample", "0"}, "--sample 0: allowed: 1 or more"},
        {{"bench", "--shape", "seqlen=16", "--tier", "full"}, "--tier needs CASES"},
        {{"bench", "--shape", "seqlen=16,stride_padding=1152921504606846976"},
         "stride_padding=1152921504606846976: expected 0 to 2^20 elements"},
        {{"bench", "--rules", "house", "--category", "smoke"}, "--tier needs CASES"},
        {{"bench", one, "--num-splits", "3"}, "--num-splits needs --problems"},
        {{"parity", "--smoke", "--rules", "claim"}, "--rules needs the golden audit or --consistency"},
        {{"parity", "--smoke", "--arch", "gfx950"}, "--arch needs an audit of lists"},
        {{"parity", "--smoke", "--report", folder / "r"}, "--report needs an audit of lists"},
        {{"parity", "--report", folder / "r", "--store", folder / "r/parity.txt", "--arch", "gfx90a"},
         "parity.txt: --store names the same file"},
        {{"parity", "--smoke", "--no-sweep"}, "--no-sweep needs the golden audit"},
        {{"parity", "--consistency", "--cases", folder / "none"}, "none: is not a folder"},
        {{"enumerate", "--show-rules", "--show-columns"}, "print tables of their own"},
        {{"enumerate", "--show-rules", "--count"}, "print tables of their own"},
        {{"enumerate", "--show-rules", "--family", "fwd"}, "--show-rules and --family exclude one another"},
        {{"enumerate", "--show-columns", "--where", "True"}, "--show-columns and --where, --where-file or"},
        {{"enumerate", "--show-profiles", "--arch", "gfx950"}, "--show-profiles and --arch exclude"},
        {{"enumerate", "--correct", "x", "--profile", "4"}, "--correct and --profile exclude one another"},
        {{"enumerate", "--correct", "x", "--rules", "ck"}, "--correct and --rules exclude one another"},
        {{"parity", "--smoke", "--python", "/no/python"}, "--python needs --ck-root"},
        {{"enumerate", "--why", "x", "--where-file", "none"}, "--why and --where or --where-file exclude"},
        {{"enumerate", "--why", "x", "--filter", "c.lse"}, "--why and --filter exclude one another"},
        {{"enumerate", "--correct", "x", "--max-kernels", "1"}, "--correct and --max-kernels exclude"},
        {{"enumerate", "--arch", "gfx950,gfx950"}, "--arch gfx950: the architecture is named twice"},
        {{"enumerate", "--rules", "ck", "--arch", "gfx942", "--arch", "gfx942"},
         "gfx942: the architecture is named"},
        {{"fuzz", "--jobs", "-1"}, "--jobs is -1; allowed: 1 to 1024"},
        {{"verify", one, "--section", FMHA_CASES_DIR "/fwd/tiny.json"}, "tiny.json: is no section of a page"},
    };
    for (const Row& row : table) {
        const Ran ran = run(row.line);
        EXPECT_EQ(ran.code, 2) << row.sentence;
        EXPECT_THAT(ran.err, HasSubstr(row.sentence));
        EXPECT_EQ(ran.out, "") << row.sentence;
    }
}

/// The sentence names the file, and not an architecture "" that nobody asked for.
TEST(Generate, AKernelWithoutAnArchitectureIsRefused) {
    const Scratch folder;
    std::ofstream(folder / "kernel.json") << R"({"signature": {"data_type": "fp16"}})";
    const Ran ran = run({"generate", "--config", folder / "kernel.json", "--out", folder / "out"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("kernel.json: arch is missing"));
}

TEST(Generate, ACompilerThatIsNotThereIsRefused) {
    const Scratch folder;
    const Ran ran = run({"generate", "--arch", "gfx942", "--family", "fwd", "--sample", "1", "--compiler",
                         folder / "none", "--out", folder / "out"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("none: does not run or is neither clang nor nvcc"));
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

/// Cases that --kernel leaves no kernel are counted, and a problem of `fmha fuzz` without one is a refusal with its reason.
TEST(Options, ANameThatNoKernelHasIsSaid) {
    const Scratch folder;
    const Ran verified = run({"verify", "fwd/tiny", "--cases-root", FMHA_CASES_DIR, "--kernels", "all",
                              "--kernel", "nobody*", "--jobs", "1", "--html", folder / "page.html"});
    EXPECT_EQ(verified.code, 1);
    EXPECT_THAT(verified.out,
                HasSubstr("72 of 72 cases were not asked: none of the kernels that accept them has a "
                          "name like nobody*"));
    const Ran fuzzed =
        run({"fuzz", "--cases-root", FMHA_CASES_DIR, "--count", "2", "--minutes", "0", "--family",
             "fwd_appendkv", "--seed", "1", "--jobs", "1", "--kernels", "all", "--kernel", "nobody*"});
    EXPECT_EQ(fuzzed.code, 1);
    EXPECT_THAT(fuzzed.out, HasSubstr("seed 1, 1 process\n"));
    EXPECT_THAT(fuzzed.out, HasSubstr("2 generated   0 executed   0 red   2 refused"));
    EXPECT_THAT(fuzzed.out, HasSubstr("no accepting kernel has a name like nobody*"));
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
    EXPECT_THAT(ran.out,
                AllOf(HasSubstr("\nlarge shapes: 1 result of sampled rows alone; for 1 only the tiles of "
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

TEST(PlanCommand, NotesFieldsWithoutEffectOnStandardError) {
    const Scratch folder;
    const auto problem = [](const std::string& field) {
        return R"({"signature": {"hdim_q": 128, "hdim_v": 128}, "batch": 2, "nhead_q": 4, "nhead_k": 4, )"
               R"("seqlen_q": 256, "seqlen_k": 256)" +
               field + "}\n";
    };
    const auto plan = [&](const std::string& text) {
        system::write_file(folder / "p.json", text);
        return run({"plan", "--problem", folder / "p.json"});
    };
    const Ran plain = plan(problem("")), stated = plan(problem(R"(, "num_splits": 4)"));
    EXPECT_EQ(plain.err, "");
    EXPECT_EQ(stated.err, "note: num_splits is 4, which fwd does not use\n");
    EXPECT_EQ(stated.out, plain.out);
    EXPECT_EQ(stated.code, 0);
    EXPECT_EQ(plan(problem("") + problem(R"(, "rotary_dim": 16)")).err,
              "note: rotary_dim is 16, which fwd does not use (" + folder / "p.json" + ":2)\n");
}

TEST(PlanCommand, NamesAProblemWhoseWorkspaceIsTooLargeAndAnswersTheOthers) {
    const Scratch folder;
    const auto problem = [](std::int64_t batch, int rows) {
        return fmt::format(
            R"({{"api_family": "fwd_splitkv", "signature": {{"data_type": "bf16", "hdim_q": 128, "hdim_v": 128}}, )"
            R"("batch": {}, "nhead_q": 8, "nhead_k": 2, "seqlen_q": {}, "seqlen_k": 1, "num_splits": 128}})",
            batch, rows);
    };
    std::ofstream(folder / "p.jsonl") << problem(1, 1) << '\n'
                                      << problem(2147483647, 100000) << '\n'
                                      << problem(3, 1) << '\n';
    const Ran ran = run({"plan", "--problem", folder / "p.jsonl"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.out, AllOf(HasSubstr("batch b1 "), HasSubstr("batch b3 ")));
    EXPECT_THAT(ran.err, HasSubstr("fmha plan: fwd_splitkv bf16 batch b2147483647 "));
    EXPECT_THAT(ran.err, HasSubstr(": a workspace of these extents exceeds 64-bit sizes ("));
    EXPECT_THAT(ran.err, HasSubstr("p.jsonl:2)\n"));
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
    // A kernel that takes the problem and is not the usual choice: it has room for any head dimension.
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

} // namespace
} // namespace fmha::cli
