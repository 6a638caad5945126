// Files that other programs bring, and the reference for them: what is judged, and what is refused.

#include "reference/numerics/formats.hpp"
#include "tests/harness/exchange_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace fmha::cli {
namespace {

using harness::NpyArray;
using harness::NpyType;
using test::Exchanged;
using test::numbers_of;
using test::put_numbers;
using test::Ran;
using test::round_to;
using test::run;
using test::Scratch;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

TEST(Exchange, AReferenceJudgesItself) {
    const std::string one_case = "fwd/ragged_tail[hdim=64,dtype=fp16,seqlen_k=15,mask=0,fill=indexed]@1";
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
    EXPECT_THAT(check().err,
                HasSubstr("o.npy: dtype is float64, as fmha reference writes it and no kernel; allowed: "
                          "float16 or uint16 (bit patterns)\n"));
    round_to(NpyType::float16, folder / "all/o.npy");
    NpyArray half = harness::read_npy(folder / "all/o.npy");
    // Nor does its LSE pass beside a kernel's O.
    EXPECT_EQ(check().code, 2);
    EXPECT_THAT(check().err, HasSubstr("lse.npy: dtype is float64, as fmha reference writes it and no "
                                       "kernel; allowed: float32\n"));
    round_to(NpyType::float32, folder / "all/lse.npy");
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
    EXPECT_THAT(beside.out, AllOf(HasSubstr("passed"), HasSubstr("failed"), HasSubstr("\no  "),
                                  HasSubstr(" 1 of "), HasSubstr("first b0 h0 row 0 column 50: "),
                                  HasSubstr(" of the limit, and by"), HasSubstr(" ULP")))
        << beside.err;
    EXPECT_THAT(run({"compare", one_case, "--cases-root", FMHA_CASES_DIR}).err,
                HasSubstr("give one of --ck-kernels FOLDER, --ck-bin FOLDER and --tensors FOLDER FOLDER"));
    // A kernel that wrote no LSE must not be judged by the reference's own.
    fs::create_directory(folder / "mine");
    fs::copy(folder / "all/o.npy", folder / "mine/o.npy");
    const Ran apart = run({"check", "--case", one_case, "--cases-root", FMHA_CASES_DIR, "--tensors",
                           folder / "all", "--outputs", folder / "mine"});
    EXPECT_EQ(apart.code, 2);
    EXPECT_THAT(apart.err, HasSubstr("mine/lse.npy: cannot be opened: No such file or directory"));
    fs::remove(folder / "all/lse.npy");
    EXPECT_THAT(check().err, HasSubstr("lse.npy: cannot be opened"));
}
/// What the reference has written is no kernel's work, whatever the type of the case and of the output.
TEST(Exchange, TheReferencesOwnFilesAreNoOutputs) {
    {
        const Exchanged single("fwd/plain[dtype=fp32]@1");
        const Ran own = single.check();
        EXPECT_EQ(own.code, 2);
        EXPECT_THAT(own.err, HasSubstr("o.npy: dtype is float64, as fmha reference writes it and no kernel; "
                                       "allowed: float32\n"));
        round_to(NpyType::float32, single.file("o"));
        EXPECT_THAT(single.check().err, HasSubstr("lse.npy: dtype is float64"));
        single.round({});
        EXPECT_EQ(single.check().code, 0) << single.check().out;
    }
    const Exchanged bytes("fwd/plain[dtype=fp16,p_drop=0.2,dropout_seed=7,store_randval=true]@1");
    bytes.round({"o"});
    EXPECT_THAT(bytes.check().err, HasSubstr("randval.npy: dtype is float64, as fmha reference writes it and "
                                             "no kernel; allowed: uint8\n"));
}

/// Inputs may be float64 as before.
TEST(Exchange, AnInputOfFp32MayBeFloat64) {
    const Exchanged single("fwd/plain[dtype=fp32]@1");
    NpyArray q = harness::read_npy(single.file("q"));
    const auto narrow = numbers_of<float>(single.file("q"));
    q.type = NpyType::float64;
    q.bytes.resize(2 * q.bytes.size());
    const std::vector<double> wide(narrow.begin(), narrow.end());
    std::memcpy(q.bytes.data(), wide.data(), q.bytes.size());
    harness::write_npy(single.file("q"), q);
    round_to(NpyType::float32, single.file("o"));
    single.round({});
    EXPECT_EQ(single.check().code, 0) << single.check().err;
}

/// Weights that are ties become 0 in a kernel that casts P and stay in one that does not: both are right. O of neither is not.
TEST(Exchange, WeightsThatAreTiesMayBeKeptOrDropped) {
    const std::string one =
        "fwd/plain[dtype=fp16,heads=4:2,hdim=64,seqlen=64:200,fill=weight_ties,scale_s=0.6931471805599453]@1";
    const auto gates_of = [](const Ran& ran) {
        EXPECT_EQ(ran.err, "");
        const std::size_t line = ran.out.find("gates ");
        return line == std::string::npos ? ran.out : ran.out.substr(line, ran.out.find('\n', line) - line);
    };
    const Exchanged given(one);
    const auto kept = numbers_of<double>(given.file("o"));
    given.round({"o"});
    EXPECT_EQ(given.check().code, 0) << given.check().out;
    EXPECT_THAT(gates_of(given.check()), HasSubstr("exact:o=0"));
    // A declared cast that may make a weight larger leaves the gate out.
    EXPECT_THAT(gates_of(given.check({"--p-prescale", "1.5"})), Not(HasSubstr("exact")));
    EXPECT_THAT(gates_of(given.check({"--normalised-p"})), Not(HasSubstr("exact")));

    std::vector<std::uint16_t> codes(kept.size());
    const auto v = numbers_of<std::uint16_t>(given.file("v"));
    constexpr std::size_t rows = 64, keys = 200, channels = 64;
    const auto write = [&](auto value) {
        for (std::size_t n = 0; n < codes.size(); ++n)
            codes[n] = static_cast<std::uint16_t>(reference::encode(ElementType::fp16, value(n)));
        put_numbers(given.file("o"), codes);
    };
    write([&](std::size_t n) {
        const std::size_t head = n / (rows * channels); // of both entries; two heads of Q share one of K
        return reference::decode(ElementType::fp16, v[head / 2 * keys * channels + n % channels]);
    });
    EXPECT_EQ(given.check().code, 0) << given.check().out;
    EXPECT_THAT(gates_of(given.check()), HasSubstr("exact:o=0"));
    write([&](std::size_t n) { return 1.01 * kept[n]; });
    EXPECT_EQ(given.check().code, 1);
    EXPECT_THAT(given.check().out, HasSubstr("exact o: b0 h0 row 0 column 0: got "));

    // With inputs of one's own nothing is known of the weights.
    auto moved = v;
    moved[0] ^= 1U;
    put_numbers(given.file("v"), moved);
    EXPECT_THAT(gates_of(given.check()), Not(HasSubstr("exact")));
}

/// S-4 word by word, with the partial O of splits without keys in its sum: S-2 has zeros there.
TEST(Exchange, CombiningMayReadSplitsWithoutKeys) {
    for (const std::string how : {"some_empty", "all_empty", "last_only"}) {
        const Exchanged given(
            "splitkv/plain[dtype=fp16,heads=2,hdim=64,seqlen=5:1,stage=combine,num_splits=4,"
            "partial_lse=" +
            how + "]@1");
        const auto o_acc = numbers_of<float>(given.file("o_acc")),
                   lse_acc = numbers_of<float>(given.file("lse_acc"));
        const auto lse = numbers_of<double>(given.file("lse")), o = numbers_of<double>(given.file("o"));
        constexpr std::size_t splits = 4, rows = 5, channels = 64;
        std::size_t empty = 0;
        for (std::size_t row = 0; row < lse.size(); ++row)
            for (std::size_t c = 0; c < channels; ++c) {
                double sum = 0.0;
                for (std::size_t split = 0; split < splits; ++split) {
                    const std::size_t at = (row / rows * splits + split) * rows + row % rows;
                    if (std::isinf(lse_acc[at])) ++empty;
                    const double weight = std::isinf(lse[row]) ? 0.0 : std::exp(lse_acc[at] - lse[row]);
                    sum += weight * o_acc[at * channels + c];
                }
                ASSERT_NEAR(sum, o[row * channels + c], 1e-6) << how << " row " << row << " channel " << c;
            }
        EXPECT_GT(empty, 0U) << how;
    }
}

/// Refused before anything is allocated or read.
TEST(Exchange, ACaseBeyondTheMemoryLimitIsRefused) {
    const Scratch folder;
    const std::string one = "fwd/tiny[hdim=64,seqlen=40000000,dtype=fp32]@1",
                      sentence = "are allowed (--memory-limit)";
    for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
             {"reference", "--case", one, "--out", folder / "out"},
             {"check", "--case", one, "--tensors", folder / "none"},
             {"compare", one, "--tensors", folder / "none", folder / "none"}}) {
        std::vector<std::string> all = line;
        all.insert(all.end(), {"--cases-root", FMHA_CASES_DIR});
        const Ran ran = run(all);
        EXPECT_EQ(ran.code, 2) << line.front();
        EXPECT_THAT(ran.err, HasSubstr(one + ": it needs"));
        EXPECT_THAT(ran.err, HasSubstr(sentence));
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    const Ran ran = run({"reference", "--case", one, "--out", folder / "out", "--memory-limit", "-1"});
    EXPECT_THAT(ran.err, HasSubstr("--memory-limit is -1; allowed: 0 to 1000000"));
}

} // namespace
} // namespace fmha::cli
