// fmha bench: what it times, what it continues, and what it refuses.

#include "dispatcher/system/files.hpp"
#include "tests/harness/command_support.hpp"

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
using testing::ContainsRegex;
using testing::HasSubstr;

/// It would take other processes with it; the others are timed all the same.
TEST(BenchCommand, ACaseBeyondTheMemoryIsNotRun) {
    const Ran ran = run({"bench", "--shape", "batch=1000,heads=1000,seqlen=100000", "--shape", "seqlen=16",
                         "--seconds", "0.001"});
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("not run: it needs "));
    EXPECT_THAT(ran.out, HasSubstr("1 measured, 0 wrong, 1 not run"));
    const Ran limited = run({"bench", "--shape", "heads=64,seqlen=100000,hdim=64", "--memory-limit", "1"});
    EXPECT_THAT(limited.out, HasSubstr("1073741824 are allowed"));
    EXPECT_THAT(run({"bench", "--shape", "seqlen=16", "--memory-limit", "-1"}).err,
                HasSubstr("--memory-limit is -1; allowed: 0 to 1000000"));
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

/// A row for people, and what stands around it.
TEST(BenchCommand, PrintsTheRowOfAShape) {
    const auto ran = run({"bench", "--shape", "dtype=fp32,batch=1,heads=1,seqlen=16,hdim=32", "--seconds",
                          "0.001", "--repeat", "3"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::string number = "[0-9.e+-]+", share = "( \\([0-9]+ % of " + number + "\\))";
    EXPECT_THAT(
        ran.out,
        ContainsRegex(
            "\ndtype=fp32,batch=1,heads=1,seqlen=16,hdim=32\n    fwd_gfx950_fp32_batch_h32[^ \n]*\n    " +
            number + " ms \\(" + number + " to " + number + ", 3 launches in [0-9]+ places\\)   " + number +
            " TFLOP/s" + share + "   " + number + " GB/s" + share + "\n"));
    EXPECT_THAT(ran.out, HasSubstr("\n1 measured, 0 wrong, 0 not run\n"));
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
    EXPECT_THAT(ran.out, HasSubstr("1 case, and 1 with an expected refusal"));
    const std::string csv = system::read_file(folder / "sweep.csv");
    const auto kernels = std::count(csv.begin(), csv.end(), '\n') - 1;
    EXPECT_GT(kernels, 1);
    EXPECT_THAT(csv, HasSubstr("\nTiny,1,16,48,1,1,64,64,fp16,fwd_gfx950_"));
    const Ran again = run(line);
    EXPECT_THAT(again.out,
                HasSubstr(fmt::format("continued: {} rows had finished in earlier processes", kernels)));
    EXPECT_EQ(system::read_file(folder / "sweep.csv"), csv);
    auto other = line;
    other.insert(other.end(), {"--kernels", "planned"});
    EXPECT_THAT(run(other).err, HasSubstr("belongs to another run: kernels is"));
}

TEST(BenchCommand, TimesTheKernelsOfASweepConfiguration) {
    const Scratch folder;
    const std::string config = FMHA_CASES_DIR "/sweeps/fwd_ci.json";
    const Ran ran = run({"bench", "--config", config, "--filter", "c.hdim_q == 64", "--problems",
                         "1,2,1,16,48,64", "--repeat", "1", "--warmup", "0", "--csv", folder / "engine.csv"});
    EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("32 (filtered 28, kept 4)"));
    EXPECT_THAT(system::read_file(folder / "engine.csv"), HasSubstr("\nfmha_fwd_fp16_batch_h64_"));
    // The command line that upstream's CMake has: the file alone, and options for things that happen here anyway.
    const Ran upstream = run({"bench", config, "--verify", "--best", "--filter", "c.hdim_q == 64",
                              "--problems", "1,2,1,16,48,64", "--repeat", "1", "--warmup", "0"});
    EXPECT_EQ(upstream.code, 0) << upstream.err << upstream.out;
    EXPECT_THAT(upstream.out, HasSubstr("32 (filtered 28, kept 4)"));
    EXPECT_THAT(run({"bench", config, "--config", config}).err, HasSubstr("one sweep configuration"));
    EXPECT_THAT(
        run({"bench", config, "--problems", "1,2,16,77"}).err,
        HasSubstr(
            "no kernel of the list has a head dimension that they name; it has 32, 64, 80x96, 96x128, "));
    EXPECT_THAT(run({"bench", "--config", config, "--compile-only"}).out,
                HasSubstr("nothing to compile: kernels of target host are parts of this program"));
    EXPECT_THAT(run({"bench", "--shape", "seqlen=16", "--compile-only"}).err,
                HasSubstr("--compile-only needs --config"));
}

TEST(BenchCommand, NamesTheFamiliesThatAMatrixHas) {
    const Scratch folder;
    std::ofstream(folder / "matrix.yaml")
        << "forward_tests: {smoke: [{name: Small, seqlen_q: [16], seqlen_k: [16]}]}\n";
    EXPECT_THAT(
        run({"bench", folder / "matrix.yaml", "--variant", "splitkv"}).err,
        HasSubstr(
            "--family splitkv: no case named is of this family; a shape matrix has cases of fwd and bwd"));
    const Ran all =
        run({"verify", folder / "matrix.yaml", "--variant", "all", "--category", "smoke", "--list"});
    EXPECT_EQ(all.code, 0) << all.err;
    EXPECT_THAT(all.out, HasSubstr("/Small["));
}

TEST(BenchCommand, WhatCannotBeTimedIsRed) {
    const auto ran = run({"bench", "--shape", "hdim=512"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("0 measured, 0 wrong, 1 not run"));
}

// A tensor for which there is no room costs its case and not the run, with a limit or without one.
TEST(BenchCommand, ACaseWithoutRoomIsNotRun) {
    const std::string large = "batch=1,heads=1048576,seqlen=1048576,hdim=128",
                      small = "batch=1,heads=1,seqlen=8,hdim=64";
    for (const auto& [limit, sentence] :
         {std::pair{"8", "it needs "}, {"0", "does not fit into the address space"}})
        for (const char* workers : {"0", "1"}) {
            const auto ran = run({"bench", "--shape", large, "--shape", small, "--memory-limit", limit,
                                  "--workers", workers, "--seconds", "0.01"});
            EXPECT_EQ(ran.code, 1) << ran.err;
            EXPECT_THAT(ran.out, AllOf(HasSubstr(sentence), HasSubstr("1 measured, 0 wrong, 1 not run")));
        }
    EXPECT_THAT(run({"bench", "--shape", small, "--memory-limit", "-1"}).err,
                HasSubstr("--memory-limit is -1"));
}

// As a case of a file does, but for its size. Nothing is timed.
TEST(BenchCommand, AShapeMustNotContradictItself) {
    const auto said = [](const std::string& shape) {
        const Ran ran = run({"bench", "--shape", shape, "--seconds", "0.001"});
        EXPECT_EQ(ran.code, 2) << shape;
        EXPECT_EQ(ran.out, "") << shape;
        return ran.err;
    };
    EXPECT_EQ(said("seqlen_q=[],seqlen_k=4"),
              "fmha bench: --shape seqlen_q=[],seqlen_k=4: seqlen_q=[]: expected "
              "at least one length\n");
    EXPECT_EQ(
        said("seqlen_q=16,physical_q=8,length_form_q=seqlen"),
        "fmha bench: --shape seqlen_q=16,physical_q=8,length_form_q=seqlen: seqlen_q=16: is longer than the "
        "allocated length 8 of physical_q\n");
    EXPECT_EQ(
        said("seqlen=16,expect=no_kernel:x"),
        "fmha bench: --shape seqlen=16,expect=no_kernel:x: expect is no_kernel; allowed: pass, because a "
        "refusal takes no time\n");
}

TEST(BenchCommand, BadInputIsASentence) {
    for (const std::vector<std::string>& twice :
         {std::vector<std::string>{"--shape", "seqlen=16", "--shape", "seqlen=16"},
          {"--shape", "seqlen=16:32:x2", "--shape", "seqlen=16"}}) {
        std::vector<std::string> line{"bench"};
        line.insert(line.end(), twice.begin(), twice.end());
        EXPECT_EQ(run(line).err, "fmha bench: the case seqlen=16 is named twice\n");
    }
    EXPECT_THAT(run({"bench"}).err, HasSubstr("nothing to time"));
    EXPECT_THAT(run({"bench", "--shape", "hdimm=64"}).err, HasSubstr("did you mean hdim"));
    EXPECT_THAT(run({"bench", "--shape", "hdim=64", "--seconds", "0"}).err, HasSubstr("--seconds is 0"));
    EXPECT_THAT(run({"bench", "--shape", "hdim=64", "--kernel", "x"}).err, HasSubstr("--kernel needs"));
    EXPECT_EQ(run({"bench", "--shape", "seqlen=16", "--family", "bwd"}).err,
              "fmha bench: --family bwd: a --shape is a case of fwd; allowed beside it: fwd, all\n");
    EXPECT_THAT(run({"bench", "--shape", "seqlen=16", "--family", "forward"}).err,
                HasSubstr("--family forward: not known; allowed: "));
    for (const auto& arguments : {std::vector<std::string>{"bench"}, {"bench", "--shape", "hdimm=64"}})
        EXPECT_EQ(run(arguments).code, 2);
}

} // namespace
} // namespace fmha::cli
